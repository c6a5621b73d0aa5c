"""Turns that run: each in a thread of its own, read by anybody who has its thread's name, ended if nobody does."""

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
from toolcall_nb.server.feed import PageFeed
from toolcall_nb.server.log import EventLog
from toolcall_nb.server.outward import outward, outward_transcript
from toolcall_nb.server.settings import Limits

__all__ = ["Response", "ServedRun"]

log = logger("toolcall_nb.server")

_NOT_STORED = "The answer could not be stored, so it is lost when the server ends: {}. Free the disk, and ask again."


class Response(Struct, frozen=True):
    """One answer to a request: the events from ``start`` on, in ``wire``. Who comes back gets the rest of it.

    ``id`` names it in the ids of its events: who comes back too late, for another answer, is not told a part of that.
    """

    wire: str
    start: int
    run_id: str
    id: str = field(default_factory=lambda: token_hex(4))


class ServedRun:
    """One turn of a thread. ``save`` is called with the transcript before the turn's last event is told.

    ``clock`` gives seconds. `log` has the turn's events, from the prompt to ``finish`` or ``abort``.
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
        self.responses: list[Response] = []
        self.began = self.left = self._looked = clock()
        self.asked: float | None = None
        self.ended: float | None = None
        self._before = chat.transcript
        self._limits, self._clock, self._save = limits, clock, save
        self._questions = PendingApprovals(self._tell)
        self._forms: dict[str, ApprovalForm] = {}
        self._feed: PageFeed | None = None
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._held: Event | None = None  # the last event waits until the transcript is stored
        self._run = Run(source, stop=self._stop_chat, info=lambda _: "")

    # For the loop of the turn: the face

    @property
    def transcript(self) -> Transcript:
        """All that was said in the thread."""
        return self.chat.transcript

    def show(self, event: Event) -> None:
        """One more event of the turn. Waits where everybody who reads is far behind."""
        held, self._held = self._held, event if isinstance(event, ev.Finish | ev.Abort) else None
        for each in (held, event if self._held is None else None):
            if each is not None:
                self._append(each)
        if self.log.size > self._limits.turn_bytes and not self.chat.is_stopping:
            self._halt(f"The answer is longer than {self._limits.turn_bytes:,} bytes, which is the limit.")

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Whether a call may run, once a person has said so."""
        return self._questions.ask(call, is_stopped)

    def close(self, info: str) -> None:
        """The turn has ended: store it, tell its last event, let the readers go."""
        try:
            self._end()
        finally:
            self._over.set()

    def _end(self) -> None:
        try:
            self._save(self.chat.transcript)
        except Exception as error:
            log.exception("The thread %s could not be stored", self.chat.thread)
            self._append(ev.Error(_NOT_STORED.format(error)))
        if self._held is not None:
            self._append(self._held)
        with self._lock:
            if self._feed is not None:
                self._feed.finish(self.chat.transcript)
            self.ended = self._clock()
        self.log.close()

    def _append(self, event: Event) -> None:
        event = outward(event)
        with self._lock:  # a feed that is made now has the event from the log, or gets it here
            self.log.append(event)
            if self._feed is not None:
                self._feed.apply([event])
        self.log.wait_for_room()

    # For the server

    @classmethod
    def over(cls, chat: Chat, limits: Limits) -> ServedRun:
        """A run in which nothing happens, to look at what was said."""
        run = cls(chat, lambda _: iter(()), limits=limits, clock=lambda: 0.0, save=lambda _: None)
        run.responses.append(Response("chat", 0, ""))
        run.close("")
        return run

    def start(self) -> None:
        """Begin; what the chat refuses, the constructor has raised."""
        self._run.play_in_background(self)

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person's answer."""
        return bool(self._forms)

    def answer(self, message: dict[str, Any], *, by_program: bool) -> ApprovalForm | None:
        """An answer to a question; the form where it could not be taken, with what is wrong."""
        approval = str(message.get("approval"))
        with self._lock:
            before = self._form(approval) or {}
            self._questions.answer(message, by_program=by_program)
            form = self._form(approval)
            if form is not None and form.get("refused") != before.get("refused"):
                return form
            self._forget(approval)
            return None

    def is_asked(self, approval: str) -> bool:
        """Whether this question is open."""
        with self._lock:
            return self._form(approval) is not None

    def text_of(self, approval: str) -> str:
        """The arguments that a question is about, as JSON."""
        with self._lock:
            form = self._form(approval)
        return "" if form is None else str(form["text"])

    @property
    def questions(self) -> Sequence[str]:
        """The approvals that are open."""
        with self._lock:
            return [form["approval"] for form in self._forms.values()]

    def forms(self) -> list[ApprovalForm]:
        """What the open questions ask: ``approval``, ``name``, and ``text``, the arguments as JSON."""
        with self._lock:
            return list(self._forms.values())

    def stop(self, why: str = "") -> None:
        """End it: at its next event, or by an interrupt of what holds its thread. Returns when that was tried."""
        if why:
            log.warning("A turn of the thread %s is stopped: %s", self.chat.thread, why)
        self.log.free()
        self._run.stop()

    def _halt(self, why: str) -> None:
        log.warning("A turn of the thread %s is stopped: %s", self.chat.thread, why)
        self._stop_chat()

    def wait(self, seconds: float) -> bool:
        """Until it has ended, and is stored; whether it is."""
        return self._over.wait(seconds)

    def feed(self) -> PageFeed:
        """What pages are told of it; made for the first one."""
        with self._lock:
            if self._feed is None:
                self._feed = PageFeed(outward_transcript(self._before), self.chat.model_name, self.chat.timings)
                self._feed.apply(tuple(self.log.events))
                for call, form in self._forms.items():
                    self._feed.ask(call, form)
                if self.ended is not None:
                    self._feed.finish(self.chat.transcript)
            return self._feed

    def sweep(self) -> Callable[[], None] | None:
        """What the passing of time demands now; to be done in a thread that may wait."""
        now, limits = self._clock(), self._limits
        if self.ended is not None:
            return None
        if self.log.readers or self.is_waiting:
            self.left = now
        if self.is_waiting:  # a person's time is not the turn's
            self.began += now - self._looked
        self._looked = now
        if now - self.began > limits.turn_seconds:
            return lambda: self.stop(f"It took longer than {limits.turn_seconds:g} s.")
        if now - self.left > limits.grace_seconds:
            return lambda: self.stop(f"Nobody has read it for {limits.grace_seconds:g} s.")
        if self.asked is not None and now - self.asked > limits.question_seconds:
            return self._give_up
        return None

    def _give_up(self) -> None:
        for approval in self.questions:
            why = f"Nobody answered in {self._limits.question_seconds:g} s."
            self._questions.answer({"approval": approval, "approved": False, "reason": why})

    def _stop_chat(self) -> None:
        self.log.free()
        self.chat.stop()

    def _tell(self, call: str, form: ApprovalForm | None) -> bool:
        with self._lock:
            self._forms.pop(call, None)
            if form is not None:
                self._forms[call] = form
            self.asked = self._clock() if self._forms else None
            if self._feed is not None:
                self._feed.ask(call, form)
        self.log.ring()
        return True

    def _forget(self, approval: str) -> None:
        """It is answered: who reads on from here must not be told that it is asked."""
        self._forms = {call: form for call, form in self._forms.items() if form["approval"] != approval}

    def _form(self, approval: str) -> ApprovalForm | None:
        return next((form for form in self._forms.values() if form["approval"] == approval), None)
