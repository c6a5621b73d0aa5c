"""Writes the changes of all turns of a worker to Redis: `JournalWriter` sends what waits in one round trip."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.server.redis_keys import head_key, is_wrong_type
from toolcall_nb.server.redis_scripts import FORGET_TURN
from toolcall_nb.server.redis_turns import CHANGES, DAMAGED, END_ID, RedisJournal, decode_changes, ending_changes
from toolcall_nb.server.turn import Change

_log = logger("toolcall_nb.server")

RUNNING_SECONDS = 600
"""How long the turns of a worker outlive it. While it lives, it renews them."""
_AGAIN_SECONDS = 0.25
_GIVE_UP_SECONDS = 30.0
_TAKEN_ID = "equal or smaller"
"""In the error of Redis for an entry after the end of a turn."""
_UNREACHABLE = (
    "The server's store could not be reached, so the answer ends here and is not stored. Send the message again later."
)


class JournalWriter:
    """Writes journals in the event loop ``loop``. ``forget`` is called with each journal that has ended.

    An ended turn stays in Redis for ``linger`` seconds.
    """

    def __init__(
        self, redis: Any, loop: asyncio.AbstractEventLoop, linger: int, forget: Callable[[RedisJournal], None]
    ) -> None:
        self._redis, self._loop, self._linger, self._forget = redis, loop, linger, forget
        self._waiting: dict[RedisJournal, None] = {}
        self._has_work = asyncio.Event()
        self._failing_since: float | None = None
        self._is_stopping = False

    def wake(self, journal: RedisJournal) -> None:
        """Notes, in any thread, that a journal has something to write."""
        self._loop.call_soon_threadsafe(self._add, journal)

    def _add(self, journal: RedisJournal) -> None:
        self._waiting[journal] = None
        self._has_work.set()

    def stop(self) -> None:
        """Ends `write` once nothing waits."""
        self._is_stopping = True
        self._has_work.set()

    async def write(self) -> None:
        """Writes until `stop` is called."""
        while self._waiting or not self._is_stopping:
            await self._has_work.wait()
            self._has_work.clear()
            journals, self._waiting = [*self._waiting], {}
            try:
                await self._write(journals)
                self._failing_since = None
            except Exception as error:
                if self._failing_since is None:
                    _log.warning("The store cannot be written: %s", error)
                await self._try_again(journals)

    async def _write(self, journals: Sequence[RedisJournal]) -> None:
        entries = [(journal, entry) for journal in journals if (entry := journal.next_entry()) is not None]
        async with self._redis.pipeline(transaction=False) as pipe:
            places = [self._add_entry(pipe, journal, entry_id, data) for journal, (entry_id, data) in entries]
            results = await pipe.execute(raise_on_error=False)
        failure: Exception | None = None
        for (journal, (entry_id, data)), place in zip(entries, places, strict=True):
            result = results[place]
            if isinstance(result, Exception) and _TAKEN_ID in str(result):
                await self._read_instead(journal, entry_id, data)
            elif is_wrong_type(result):
                self._end(journal, DAMAGED, f"What is stored of it is damaged: {journal.key} is no stream.")
            elif isinstance(result, Exception):
                failure = result
            else:
                journal.confirm()
            if journal.is_over:
                self._forget(journal)
            else:
                self._add(journal)
        if failure is not None:
            raise failure

    def _add_entry(self, pipe: Any, journal: RedisJournal, entry_id: str, data: bytes) -> int:
        """Adds the commands for an entry; returns the place of the entry's own."""
        head = head_key(journal.thread)
        if entry_id == "1-0":  # the turn's tools and model are known since it was claimed
            pipe.set(head, msgspec.json.encode(journal.head), ex=RUNNING_SECONDS, xx=True)
        place = len(pipe)
        pipe.xadd(journal.key, {CHANGES: data}, id=entry_id)
        if entry_id == "1-0":
            pipe.expire(journal.key, RUNNING_SECONDS)
        elif entry_id == END_ID:
            pipe.eval(FORGET_TURN, 2, head, journal.key, journal.head.turn, self._linger)
        return place

    async def _read_instead(self, journal: RedisJournal, entry_id: str, data: bytes) -> None:
        """Looks who has written the entry: this worker, before it lost the connection, or one that ended the turn."""
        found = await self._redis.xrange(journal.key, min=f"({journal.last_id}")
        if found and found[0] == (entry_id.encode(), {CHANGES: data}):
            journal.confirm()
            return
        changes = [change for _, fields in found for change in decode_changes(fields.get(CHANGES, b""))]
        self._lose(journal, changes, "Another worker took this one for ended, and has ended the turn.")

    async def _try_again(self, journals: Sequence[RedisJournal]) -> None:
        now = self._loop.time()
        self._failing_since = self._failing_since or now
        if now - self._failing_since > _GIVE_UP_SECONDS:
            for journal in {*journals, *self._waiting}:
                self._end(journal, _UNREACHABLE, "The store cannot be reached.")
            self._waiting.clear()
        else:
            for journal in journals:
                self._add(journal)
            await asyncio.sleep(_AGAIN_SECONDS)

    def _end(self, journal: RedisJournal, message: str, why: str) -> None:
        """Ends a turn that cannot be stored, with a message for its readers."""
        events = [] if journal.turn is None else journal.turn.log.events
        self._lose(journal, ending_changes(events, message), why)

    def _lose(self, journal: RedisJournal, changes: Sequence[Change], why: str) -> None:
        journal.lose(changes)
        if journal.turn is not None:
            name = "toolcall_nb-end"
            threading.Thread(target=journal.turn.stop, args=(why,), name=name, daemon=True).start()
