"""What a notebook saves of a transcript: HTML, Markdown that reads back, plain text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from toolcall_nb.core.text import well_formed
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.render.html_output.page import to_html
from toolcall_nb.render.text import to_text

__all__ = ["mime_bundle"]


def mime_bundle(
    transcript: Transcript,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
    opened: Mapping[str, bool] | None = None,
    images: Collection[str] = (),
) -> dict[str, str]:
    """The transcript by MIME type; ``include`` and ``exclude`` as in IPython's display protocol.

    ``images`` are the hosts that may serve pictures.
    """
    makers: dict[str, Callable[[], str]] = {
        "text/html": lambda: to_html(transcript, opened=opened, images=images),
        "text/markdown": transcript.to_markdown,
        "text/plain": lambda: to_text(transcript),
    }
    return {
        kind: well_formed(make())  # of a lone surrogate no notebook can be told
        for kind, make in makers.items()
        if (not include or kind in include) and (not exclude or kind not in exclude)
    }
