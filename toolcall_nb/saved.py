"""What a notebook keeps of a transcript: its three forms without secrets, and below them how many were masked."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from toolcall_nb.picture_hosts import picture_hosts
from toolcall_nb.render import mime_bundle
from toolcall_nb.render.escaping import element
from toolcall_nb.render.page import ROOT_CLASS
from toolcall_nb.secrets import saved_value

if TYPE_CHECKING:
    from toolcall_nb.transcript import Transcript

__all__ = ["saved_bundle"]


def saved_bundle(
    transcript: Transcript,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
) -> dict[str, str]:
    """`toolcall_nb.render.mime_bundle` of the transcript as it is saved. Its Markdown says nothing of the number.

    It reads back as what was saved; the marks in it are all that it tells.
    """
    kept, tally = saved_value(transcript)
    bundle = mime_bundle(kept, include=include, exclude=exclude, images=picture_hosts())
    if tally.secrets and "text/html" in bundle:
        bundle["text/html"] += f'<div class="{ROOT_CLASS}">{element("p", "tc-note", f"{tally}")}</div>'
    if tally.secrets and "text/plain" in bundle:
        bundle["text/plain"] += f"\n\n{tally}"
    return bundle
