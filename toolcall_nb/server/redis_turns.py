"""Turns in Redis: `RedisJournal` writes the changes of a turn that runs here, `FollowedTurn` reads those of another.

A turn is a stream of Redis. Its entries have the ids 1, 2, 3 …, and the last one has `END_ID`, which no id exceeds. So
Redis itself refuses a change after the end, whoever has written the end: a worker that was taken for dead cannot go on.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import asdict

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, from_dict, to_dict
from toolcall_nb.core.json_text import json_text, read_json
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.server.event_log import event_size
from toolcall_nb.server.redis_keys import TurnHead, events_key
from toolcall_nb.server.responses import Question
from toolcall_nb.server.store import decode_thread
from toolcall_nb.server.turn import Change, OpenQuestions, ServedTurn, TurnEnd, TurnResponse
from toolcall_nb.wire import WIRE_NAMES

_log = logger("toolcall_nb.server")

END_ID = f"{2**63}-0"
CHANGES = b"changes"
"""The field of an entry that has its changes, as JSON."""

StreamEntry: TypeAlias = tuple[bytes, Mapping[bytes, bytes]]
"""An entry of a stream: its id and its fields."""

_ENTRY_BYTES = 64_000
"""Approximate bytes of changes in one entry."""
_AHEAD_BYTES = 256_000
"""Approximate bytes of changes that may wait for Redis; then the model waits."""
_CHANGE_BYTES = 100
_WAIT_SECONDS = 60.0
DAMAGED = "What the server's store held of this answer is damaged, so it ends here. Send the message again."
_WORKER_ENDED = (
    "The worker that was answering has ended. What had come is kept in the thread; send the message again for a whole "
    "answer."
)


def encode_changes(changes: Iterable[Change]) -> bytes:
    """Returns the changes as JSON."""
    return json_text([*map(_encoded, changes)]).encode("utf-8", "surrogatepass")


def decode_changes(data: bytes) -> list[Change]:
    """Returns the changes of `encode_changes`; logs a warning for data that is no change, and leaves it out."""
    changes: list[Change] = []
    try:
        values = [*read_json(data.decode("utf-8", "surrogatepass"))]
    except Exception as error:  # a store that others may write to can hold anything
        _log.warning("The store holds changes of a turn that cannot be read, %.80r: %s", data, error)
        return changes
    for value in values:
        try:
            changes.append(_decoded(value))
        except Exception as error:
            _log.warning("The store holds a change of a turn that cannot be read, %.80r: %s", value, error)
    return changes


def _encoded(change: Change) -> dict[str, Any]:
    match change:
        case TurnResponse():
            return {"response": asdict(change)}
        case OpenQuestions():
            return {"questions": dict(change.forms)}
        case TurnEnd():
            return {"end": True}
        case _:
            return {"event": to_dict(change)}


def _decoded(value: Mapping[str, Any]) -> Change:
    if "event" in value:
        return from_dict(value["event"])
    if "response" in value:
        response = msgspec.convert(value["response"], TurnResponse)
        if response.wire not in WIRE_NAMES or response.start < 0:
            raise ValueError("it is no response of a server")
        return response
    if "questions" in value:
        msgspec.convert(value["questions"], dict[str, Question])
        return OpenQuestions(value["questions"])
    if value != {"end": True}:
        raise ValueError("it is of no known kind")
    return TurnEnd()


class RedisJournal:
    """The changes of one turn on their way to Redis. Those that Redis has are applied to the turn.

    ``version`` is that of the stored thread. ``wake`` is called, in any thread, when there is something to write.
    `next_entry`, `confirm` and `lose` are for the thread that writes.
    """

    def __init__(self, thread: str, head: TurnHead, version: str, wake: Callable[[RedisJournal], None]) -> None:
        self.thread, self.head, self.version = thread, head, version
        self.key = events_key(head.turn)
        self.turn: ServedTurn | None = None
        self._wake = wake
        self._waiting: deque[tuple[Change, int]] = deque()
        self._size = 0
        self._entry: tuple[str, list[tuple[Change, int]], bytes] | None = None
        self._written = 0
        self._is_awake = False
        self._is_over = False
        self._changed = threading.Condition()

    # For the turn

    def begin(self, turn: ServedTurn) -> None:
        """Announces the turn to other workers, with its first change."""
        self.turn = turn
        self.head = TurnHead(self.head.turn, self.head.worker, tuple(turn.tools), turn.model)

    def write(self, change: Change) -> None:
        """Adds a change; never waits. After the end it is ignored."""
        size = _CHANGE_BYTES if isinstance(change, TurnResponse | OpenQuestions | TurnEnd) else event_size(change)
        with self._changed:
            if self._is_over:
                return
            self._waiting.append((change, size))
            self._size += size
            is_awake, self._is_awake = self._is_awake, True
        if not is_awake:
            self._wake(self)

    def wait_for_room(self) -> None:
        """Waits while too much is not kept yet."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._size <= _AHEAD_BYTES)

    def wait_until_ended(self) -> None:
        """Waits until the end of the turn is applied."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over, _WAIT_SECONDS)

    # For the writer

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended."""
        return self._is_over

    def next_entry(self) -> tuple[str, bytes] | None:
        """Returns the id and the data of the next entry, the same one until it is confirmed; None if nothing waits."""
        with self._changed:
            if self._entry is None and self._waiting:
                taken, size = [self._waiting.popleft()], 0
                while self._waiting and (size := size + taken[-1][1]) < _ENTRY_BYTES:
                    taken.append(self._waiting.popleft())
                is_end = isinstance(taken[-1][0], TurnEnd)
                entry_id = END_ID if is_end else f"{self._written + 1}-0"
                self._entry = (entry_id, taken, encode_changes(change for change, _ in taken))
            self._is_awake = self._entry is not None
            return None if self._entry is None else (self._entry[0], self._entry[2])

    def confirm(self) -> None:
        """Applies the entry, which Redis has."""
        assert self._entry is not None
        assert self.turn is not None
        entry_id, taken, _ = self._entry
        for change, _ in taken:
            self.turn.apply(change)
        with self._changed:
            self._entry = None
            self._written += 1
            self._size -= sum(size for _, size in taken)
            self._is_over = entry_id == END_ID
            self._changed.notify_all()

    def lose(self, changes: Sequence[Change]) -> None:
        """Ends the turn with ``changes`` in place of its own: another worker has ended it, or Redis is gone."""
        with self._changed:
            if self._is_over:
                return
            self._waiting.clear()
            self._entry = None
        if self.turn is not None:
            for change in changes:
                self.turn.apply(change)
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    @property
    def last_id(self) -> str:
        """The id of the last entry that Redis is known to have."""
        return f"{self._written}-0"


