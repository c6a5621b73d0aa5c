"""A run while it goes on, as any page is told of it: a notebook's widget, or a page of a server.

`document.LiveDocument` makes numbered steps of the events, a `pacer.Pacer` lets them go at the pace of a display,
`asking.Questions` waits for a person's answer, and the module and the CSS in ``static/`` draw.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["MODULE"]

MODULE = Path(__file__).parent / "static" / "transcript.js"
"""The ES module of a run: what anywidget loads in a notebook, and a page loads from a server."""
