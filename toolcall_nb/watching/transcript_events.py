"""Turns readings of a run that goes on into events: `TranscriptFollower`.

Each reading is a whole transcript. New parts of it are appended in the order in which they appeared; earlier events are
never changed. So the transcript of the events grows like that of any other run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import count

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.replay import call_events, part_events
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript

_ENDS = (ev.ToolOutputAvailable, ev.ToolOutputError, ev.ToolOutputDenied, ev.ToolInterrupted)


class TranscriptFollower:
    """Yields the events that lead from each reading to the next."""

    def __init__(self) -> None:
        self._sent_parts: Counter[Hashable] = Counter()  # parts that are no calls
        self._sent_calls: dict[str, ToolCall] = {}  # by the id in the events
        self._ids: dict[str, str] = {}  # by a call's id in the last reading: its id in the events
        self._running: set[str] = set()
        self._open: tuple[str, int] | None = None  # role and number of the open message
        self._metadata: str = ""
        self._reasons: dict[int, str | None] = {}
        self._numbers = count(1)

    def update(self, transcript: Transcript) -> Iterator[Event]:
        """Yields the events for a new reading."""
        self._match(transcript)
        parts: Counter[Hashable] = Counter()
        for number, message in enumerate(transcript.messages):
            self._reasons[number] = message.finish_reason
            for part in message.parts:
                if isinstance(part, ToolCall):
                    yield from self._call(number, message, self._with_sent_ids(part))
                    continue
                key = message.role, type(part).__name__, json_text(part)
                parts[key] += 1
                if parts[key] > self._sent_parts[key]:
                    self._sent_parts[key] += 1
                    yield from self._message(number, message)
                    yield from part_events(part, str(next(self._numbers)))
            if self._open == (message.role, number) and message.metadata:
                text = json_text(message.metadata)
                if text != self._metadata:
                    self._metadata = text
                    yield ev.MessageMetadata(message.metadata)

    def finish(self, reason: str | None) -> Iterator[Event]:
        """Ends the run: calls that still run are interrupted. ``reason`` is that of an early end."""
        for call in self._sent_calls.values():
            if not call.is_final and call.id in self._running:
                yield ev.ToolInterrupted(call.id)
        if reason is not None:
            yield from () if self._open else (ev.Start(),)
            yield ev.Abort(reason=reason)
        elif self._open is not None:
            yield self._end_of_message()

    # Messages

    def _message(self, number: int, message: Message) -> Iterator[Event]:
        """Begins a message unless the open one is of the same kind; each message of a user is one of its own."""
        is_same = self._open is not None and self._open[0] == message.role
        if is_same and (message.role == "assistant" or self._open == (message.role, number)):
            self._open = message.role, number
            return
        if self._open is not None:
            yield self._end_of_message()
        self._open, self._metadata = (message.role, number), ""
        yield ev.Start(role=None if message.role == "assistant" else message.role)

    def _end_of_message(self) -> Event:
        reason = self._reasons.get(self._open[1]) if self._open is not None else None
        return ev.Finish(finish_reason=reason or "stop")

    # Calls

    def _match(self, transcript: Transcript) -> None:
        """Gives each call of a reading the id of its call in the events: by its start, else its id, else its name.

        A call without an id of its own may have another number in each reading.
        """
        former, self._ids = self._ids, {}
        unmatched = dict(self._sent_calls)
        starts: dict[Hashable, list[str]] = {}
        for sent_id, sent in unmatched.items():
            starts.setdefault(_start_of(sent), []).append(sent_id)

        def note(call: ToolCall, sent_id: str) -> None:
            self._ids[call.id] = sent_id
            del unmatched[sent_id]

        for call in transcript.calls.values():
            if call.record.started is not None and (same := starts.get(_start_of(call))):
                note(call, same.pop(0))
        others = [call for call in transcript.calls.values() if call.id not in self._ids]
        for call in others:
            former_id = former.get(call.id)
            if former_id in unmatched and _may_be(unmatched[former_id], call):
                note(call, former_id)
        taken = {*self._sent_calls}
        for call in [call for call in others if call.id not in self._ids]:
            match = next((sent_id for sent_id, sent in unmatched.items() if _may_be(sent, call)), None)
            if match is not None:
                note(call, match)
                continue
            free, number = call.id, 2
            while free in taken:
                free, number = f"{call.id}-{number}", number + 1
            self._ids[call.id] = free
            taken.add(free)

    def _with_sent_ids(self, call: ToolCall) -> ToolCall:
        metadata = call.tool_metadata
        if metadata and metadata.get("parent") in self._ids:
            metadata = {**metadata, "parent": self._ids[metadata["parent"]]}
        return replace(call, id=self._ids[call.id], tool_metadata=metadata)

    def _call(self, number: int, message: Message, call: ToolCall) -> Iterator[Event]:
        sent = self._sent_calls.get(call.id)
        if sent is not None and sent.is_final:
            yield from self._times(call, sent)
            return
        if sent is None:
            yield from self._message(number, message)
        self._sent_calls[call.id] = call
        if sent is None or (sent.input, sent.tool_metadata) != (call.input, call.tool_metadata):
            yield from call_events(_without_end(call))
        sent_log = "" if sent is None else sent.log
        if call.log != sent_log:
            added = call.log[len(sent_log) :] if call.log.startswith(sent_log) else f"\n\n{call.log}"
            yield ev.ToolLog(call.id, added)
        if call.id not in self._running and (call.is_final or call.record.started is not None):
            self._running.add(call.id)
            yield ev.ToolExecution(call.id, "running")
        if call.is_final:
            yield from (event for event in call_events(call) if isinstance(event, _ENDS))
            yield from self._times(call, None)

    def _times(self, call: ToolCall, sent: ToolCall | None) -> Iterator[Event]:
        """Yields the times of the call's span, if it has any that were not sent."""
        record = call.record
        if record.seconds is None and record.tokens is None:
            return
        if sent is None or (sent.record.seconds, sent.record.tokens) != (record.seconds, record.tokens):
            self._sent_calls[call.id] = call
            yield ev.ToolTimes(call.id, record.started, record.seconds, record.tokens)


def _start_of(call: ToolCall) -> Hashable:
    """Returns the name and the start of a call, in microseconds: readings may differ by less."""
    started = call.record.started
    return call.name, None if started is None else round(started * 1_000_000)


def _may_be(sent: ToolCall, call: ToolCall) -> bool:
    """Whether a call of a reading may be one of the events. Two with other starts are different calls."""
    return sent.name == call.name and None in (sent.record.started, call.record.started)


def _without_end(call: ToolCall) -> ToolCall:
    """Returns the call as it was before its tool ran."""
    value = {} if call.input is MISSING else call.input
    return replace(call, state=State.INPUT_AVAILABLE, input=value, output=MISSING, error=None, traceback=None, log="")
