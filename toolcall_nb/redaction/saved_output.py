"""The output that a notebook saves of a transcript or of calls: without secrets, and with the number of masked ones.

It shows pictures only from the hosts that `allow_pictures` allowed in this process; see
`toolcall_nb.render.html_output.pictures` for the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from toolcall_nb.redaction.registered_secrets import saved_text, saved_value
from toolcall_nb.render.escaping import element, visible
from toolcall_nb.render.html_output.page import ROOT_CLASS
from toolcall_nb.render.html_output.pictures import NO_HOSTS, allowed_hosts
from toolcall_nb.render.mime_bundles import calls_bundle, mime_bundle

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import ToolCall, Transcript

__all__ = ["allow_pictures", "picture_hosts", "saved_bundle", "saved_calls_bundle"]

_allowed = {"hosts": NO_HOSTS}


def allow_pictures(hosts: Iterable[str]) -> None:
    """Allows pictures of these hosts and no others. Raises `UsageError` for a bad name, and then changes nothing."""
    _allowed["hosts"] = allowed_hosts(hosts)


def picture_hosts() -> frozenset[str]:
    """Returns the hosts whose pictures are shown; none by default."""
    return _allowed["hosts"]


def saved_bundle(
    transcript: Transcript,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
    opened: Mapping[str, bool] | None = None,
    line: str = "",
) -> dict[str, str]:
    """Returns `toolcall_nb.render.mime_bundle` of the transcript without its secrets, with a ``line`` below it.

    The Markdown has neither the line nor the number of masked secrets, so that it reads back as the saved transcript.
    """
    kept, tally = saved_value(transcript)
    bundle = mime_bundle(kept, include=include, exclude=exclude, opened=opened, images=picture_hosts())
    return _with_line(bundle, " · ".join(filter(None, (saved_text(line), f"{tally}"))))


def saved_calls_bundle(
    calls: Iterable[ToolCall], *, include: Collection[str] | None = None, exclude: Collection[str] | None = None
) -> dict[str, str]:
    """Returns a table of the calls without their secrets."""
    kept, tally = saved_value(tuple(calls))
    bundle = calls_bundle(kept, include=include, exclude=exclude)
    return _with_line(bundle, f"{tally}")


def _with_line(bundle: dict[str, str], line: str) -> dict[str, str]:
    if line and "text/html" in bundle:
        bundle["text/html"] += f'<div class="{ROOT_CLASS}">{element("p", "tc-note", line)}</div>'
    if line and "text/plain" in bundle:
        bundle["text/plain"] += f"\n\n{visible(line)}"
    return bundle
