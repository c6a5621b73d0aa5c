"""The conversations of a server by name: what was said in each, what runs in it, what is kept of it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from toolcall_nb import models
from toolcall_nb.approvals import RememberedApprovals
from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.errors import ToolcallError
from toolcall_nb.redaction import Tally, masked_value
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.redaction.registered_secrets import HeldSecret, known_secrets
from toolcall_nb.server.problems import Problem
from toolcall_nb.server.requests import Answer, Asked
from toolcall_nb.server.runs import Response, ServedRun
from toolcall_nb.server.settings import Settings
from toolcall_nb.server.store import DamagedThread, Store
from toolcall_nb.tools import Registry

__all__ = ["Threads"]

log = logger("toolcall_nb.server")

_TICK = 0.5
"""Seconds between looks at what the time demands."""
_STOP_WITHIN = 5.0
_AGAIN = {"Retry-After": "5"}


class Threads:
    """Chats by name. Safe in any thread; none of the methods waits for a model or a tool, but they may wait for a disk.

    What cannot be done raises a `Problem`. ``clock`` gives seconds; without ``ticking`` nothing happens by itself,
    and `sweep` is to be called.
    """

    def __init__(
        self, settings: Settings, *, clock: Callable[[], float] = time.monotonic, ticking: bool = True
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._store = None if settings.store is None else Store(settings.store)
        self._chats: OrderedDict[str, Chat] = OrderedDict()
        self._runs: dict[str, ServedRun] = {}
        self._always: list[Any] = []  # what a person has allowed for every thread; see RememberedApprovals
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._token = HeldSecret(settings.token or "")
        for model in settings.models.values():
            models.model(model, dialect=settings.dialect, speed=settings.speed)  # raises for what is none
        if ticking:
            threading.Thread(target=self._tick, name="toolcall_nb-server", daemon=True).start()

    # Turns

    def begin(self, asked: Asked) -> ServedRun:
        """Begin a turn, or give the answers to the one that waits for them; its last response is this request's."""
        with self._lock:
            if self._closing.is_set():
                raise Problem(503, "The server is about to end.", _AGAIN)
            return self._go_on(asked) if asked.answers else self._ask(asked)

    def run(self, thread: str) -> ServedRun | None:
        """The turn of this thread that runs, or has ended not long ago."""
        with self._lock:
            return self._runs.get(thread)

    def stop(self, thread: str) -> bool:
        """End what runs in the thread; whether anything did. May take a second or two."""
        run = self.run(thread)
        if run is None or run.ended is not None:
            self.transcript(thread)  # raises where there is no such thread
            return False
        run.stop()
        return True

    def answer(self, thread: str, answer: Answer) -> None:
        """A person's answer to a question of the thread."""
        run = self.run(thread)
        if run is None or not run.is_asked(answer.approval):
            self.transcript(thread)
            raise Problem(409, f"Nothing is asked under {answer.approval!r:.100} in this thread, or not any more.")
        _give(run, answer)

    def transcript(self, thread: str) -> Transcript:
        """All that was said in a thread, also in the middle of a turn; `Problem` 404 where there is none."""
        with self._lock:
            known = self._chats.get(thread)
            said = known.transcript if known is not None else self._load(thread)
        if said is None:
            raise Problem(404, f"There is no thread {thread!r:.120}.")
        return said

    def ended(self, thread: str) -> ServedRun:
        """A thread in which nothing runs, as a run that has ended; `Problem` 404 where there is none."""
        chat = Chat(thread=thread, tools=Registry())
        chat.model = self._model(None)
        chat.load(self.transcript(thread))
        return ServedRun.over(chat, self.settings.limits)

    @property
    def reader_count(self) -> int:
        """How many streams are read."""
        with self._lock:
            return sum(run.log.readers for run in self._runs.values())

    def running(self) -> Sequence[ServedRun]:
        """What runs."""
        with self._lock:
            return [run for run in self._runs.values() if run.ended is None]

    def _ask(self, asked: Asked) -> ServedRun:
        self._refuse_if_busy(asked.thread)
        model = self._model(asked.model)
        chat = self._chat(asked)
        self._set_up(chat, asked, model)
        try:
            run = ServedRun(
                chat,
                lambda live: chat.stream(asked.prompt, live, files=asked.files),
                limits=self.settings.limits,
                clock=self._clock,
                save=lambda transcript: self._save(asked.thread, transcript),
            )
        except ToolcallError as error:
            raise Problem(409, f"The thread cannot begin a turn: {error}") from None
        run.responses.append(Response(asked.wire, 0, asked.run_id))
        self._runs[asked.thread] = run
        run.start()
        return run

    def _go_on(self, asked: Asked) -> ServedRun:
        run = self._runs.get(asked.thread)
        open_ones = [] if run is None else [answer for answer in asked.answers if run.is_asked(answer.approval)]
        if run is None or not open_ones:
            raise Problem(409, "None of these questions is open in this thread, or not any more. Ask anew.")
        start = len(run.log)
        for answer in open_ones:
            _give(run, answer)
        run.responses.append(Response(asked.wire, start, asked.run_id))
        return run

    def _refuse_if_busy(self, thread: str) -> None:
        running = self.running()
        if any(run is self._runs.get(thread) for run in running):
            raise Problem(
                409,
                f"The thread {thread!r} is still answering. Wait for it, or POST /api/threads/{thread}/stop.",
            )
        if len(running) >= self.settings.limits.runs:
            raise Problem(503, f"{len(running)} turns run at the moment, which is the limit.", _AGAIN)

    def _model(self, name: str | None) -> Any:
        known = self.settings.models
        if name is None:
            return known[self.settings.default_model]
        if name not in known:
            raise Problem(403, f"The model {name!r:.120} is not served here. There are: {', '.join(known)}.")
        return known[name]

    def _set_up(self, chat: Chat, asked: Asked, model: Any) -> None:
        settings = self.settings
        chat.model, chat.dialect, chat.speed = model, settings.dialect, settings.speed
        chat.tools = settings.tools if asked.tools is None else self._chosen(asked.tools)
        chat.max_steps, chat.approval_mode = settings.max_steps, settings.approval_mode
        chat.ask_approval = lambda call: self._runs[asked.thread].ask(call, lambda: chat.is_stopping)
        context = f"What the application says of itself:\n{asked.context}" if asked.context else ""
        chat.system = "\n\n".join(filter(None, (settings.system, context))) or None

    def _chosen(self, names: Sequence[str]) -> Registry:
        known = self.settings.tools
        for name in dict.fromkeys(names):
            if name not in known:
                log.warning("The tool %.100r is not served here; it is left out", name)
        return Registry(known[name] for name in dict.fromkeys(names) if name in known)

    # Conversations

    def _chat(self, asked: Asked) -> Chat:
        chat = self._chats.get(asked.thread)
        if chat is None:
            chat = Chat(thread=asked.thread, tools=Registry(), remembered_approvals=RememberedApprovals(self._always))
            if (stored := self._load(asked.thread)) is not None:
                chat.load(stored)
        if asked.history is not None:
            _catch_up(chat, asked.history)
        self._chats[asked.thread] = chat
        self._chats.move_to_end(asked.thread)
        self._forget_some()
        return chat

    def _forget_some(self) -> None:
        busy = {run.chat.thread for run in self.running()}
        surplus = len(self._chats) - self.settings.limits.threads
        for thread in [thread for thread in self._chats if thread not in busy][: max(surplus, 0)]:
            del self._chats[thread]
            self._runs.pop(thread, None)

    def _load(self, thread: str) -> Transcript | None:
        try:
            return None if self._store is None else self._store.load(thread)
        except DamagedThread as error:
            raise Problem(409, str(error)) from None

    def _save(self, thread: str, transcript: Transcript) -> None:
        """Without secrets; the conversation in memory has them. After a restart a thread goes on without."""
        if self._store is None:
            return
        kept, tally = masked_value(transcript, known_secrets()) if self.settings.masking else (transcript, Tally())
        self._store.save(thread, kept)
        if tally.secrets:
            log.warning("The thread %s is stored with %s", thread, tally)

    # Time

    def sweep(self) -> None:
        """Do what the passing of time demands: end what takes too long or is left alone, forget what has ended."""
        with self._lock:
            runs = dict(self._runs)
            self._forget_ended()
        for run in runs.values():
            if (due := run.sweep()) is not None:
                threading.Thread(target=due, name="toolcall_nb-end", daemon=True).start()

    def _forget_ended(self) -> None:
        """The newest that have ended and are not read are kept, as far as time and size allow."""
        limits, size = self.settings.limits, 0
        over = [(run.ended, thread) for thread, run in self._runs.items() if run.ended is not None]
        for ended, thread in sorted(over, reverse=True):
            log = self._runs[thread].log
            size += log.size
            is_too_much = size > limits.linger_bytes or self._clock() - ended > limits.linger_seconds
            if is_too_much and not log.readers:
                del self._runs[thread]

    def close(self) -> None:
        """End all turns, and wait until their transcripts are closed and stored."""
        self._closing.set()
        running = self.running()
        stops = [threading.Thread(target=run.stop, name="toolcall_nb-end", daemon=True) for run in running]
        for stop in stops:
            stop.start()
        late = [run.chat.thread for run in running if not run.wait(_STOP_WITHIN)]
        if late:
            log.warning("These threads did not end in time: %s", ", ".join(late))

    def _tick(self) -> None:
        while not self._closing.wait(_TICK):
            try:
                self.sweep()
            except Exception:  # it must go on looking
                log.exception("A look at the running turns failed")


def _give(run: ServedRun, answer: Answer) -> None:
    """Hand an answer to the question; `Problem` where the question does not take it."""
    message = {"approval": answer.approval, "approved": answer.approved, "reason": answer.reason, "scope": answer.scope}
    text = run.text_of(answer.approval) if answer.text is None else answer.text
    message |= {"seen": answer.seen, "unread": answer.unread, "text": text}
    refused = run.answer(message, by_program=answer.seen is None)
    if refused is not None:
        raise Problem(422, refused["problem"])


def _catch_up(chat: Chat, history: Sequence[Message]) -> None:
    """Let the chat go on from ``history``: its own messages as far as they say the same, which hold more."""
    own = chat.transcript.messages
    same = 0
    while same < min(len(own), len(history)) and _said(own[same]) == _said(history[same]):
        same += 1
    if same < max(len(own), len(history)):
        try:
            chat.load(Transcript((*own[:same], *history[same:])))
        except ToolcallError as error:
            raise Problem(409, str(error)) from None


def _said(message: Message) -> tuple[Any, ...]:
    """What tells messages apart in every wire; how texts are parted is none of it."""
    return message.role, "".join(message.text.split()), tuple(call.id for call in message.calls)