class FollowedTurn(ServedTurn):
    """A turn that runs at another worker. ``stored`` is the thread, as it was when following began."""

    def __init__(self, thread: str, head: TurnHead, stored: bytes | None, clock: Callable[[], float]) -> None:
        super().__init__(thread, head.tools, head.model, ahead=sys.maxsize, clock=clock)
        self.head, self.key = head, events_key(head.turn)
        self.last_id = "0-0"
        self.unread_since = clock()
        self._stored = stored

    @property
    def before(self) -> Transcript:
        """The conversation before the turn."""
        return Transcript() if self._stored is None else decode_thread(self.thread, self._stored)

    @property
    def transcript(self) -> Transcript:
        """The whole conversation of the thread. The stored one has the turn already if the turn had ended."""
        return self.transcript_after(()) if self.has_page else self.before

    def transcript_after(self, changes: Sequence[Change]) -> Transcript:
        """Returns the conversation with the turn's events so far, and then those among ``changes``."""
        builder = TranscriptBuilder(self.before)
        for change in (*self.log.events, *changes):
            if not isinstance(change, TurnResponse | OpenQuestions | TurnEnd):
                builder.apply(change)
        return builder.transcript

    def take(self, entries: Iterable[StreamEntry]) -> None:
        """Applies the entries that are new."""
        for entry_id, fields in entries:
            name = entry_id.decode()
            if _number(name) > _number(self.last_id):
                self.last_id = name
                for change in decode_changes(fields.get(CHANGES, b"")):
                    self.apply(change)
                if name == END_ID and self.ended is None:  # its end is damaged
                    self.apply(TurnEnd())

    def last_changes(self) -> list[Change]:
        """Returns the changes that end a turn whose worker has ended."""
        return ending_changes(self.log.events, _WORKER_ENDED)

    def end_as_damaged(self) -> None:
        """Ends the turn for readers here, since Redis does not hold its changes any more."""
        _log.warning("The store holds a turn that cannot be read: %s is no stream", self.key)
        for change in ending_changes(self.log.events, DAMAGED):
            self.apply(change)


def ending_changes(log: Sequence[Event], why: str) -> list[Change]:
    """Returns the changes that end a turn early."""
    return [*ending_events(log, why), OpenQuestions({}), TurnEnd()]


def ending_events(log: Sequence[Event], why: str) -> list[Event]:
    """Returns the events that end an answer early; none if it has its end."""
    is_answer = False
    for event in log:
        if isinstance(event, ev.Start):
            is_answer = event.role in (None, "assistant")
        elif is_answer and isinstance(event, ev.Finish | ev.Abort):
            return []
    return [*([] if is_answer else [ev.Start()]), ev.Error(why), ev.Abort(reason="the worker ended")]


def _number(entry_id: str) -> int:
    return int(entry_id.partition("-")[0])
