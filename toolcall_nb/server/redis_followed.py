"""The turns of other workers that are read here, and the ends of those whose workers have ended: `FollowedTurns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolcall_nb.redaction import masked_value
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.redaction.registered_secrets import known_secrets
from toolcall_nb.server.redis_keys import (
    TurnHead,
    events_key,
    head_key,
    is_wrong_type,
    thread_key,
    version_of,
    worker_key,
)
from toolcall_nb.server.redis_scripts import END_TURN
from toolcall_nb.server.redis_turns import CHANGES, END_ID, FollowedTurn, encode_changes
from toolcall_nb.server.settings import Settings
from toolcall_nb.server.store import DamagedThread, encode_thread
from toolcall_nb.server.turn import Change

_log = logger("toolcall_nb.server")

_UNREAD_SECONDS = 10.0
"""How long a turn is followed without a reader."""


class FollowedTurns:
    """The turns of other workers by their ids. All methods are for the event loop of ``redis``."""

    def __init__(self, redis: Any, settings: Settings, clock: Callable[[], float]) -> None:
        self.turns: dict[str, FollowedTurn] = {}
        self._redis, self._settings, self._clock = redis, settings, clock

    async def follow(self, thread: str, head: TurnHead) -> FollowedTurn:
        """Returns the turn, with all changes that Redis has now if it was not followed before."""
        if (turn := self.turns.get(head.turn)) is not None:
            turn.unread_since = self._clock()
            return turn
        key = events_key(head.turn)
        async with self._redis.pipeline() as pipe:
            pipe.xrange(key)
            pipe.hget(thread_key(thread), "text")
            entries, stored = results = await pipe.execute(raise_on_error=False)
        for result in results:
            if isinstance(result, Exception) and not is_wrong_type(result):
                raise result
        turn = FollowedTurn(thread, head, b"" if is_wrong_type(stored) else stored, self._clock)
        if is_wrong_type(entries):
            turn.end_as_damaged()
        else:
            turn.take(entries)
        turn.has_page = turn.ended is None
        return self.turns.setdefault(head.turn, turn)

    async def end(self, turn: FollowedTurn) -> None:
        """Ends a turn whose worker has ended: stores what had come, and tells all readers."""
        limits = self._settings.limits
        keys = thread_key(turn.thread), head_key(turn.thread), turn.key
        while turn.ended is None:
            turn.take(await self._redis.xrange(turn.key, min=f"({turn.last_id}"))
            if turn.log.is_closed:
                return
            changes = turn.last_changes()
            data, text = encode_changes(changes), self._text_after(turn, changes)
            kept = text, version_of(text), int(limits.store_seconds), int(limits.linger_seconds) + 1
            if not await self._redis.eval(END_TURN, 3, *keys, turn.last_id, END_ID, data, *kept):
                continue
            _log.warning("The worker %s has ended; its turn of the thread %s ends here", turn.head.worker, turn.thread)
            turn.take([(END_ID.encode(), {CHANGES: data})])

    def _text_after(self, turn: FollowedTurn, changes: Sequence[Change]) -> bytes:
        """Returns the thread with what had come, as it is stored; nothing if the stored one is damaged."""
        try:
            transcript = turn.transcript_after(changes)
        except DamagedThread as error:
            _log.warning("%s", error)
            return b""
        if self._settings.masking:
            transcript = masked_value(transcript, known_secrets())[0]
        return encode_thread(turn.thread, transcript)

    async def check(self) -> list[FollowedTurn]:
        """Ends turns whose workers have ended, and forgets those that nobody reads; returns those that are read."""
        now = self._clock()
        for name, turn in [*self.turns.items()]:
            if turn.log.readers:
                turn.unread_since = now
            elif now - turn.unread_since > _UNREAD_SECONDS:
                del self.turns[name]
        turns = [turn for turn in self.turns.values() if turn.ended is None]
        workers = {turn.head.worker for turn in turns}
        ended = {worker for worker in workers if not await self._redis.exists(worker_key(worker))}
        for turn in turns:
            if turn.head.worker in ended:
                await self.end(turn)
        return [turn for turn in turns if turn.ended is None and turn.log.readers]
