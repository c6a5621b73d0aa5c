"""Markdown: the one callout grammar, the transcript's text form both ways, and Markdown as it is shown.

- ``callout.py``, ``tool_callout.py``, ``yaml_body.py``, ``yaml_text.py``: what a callout says, and how it is written
- ``characters.py``, ``block_context.py``, ``scanner.py``, ``tool_events.py``: callouts in a stream
- ``plugin.py``: callouts for markdown-it-py
- ``reading.py``, ``writing.py``: a transcript from Markdown, and back
- ``flavor.py``, ``math.py``, ``highlight.py``: text to HTML
- ``incremental.py``, ``open_end.py``, ``definitions.py``: the same as the text grows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcall_nb.markdown.plugin import tool_callout_plugin
    from toolcall_nb.render.markdown.incremental import IncrementalMarkdown

__all__ = ["IncrementalMarkdown", "tool_callout_plugin"]


def __getattr__(name: str) -> Any:
    if name == "IncrementalMarkdown":
        from toolcall_nb.render.markdown.incremental import IncrementalMarkdown

        return IncrementalMarkdown
    if name == "tool_callout_plugin":
        from toolcall_nb.markdown.plugin import tool_callout_plugin

        return tool_callout_plugin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
