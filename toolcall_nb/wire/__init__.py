"""Wires: events as other programs send them.

`Envelopes` reads the events of a provider that wraps its stream in envelopes (seed 001).
"""

from __future__ import annotations

from toolcall_nb.wire.provider import Envelopes

__all__ = ["Envelopes"]
