"""What a notebook keeps of a transcript, or of calls: three forms without secrets, and below how many were masked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from toolcall_nb.core.text import well_formed
from toolcall_nb.redaction.picture_hosts import picture_hosts
from toolcall_nb.redaction.registered_secrets import saved_text, saved_value
from toolcall_nb.render import mime_bundle
from toolcall_nb.render.escaping import element, visible
from toolcall_nb.render.html_output.page import ROOT_CLASS

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import ToolCall, Transcript

__all__ = ["saved_bundle", "saved_calls_bundle"]


def saved_bundle(
    transcript: Transcript,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
    opened: Mapping[str, bool] | None = None,
    line: str = "",
) -> dict[str, str]:
    """`toolcall_nb.render.mime_bundle` of the transcript as it is saved, with a ``line`` below it.

    The Markdown has neither the line nor the number of what was masked: it reads back as what was saved.
    """
    kept, tally = saved_value(transcript)
    bundle = mime_bundle(kept, include=include, exclude=exclude, opened=opened, images=picture_hosts())
    return _with_line(bundle, " · ".join(filter(None, (saved_text(line), f"{tally}"))))


def saved_calls_bundle(
    calls: Iterable[ToolCall], *, include: Collection[str] | None = None, exclude: Collection[str] | None = None
) -> dict[str, str]:
    """A table of the calls as it is saved."""
    from toolcall_nb.render.html_output.calls_table import calls_html, calls_markdown, calls_text

    kept, tally = saved_value(tuple(calls))
    makers: dict[str, Callable[[Iterable[ToolCall]], str]] = {
        "text/html": calls_html,
        "text/markdown": calls_markdown,
        "text/plain": calls_text,
    }
    bundle = {
        kind: well_formed(make(kept))
        for kind, make in makers.items()
        if (not include or kind in include) and (not exclude or kind not in exclude)
    }
    return _with_line(bundle, f"{tally}")


def _with_line(bundle: dict[str, str], line: str) -> dict[str, str]:
    if line and "text/html" in bundle:
        bundle["text/html"] += f'<div class="{ROOT_CLASS}">{element("p", "tc-note", line)}</div>'
    if line and "text/plain" in bundle:
        bundle["text/plain"] += f"\n\n{visible(line)}"
    return bundle
