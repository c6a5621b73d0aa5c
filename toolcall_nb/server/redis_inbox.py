"""Messages between the workers of a server, through Redis: `WorkerInbox` executes commands, and follows turns.

One blocking read serves both: of the worker's own inbox, and of the streams of all turns that it follows.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from secrets import token_hex
from typing import Any

import msgspec

from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.server.redis_keys import is_wrong_type, redis_key
from toolcall_nb.server.redis_turns import FollowedTurn
from toolcall_nb.server.responses import RETRY_AFTER, Problem

_log = logger("toolcall_nb.server")

_MESSAGE = b"message"
_MOST_MESSAGES = 10_000
_BLOCK_MILLISECONDS = 1000
_ENTRIES_AT_ONCE = 64
_REPLY_SECONDS = 10.0
_AGAIN_SECONDS = 0.25
_NO_WORKER = "The worker that runs this turn does not answer. Try again in a few seconds: then the turn has ended."
_FAILED = "The worker that runs this turn failed at the request. Its log says how."


class WorkerInbox:
    """The messages of one worker. All methods are for the event loop ``loop``.

    ``execute`` executes a command in a thread of its own; `ask` raises its `Problem` in the other worker.
    ``note_reader`` is called with thread, turn and the number of events that a reader elsewhere has taken.
    ``followed`` are the turns that are read for readers here.
    """

    def __init__(
        self,
        redis: Any,
        loop: asyncio.AbstractEventLoop,
        worker: str,
        execute: Callable[[dict[str, Any]], Any],
        note_reader: Callable[[str, str, int], None],
        followed: Mapping[str, FollowedTurn],
    ) -> None:
        self._redis, self._loop, self._worker = redis, loop, worker
        self._execute, self._note_reader, self._followed = execute, note_reader, followed
        self._last_id = "0-0"
        self._replies: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def read(self) -> None:
        """Reads until it is cancelled."""
        inbox, is_failing = redis_key("inbox", self._worker).encode(), False
        while True:
            turns = {turn.key.encode(): turn for turn in self._followed.values() if turn.ended is None}
            last_ids: dict[Any, Any] = {inbox: self._last_id, **{key: turn.last_id for key, turn in turns.items()}}
            try:
                streams = await self._redis.xread(last_ids, _ENTRIES_AT_ONCE, _BLOCK_MILLISECONDS)
            except Exception as error:
                if not is_failing:
                    _log.warning("The store cannot be read: %s", error)
                is_failing = True
                if is_wrong_type(error):
                    with suppress(Exception):  # the next attempt tries again
                        await self._end_damaged(turns.values())
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            is_failing = False
            for key, entries in streams or ():
                for entry in entries:
                    try:
                        turns[key].take([entry]) if key in turns else self._take(*entry)
                    except Exception:  # what one of them holds must not keep the others from being read
                        _log.exception("A message of another worker could not be read")

    async def _end_damaged(self, turns: Iterable[FollowedTurn]) -> None:
        """Removes the inbox, and ends the turns, whose keys hold no streams. Redis does not say which these are."""
        inbox = redis_key("inbox", self._worker)
        if not await self._is_stream(inbox):
            await self._redis.delete(inbox)  # it is made again by `renew`
        for turn in turns:
            if not await self._is_stream(turn.key):
                turn.end_as_damaged()

    async def _is_stream(self, key: str) -> bool:
        return await self._redis.type(key) in (b"stream", b"none")

    def _take(self, entry_id: bytes, fields: Mapping[bytes, bytes]) -> None:
        self._last_id = entry_id.decode()
        message = msgspec.json.decode(fields[_MESSAGE])
        match message["kind"]:
            case "command":
                name = "toolcall_nb-command"
                threading.Thread(target=self._execute_command, args=(message,), name=name, daemon=True).start()
            case "reply":
                future = self._replies.get(message["number"])
                if future is not None and not future.done():
                    future.set_result(message)
            case "read":
                self._note_reader(message["thread"], message["turn"], message["count"])

    def _execute_command(self, message: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"kind": "reply", "number": message["number"]}
        try:
            reply["result"] = self._execute(message["command"])
        except Problem as problem:
            reply |= {"status": problem.status, "detail": problem.detail}
        except Exception:
            _log.exception("A command of another worker failed")
            reply |= {"status": 500, "detail": _FAILED}
        asyncio.run_coroutine_threadsafe(self._send(message["from"], reply), self._loop)

    async def ask(self, worker: str, command: dict[str, Any]) -> Any:
        """Lets a worker execute a command; returns the result, or raises its `Problem`, or 503 if it has ended."""
        number = token_hex(8)
        future = self._replies[number] = self._loop.create_future()
        message = {"kind": "command", "number": number, "from": self._worker, "command": command}
        try:
            if not await self._send(worker, message):
                raise Problem(503, _NO_WORKER, RETRY_AFTER)
            reply = await asyncio.wait_for(future, _REPLY_SECONDS)
        except TimeoutError:
            raise Problem(503, _NO_WORKER, RETRY_AFTER) from None
        finally:
            del self._replies[number]
        if "status" in reply:
            raise Problem(reply["status"], reply["detail"])
        return reply["result"]

    async def send_position(self, turn: FollowedTurn) -> None:
        """Sends the worker of a turn how many events are read here, so that the turn goes on."""
        message = {"kind": "read", "thread": turn.thread, "turn": turn.head.turn, "count": turn.log.read_count}
        await self._send(turn.head.worker, message)

    async def wake(self) -> None:
        """Lets `read` look again at what is followed."""
        await self._send(self._worker, {"kind": "wake"})

    async def renew(self, milliseconds: int) -> None:
        """Keeps the inbox for so long."""
        key = redis_key("inbox", self._worker)
        if not await self._redis.pexpire(key, milliseconds):
            await self._redis.xadd(key, {_MESSAGE: b'{"kind":"wake"}'})
            await self._redis.pexpire(key, milliseconds)

    async def _send(self, worker: str, message: dict[str, Any]) -> bool:
        """Adds a message to a worker's inbox; returns whether it has one."""
        fields: Any = {_MESSAGE: msgspec.json.encode(message)}
        try:
            sent = await self._redis.xadd(redis_key("inbox", worker), fields, maxlen=_MOST_MESSAGES, nomkstream=True)
        except Exception as error:
            if is_wrong_type(error):  # its worker will make a new one
                return False
            raise
        return sent is not None
