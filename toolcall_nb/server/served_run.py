"""A turn that runs on the server: `ServedRun`. Each runs in a thread of its own, and is stopped if nobody reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from secrets import token_hex
from typing import Any

from msgspec import Struct, field

from toolcall_nb.approvals.page import ApprovalForm, PendingApprovals
from toolcall_nb.chat import Chat, Decision
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import ToolCall, Transcript
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.runs.run import Run
from toolcall_nb.server.event_log import EventLog
from toolcall_nb.server.page_feed import PageFeed
from toolcall_nb.server.public_view import public_event, public_transcript
from toolcall_nb.server.settings import Limits

__all__ = ["ServedRun", "TurnResponse"]

_log = logger("toolcall_nb.server")

_NOT_STORED = "The answer could not be stored, so it is lost when the server ends: {}. Free the disk, and ask again."


class TurnResponse(Struct, frozen=True):
    """One response to a request: the turn's events from ``start`` on, in ``wire``.

    ``id`` is part of the ids of its events, so that a client that reconnects is never sent a part of another response.
    """

    wire: str
    start: int
    run_id: str
    id: str = field(default_factory=lambda: token_hex(4))


class ServedRun:
    """One turn of a thread. It is the face of its `Run`: that calls `show`, `ask` and `close`.

    ``save`` is called with the transcript before the turn's last event is sent. ``clock`` returns seconds. ``log`` has
    the turn's events, from the prompt to ``finish`` or ``abort``.
    """

    def __init__(
        self,
        chat: Chat,
        source: Callable[[Callable[[Event], None]], Iterator[Event]],
        *,
        limits: Limits,
        clock: Callable[[], float],
        save: Callable[[Transcript], None],
    ) -> None:
        self.chat = chat
        self.log = EventLog(limits.ahead_bytes)
        self.responses: list[TurnResponse] = []
        self.ended: float | None = None
        self._began = self._last_read = self._last_check = clock()
        self._asked: float | None = None  # when the open questions were asked
        self._before = chat.transcript
        self._limits, self._clock, self._save = limits, clock, save
        self._questions = PendingApprovals(self._show_question)
        self._forms: dict[str, ApprovalForm] = {}
        self._feed: PageFeed | None = None
        self._lock = threading.RLock()
        self._is_stored = threading.Event()
        self._last_event: Event | None = None  # held back until the transcript is stored
        self._run = Run(source, stop=self._stop_chat, info=lambda _: "")

    @property
    def transcript(self) -> Transcript:
        """The whole conversation of the thread."""
        return self.chat.transcript

    def show(self, event: Event) -> None:
        """Logs an event of the turn. Waits while all readers are far behind."""
        if self._last_event is not None:
            self._append(self._last_event)
        self._last_event = event if isinstance(event, ev.Finish | ev.Abort) else None
        if self._last_event is None:
            self._append(event)
        if self.log.size > self._limits.turn_bytes and not self.chat.is_stopping:
            self._log_stop(f"The answer is longer than {self._limits.turn_bytes:,} bytes, which is the limit.")
            self._stop_chat()

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Waits until a person decides whether a call may run."""
        return self._questions.ask(call, is_stopped)

    def close(self, info: str) -> None:
        """Ends the turn: stores it, logs its last event, and lets the readers go."""
        try:
            try:
                self._save(self.chat.transcript)
            except Exception as error:
                _log.exception("The thread %s could not be stored", self.chat.thread)
                self._append(ev.Error(_NOT_STORED.format(error)))
            if self._last_event is not None:
                self._append(self._last_event)
            with self._lock:
                if self._feed is not None:
                    self._feed.finish(self.chat.transcript)
                self.ended = self._clock()
            self.log.close()
        finally:
            self._is_stored.set()

    def _append(self, event: Event) -> None:
        if isinstance(event, ev.ToolOutputError | ev.Error):
            event = public_event(event)
        with self._lock:  # a feed that is made now has the event from the log, or gets it here
            has_room = self.log.append(event)
            if self._feed is not None:
                self._feed.apply([event])
        if not has_room:
            self.log.wait_for_room()

    # For the server

    @classmethod
    def finished(cls, chat: Chat, limits: Limits) -> ServedRun:
        """Returns a run that has ended and has no events, to look at the thread as it is."""
        run = cls(chat, lambda _: iter(()), limits=limits, clock=lambda: 0.0, save=lambda _: None)
        run.responses.append(TurnResponse("chat", 0, ""))
        run.close("")
        return run

    def start(self) -> None:
        """Starts the turn. If the chat cannot begin it, the constructor has raised already."""
        self._run.play_in_background(self)

    def stop(self, why: str = "") -> None:
        """Stops the turn at its next event, or by an interrupt. Returns after the attempt, which may take seconds."""
        if why:
            self._log_stop(why)
        self.log.free()
        self._run.stop()

    def wait(self, seconds: float) -> bool:
        """Waits until the turn has ended and is stored; returns whether it is."""
        return self._is_stored.wait(seconds)

    def feed(self) -> PageFeed:
        """Returns the steps for pages; they are drawn from the first call on."""
        with self._lock:
            if self._feed is None:
                self._feed = PageFeed(public_transcript(self._before), self.chat.model_name, self.chat.timings)
                self._feed.apply(tuple(self.log.events))
                for call, form in self._forms.items():
                    self._feed.ask(call, form)
                if self.ended is not None:
                    self._feed.finish(self.chat.transcript)
            return self._feed

    def overdue_action(self) -> Callable[[], None] | None:
        """Returns what the passing of time demands now, to be called in a thread that may wait; None for nothing."""
        now, limits = self._clock(), self._limits
        if self.ended is not None:
            return None
        if self.log.reader_count or self.is_waiting:
            self._last_read = now
        if self.is_waiting:  # the time in which a person decides is not the turn's
            self._began += now - self._last_check
        self._last_check = now
        if now - self._began > limits.turn_seconds:
            return lambda: self.stop(f"It took longer than {limits.turn_seconds:g} s.")
        if now - self._last_read > limits.grace_seconds:
            return lambda: self.stop(f"Nobody has read it for {limits.grace_seconds:g} s.")
        if self._asked is not None and now - self._asked > limits.question_seconds:
            return self._deny_questions
        return None

    def _stop_chat(self) -> None:
        self.log.free()
        self.chat.stop()

    def _log_stop(self, why: str) -> None:
        _log.warning("A turn of the thread %s is stopped: %s", self.chat.thread, why)

    # Questions

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person's answer."""
        return bool(self._forms)

    def questions(self) -> Sequence[ApprovalForm]:
        """Returns the forms of the open questions."""
        with self._lock:
            return list(self._forms.values())

    def question(self, approval: str) -> ApprovalForm | None:
        """Returns the form of an open question."""
        return next((form for form in self.questions() if form["approval"] == approval), None)

    def answer(self, message: dict[str, Any], *, by_program: bool) -> str | None:
        """Answers a question. Returns None, or why the answer was refused."""
        approval = str(message.get("approval"))
        with self._lock:
            before = self.question(approval) or {}
            self._questions.answer(message, by_program=by_program)
            form = self.question(approval)
            if form is not None and form.get("refused") != before.get("refused"):
                return str(form["problem"])
            # Who reads on from here must not be asked what is answered.
            self._forms = {call: form for call, form in self._forms.items() if form["approval"] != approval}
            return None

    def _show_question(self, call: str, form: ApprovalForm | None) -> bool:
        with self._lock:
            self._forms.pop(call, None)
            if form is not None:
                self._forms[call] = form
            self._asked = self._clock() if self._forms else None
            if self._feed is not None:
                self._feed.ask(call, form)
        self.log.wake_readers()
        return True

    def _deny_questions(self) -> None:
        reason = f"Nobody answered in {self._limits.question_seconds:g} s."
        for form in self.questions():
            self._questions.answer({"approval": form["approval"], "approved": False, "reason": reason})
