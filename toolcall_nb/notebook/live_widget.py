"""A run as a widget that a program places itself: `live`, for marimo and for layouts of ipywidgets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolcall_nb.approvals import ApprovalMode
from toolcall_nb.approvals.page import PendingApprovals
from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.core.usage import answering_model
from toolcall_nb.errors import UsageError
from toolcall_nb.live_runs.document import LiveDocument
from toolcall_nb.live_runs.pacer import Pacer
from toolcall_nb.live_runs.run import Run, Stoppable
from toolcall_nb.notebook.widget import ShownRun, TranscriptWidget
from toolcall_nb.redaction.registered_secrets import saved_value
from toolcall_nb.render import LiveHtml
from toolcall_nb.render.run_footer import footer_html, info_line
from toolcall_nb.render.saved_output import picture_hosts, saved_line
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
    found = recognise_run(thing, None, "live")
    if isinstance(found, Transcript):
        return _live_events((event for event in found.events()), "transcript")
    if found.must_be_awaited:
        raise UsageError("live() takes no asynchronous stream. In a Jupyter notebook, use `await show(stream)`.")
    return _live_events(found.events(), found.name)


def _live_events(events: Generator[Event, None, None], name: str) -> TranscriptWidget:
    stoppable = Stoppable(events)

    def info(run: Run) -> str:
        return info_line(answering_model(run.display.transcript.messages) or name, run.display.transcript)

    run = Run(lambda _: iter(stoppable), stop=stoppable.stop, info=info)
    return _begin(run, info=name, timings={}, finished=lambda: close_quietly(events))


def _live_turn(chat: Chat, prompt: str, approval_mode: ApprovalMode) -> TranscriptWidget:
    """Runs a turn whose calls ask in the widget; after it, the chat asks as before."""

    def source(show_meanwhile: Callable[[Event], None]) -> Iterator[Event]:
        return chat.stream(prompt, show_meanwhile)

    before = chat.ask_approval, chat.approval_mode

    def finished() -> None:
        chat.ask_approval, chat.approval_mode = before

    def ask(call: ToolCall) -> Decision:
        return run.display.ask(call, lambda: chat.is_stopping)

    chat.ask_approval = ask
    chat.approval_mode = approval_mode
    try:
        run: Run = Run(
            source, stop=chat.stop, info=lambda run: info_line(chat.shown_model_name, run.display.transcript)
        )
    except BaseException:
        finished()
        raise
    return _begin(run, info=chat.shown_model_name, timings=chat.timings, finished=finished)


def _begin(run: Run, *, info: str, timings: Mapping[str, float], finished: Callable[[], None]) -> TranscriptWidget:
    display = _WidgetDisplay(info=info, on_stop=run.stop, timings=timings, finished=finished)
    run.play_in_background(display)
    return display.widget


class _WidgetDisplay:
    """Shows a run in a widget that somebody else displays, and that stays."""

    def __init__(
        self, *, info: str, on_stop: Callable[[], None], timings: Mapping[str, float], finished: Callable[[], None]
    ) -> None:
        self._html = LiveHtml(images=picture_hosts())
        self._document = LiveDocument(self._html, self._send, info=info, timings=timings)
        self._pacer = Pacer(self._document.flush)
        self._questions = PendingApprovals(self._document.ask)
        self._finished = finished
        on_answer, pacer = self._questions.answer, self._pacer
        self.widget = TranscriptWidget(ShownRun(self._document, on_stop, on_answer, pacer.set_interval, pacer.wake))

    @property
    def transcript(self) -> Transcript:
        """The transcript of the events so far."""
        self._document.draw_pending_text()
        return self._html.transcript

    def show(self, event: Event) -> None:
        """Takes one event in; the page gets it with the next step."""
        if self._document.apply(event):
            self._pacer.wake()

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Asks in the call's card, as long as it takes: the widget may be displayed later."""
        self._document.flush()
        return self._questions.ask(call, is_stopped)

    def close(self, info: str) -> None:
        """Sends the rest."""
        self._pacer.close()
        self._finished()
        line = saved_line(info, saved_value(self.transcript)[1])
        self._document.finish(line, footer_html(line, self.transcript))
        self._document.flush()

    def _send(self, step: dict[str, Any]) -> None:
        self.widget.send_step(step)
