"""What a run is shown by: each face takes the events and is closed once, with the line that stays below."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from html import escape
from typing import TYPE_CHECKING, Protocol

from toolcall_nb.notebook.place import Place
from toolcall_nb.notebook.style import run_css
from toolcall_nb.reducer import TranscriptBuilder
from toolcall_nb.render import mime_bundle

log = logging.getLogger("toolcall_nb.notebook")

if TYPE_CHECKING:
    from toolcall_nb.events import Event
    from toolcall_nb.transcript import Transcript

__all__ = ["Face", "StaticFace", "TerminalFace", "final_bundle", "make_face"]


class Face(Protocol):
    """Shows one run."""

    def show(self, event: Event) -> None:
        """Take one event in."""

    def close(self, info: str) -> None:
        """The run has ended; ``info`` is the line below it."""

    @property
    def transcript(self) -> Transcript:
        """What was shown."""


def final_bundle(transcript: Transcript, info: str, opened: Mapping[str, bool] | None = None) -> dict[str, str]:
    """What a finished run leaves in its cell: the renderer's forms, and below the HTML one the line ``info``.

    The HTML has the boxes of the live view, so that nothing moves when it takes the view's place.
    """
    bundle: dict[str, str] = mime_bundle(transcript, opened=opened)
    foot = f'<div class="tc-foot"><span class="tc-foot-info">{escape(info)}</span></div>'
    bundle["text/html"] = f'<div class="tc-run"><style>{run_css()}</style>{bundle["text/html"]}{foot}</div>'
    return bundle


def make_face(place: Place, *, info: str, on_stop: Callable[[], None], timings: Mapping[str, float]) -> Face:
    """The face for a place. Where the live one cannot be had (a broken widget installation), the static one."""
    match place:
        case Place.LIVE:
            try:
                from toolcall_nb.notebook.live import LiveFace

                return LiveFace(info=info, on_stop=on_stop, timings=timings)
            except Exception:
                log.exception("The live view cannot be shown; the transcript comes when the run has ended")
                return StaticFace()
        case Place.TERMINAL:
            return TerminalFace()
        case Place.STATIC:
            return StaticFace()


class StaticFace:
    """Shows nothing until the end, and then everything in one display."""

    def __init__(self) -> None:
        self._builder = TranscriptBuilder()

    @property
    def transcript(self) -> Transcript:
        """What was taken in."""
        return self._builder.transcript

    def show(self, event: Event) -> None:
        """Take one event in."""
        self._builder.apply(event)

    def close(self, info: str) -> None:
        """Make the display."""
        from IPython.display import display

        display(final_bundle(self.transcript, info), raw=True)  # type: ignore[no-untyped-call]  # IPython has no types


class TerminalFace:
    """Shows the text as it comes, for IPython in a terminal."""

    def __init__(self) -> None:
        from toolcall_nb.render.terminal import TerminalFace as Printer

        self._builder = TranscriptBuilder()
        self._end = ExitStack()
        self._printer = self._end.enter_context(Printer())

    @property
    def transcript(self) -> Transcript:
        """What was shown."""
        return self._builder.transcript

    def show(self, event: Event) -> None:
        """Print what the event adds."""
        self._builder.apply(event)
        self._printer.apply(event)

    def close(self, info: str) -> None:
        """Print what is left."""
        self._end.close()
