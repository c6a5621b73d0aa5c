"""A run as a widget that a program places itself: `live`, for marimo and for layouts of ipywidgets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from toolcall_nb.approvals import ApprovalMode
from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.live_runs.run import Run
from toolcall_nb.notebook.live_display import DocumentDisplay
from toolcall_nb.notebook.show import stream_run
from toolcall_nb.notebook.widget import TranscriptWidget
from toolcall_nb.render.run_footer import info_line
from toolcall_nb.runs.reading import recognise_run
from toolcall_nb.sources.event_loop import close_quietly

if TYPE_CHECKING:
    from toolcall_nb.approvals import Decision
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import ToolCall


def live(thing: Any, prompt: str | None = None, *, approval_mode: ApprovalMode | None = None) -> TranscriptWidget:
    """Begins a run in the background and returns the widget that shows it, with approvals and Stop in its cards.

    ``live(chat, prompt)`` runs one turn of a `Chat`, by default with its own ``approval_mode``. Without a prompt,
    ``thing`` is a stream or anything else that
    `toolcall_nb.show` takes, but no asynchronous stream. The widget is an anywidget: the value of a cell in marimo or
    Jupyter, or a child of ipywidgets' boxes. It shows its run after the end too, but not without its kernel: for a
    notebook that is read later, display ``chat`` or ``chat.transcript``. Raises `UsageError` for anything else.
    """
    if isinstance(thing, Chat) and prompt is not None:
        return _live_turn(thing, prompt, approval_mode or thing.approval_mode)
    if prompt is not None or approval_mode is not None:
        raise UsageError(f"live() takes a prompt and approval_mode= only with a Chat, not with {type(thing).__name__}.")
    run = recognise_run(thing, None, "live")
    if isinstance(run, Transcript):
        return _live_events((event for event in run.events()), "transcript")
    if run.must_be_awaited:
        raise UsageError("live() takes no asynchronous stream. In a Jupyter notebook, use `await show(stream)`.")
    return _live_events(run.events(), run.name)


def _live_events(events: Generator[Event, None, None], name: str) -> TranscriptWidget:
    return _begin(stream_run(events, name), info=name, timings={}, finished=lambda: close_quietly(events))


def _live_turn(chat: Chat, prompt: str, approval_mode: ApprovalMode) -> TranscriptWidget:
    """Runs a turn whose calls ask in the widget; after it, the chat asks as before."""

    before = chat.ask_approval, chat.approval_mode

    def finished() -> None:
        chat.ask_approval, chat.approval_mode = before

    chat.ask_approval = lambda call: run.display.ask(call, lambda: chat.is_stopping)
    chat.approval_mode = approval_mode
    try:
        run: Run = Run(
            lambda show: chat.stream(prompt, show),
            stop=chat.stop,
            info=lambda run: info_line(chat.shown_model_name, run.display.transcript),
        )
    except BaseException:
        finished()
        raise
    return _begin(run, info=chat.shown_model_name, timings=chat.timings, finished=finished)


def _begin(run: Run, *, info: str, timings: Mapping[str, float], finished: Callable[[], None]) -> TranscriptWidget:
    display = _WidgetDisplay(info=info, on_stop=run.stop, timings=timings, finished=finished)
    run.play_in_background(display)
    return display.widget


class _WidgetDisplay(DocumentDisplay):
    """Shows a run in a widget that somebody else displays, and that stays."""

    def __init__(
        self, *, info: str, on_stop: Callable[[], None], timings: Mapping[str, float], finished: Callable[[], None]
    ) -> None:
        super().__init__(info=info, timings=timings)
        self._finished = finished
        self.widget = TranscriptWidget(self._shown_run(on_stop))

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Asks in the call's card, as long as it takes: the widget may be displayed later."""
        self._document.flush()
        return self._questions.ask(call, is_stopped)

    def close(self, info: str) -> None:
        self._pacer.close()
        self._finished()
        self._finish(info)

    def _send(self, step: dict[str, Any]) -> None:
        self.widget.send_step(step)
