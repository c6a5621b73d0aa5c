"""What a run is shown by: each face takes the events and is closed once, with the line that stays below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from toolcall_nb.approvals.terminal import TerminalApprover, deny_unattended
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.usage import account
from toolcall_nb.frontend import run_css
from toolcall_nb.notebook.environment import Place
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.redaction.registered_secrets import saved_text, saved_value
from toolcall_nb.redaction.saved_output import picture_hosts
from toolcall_nb.render import mime_bundle
from toolcall_nb.render.escaping import visible
from toolcall_nb.runs.face import Face
from toolcall_nb.runs.request_details import FOLD, foot_info

log = logger("toolcall_nb.notebook")

if TYPE_CHECKING:
    from toolcall_nb.approvals import Approver, Decision
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import ToolCall, Transcript
    from toolcall_nb.redaction import Tally

__all__ = ["StaticFace", "TerminalFace", "approver_of", "final_bundle", "make_face", "saved_line"]


_RUN_CLASS = "tc-run mathjax_ignore tex2jax_ignore"
"""No name of a model below a run is a formula either: MathJax would make a link of its own of ``\\href``."""


def final_bundle(transcript: Transcript, info: str, opened: Mapping[str, bool] | None = None) -> dict[str, str]:
    """What a finished run leaves in its cell: the renderer's forms, and below the HTML one the line ``info``.

    The HTML has the boxes of the live view, so that nothing moves when it takes the view's place. What the run took
    is folded under the line there; plain text has the line alone, where there is something to say of that. Secrets
    are masked in all of it, and the line says how many.
    """
    kept, tally = saved_value(transcript)
    line = saved_line(info, tally)
    bundle: dict[str, str] = mime_bundle(kept, opened=opened, images=picture_hosts())
    if account(kept.messages).usage or line != info:
        bundle["text/plain"] += f"\n\n{visible(line)}"
    foot = f'<div class="tc-foot">{foot_info(line, kept, bool((opened or {}).get(FOLD)))}</div>'
    bundle["text/html"] = f'<div class="{_RUN_CLASS}"><style>{run_css()}</style>{bundle["text/html"]}{foot}</div>'
    return bundle


def saved_line(info: str, tally: Tally) -> str:
    """The line below a run, with the number of secrets that were masked where it is saved."""
    return " · ".join(filter(None, (saved_text(info), f"{tally}")))


def make_face(
    place: Place,
    *,
    info: str,
    on_stop: Callable[[], None],
    timings: Mapping[str, float],
    background: bool = False,
) -> Face:
    """The face for a place. Where the live one cannot be had (a broken widget installation), the static one."""
    approver = approver_of(place, background=background)
    match place:
        case Place.LIVE:
            try:
                from toolcall_nb.notebook.live_cell import LiveFace

                return LiveFace(info=info, on_stop=on_stop, timings=timings, approver=None if background else approver)
            except Exception:
                log.exception("The live view cannot be shown; the transcript comes when the run has ended")
                return StaticFace(approver)
        case Place.TERMINAL:
            return TerminalFace(approver)
        case Place.STATIC:
            return StaticFace(approver)


def approver_of(place: Place, *, background: bool = False) -> Approver:
    """Who is asked without a card: the person by keys, which a kernel's ``input`` allows in a cell, or nobody."""
    if place is Place.STATIC or background:
        return deny_unattended
    return TerminalApprover(say=_say) if place is Place.LIVE else TerminalApprover()


def _say(text: str) -> None:
    """What is said in a cell stays in the notebook."""
    print(saved_text(text))


class StaticFace:
    """Shows nothing until the end, and then everything in one display. ``approver`` is asked about calls."""

    def __init__(self, approver: Approver) -> None:
        self._builder = TranscriptBuilder()
        self._approver = approver

    @property
    def transcript(self) -> Transcript:
        """What was taken in."""
        return self._builder.transcript

    def show(self, event: Event) -> None:
        """Take one event in."""
        self._builder.apply(event)

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Whether a call may run."""
        return self._approver(call)

    def close(self, info: str) -> None:
        """Make the display."""
        from IPython.display import display

        display(final_bundle(self.transcript, info), raw=True)  # type: ignore[no-untyped-call]  # IPython has no types


class TerminalFace:
    """Shows the text as it comes, for IPython in a terminal. ``approver`` is asked about calls."""

    def __init__(self, approver: Approver) -> None:
        from toolcall_nb.render.terminal import TerminalFace as Printer

        self._approver = approver
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

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Whether a call may run."""
        with self._printer.paused():
            return self._approver(call)

    def close(self, info: str) -> None:
        """Print what is left, and the line where the run reports what it took."""
        self._end.close()
        if account(self.transcript.messages).usage:
            print(visible(info))
