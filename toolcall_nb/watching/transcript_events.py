"""Turns readings of a run that goes on into events: `TranscriptFollower`.

Each reading is a whole transcript. What is new in it is appended in the order in which it became known; what was said
stays. So the transcript of the events grows like that of any other run.
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
        self._known: Counter[Hashable] = Counter()  # parts that are no calls
        self._shown: dict[str, ToolCall] = {}  # by the id that was shown first
        self._ids: dict[str, str] = {}  # of a reading: the id that was shown first
        self._running: set[str] = set()
        self._open: tuple[str, int] | None = None  # role and number of the open message
        self._metadata: str = ""
        self._reasons: dict[int, str | None] = {}
        self._numbers = count(1)

    def update(self, transcript: Transcript) -> Iterator[Event]:
        """Yields the events for a new reading."""
        self._match(transcript)
        told: Counter[Hashable] = Counter()
        for number, message in enumerate(transcript.messages):
            self._reasons[number] = message.finish_reason
            for part in message.parts:
                if isinstance(part, ToolCall):
                    yield from self._call(number, message, self._with_shown_ids(part))
                    continue
                key = message.role, type(part).__name__, json_text(part)
                told[key] += 1
                if told[key] > self._known[key]:
                    self._known[key] += 1
                    yield from self._message(number, message)
                    yield from part_events(part, str(next(self._numbers)))
            yield from self._note_metadata(number, message)

    def finish(self, reason: str | None) -> Iterator[Event]:
        """Ends the run: calls that still run are interrupted. ``reason`` is that of an early end."""
        for call in self._shown.values():
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

    def _note_metadata(self, number: int, message: Message) -> Iterator[Event]:
        if self._open == (message.role, number) and message.metadata:
            text = json_text(message.metadata)
            if text != self._metadata:
                self._metadata = text
                yield ev.MessageMetadata(message.metadata)

    # Calls

    def _match(self, transcript: Transcript) -> None:
        """Finds for each call of a reading the one that was shown: by its start, else its id, else its name.

        A call without an id of its own may have another number in each reading.
        """
        former, self._ids = self._ids, {}
        left = dict(self._shown)
        starts: dict[Hashable, list[str]] = {}
        for own, shown in left.items():
            starts.setdefault(_start_of(shown), []).append(own)

        def note(call: ToolCall, own: str) -> None:
            self._ids[call.id] = own
            del left[own]

        for call in transcript.calls.values():
            if call.record.started is not None and (same := starts.get(_start_of(call))):
                note(call, same.pop(0))
        others = [call for call in transcript.calls.values() if call.id not in self._ids]
        for call in others:
            known = former.get(call.id)
            if known in left and _may_be(left[known], call):
                note(call, known)
        taken = {*self._shown}
        for call in [call for call in others if call.id not in self._ids]:
            found = next((own for own, shown in left.items() if _may_be(shown, call)), None)
            if found is not None:
                note(call, found)
                continue
            free, number = call.id, 2
            while free in taken:
                free, number = f"{call.id}-{number}", number + 1
            self._ids[call.id] = free
            taken.add(free)

    def _with_shown_ids(self, call: ToolCall) -> ToolCall:
        metadata = call.tool_metadata
        if metadata and metadata.get("parent") in self._ids:
            metadata = {**metadata, "parent": self._ids[metadata["parent"]]}
        return replace(call, id=self._ids[call.id], tool_metadata=metadata)

    def _call(self, number: int, message: Message, call: ToolCall) -> Iterator[Event]:
        shown = self._shown.get(call.id)
        if shown is not None and shown.is_final:
            yield from self._times(call, shown)
            return
        if shown is None:
            yield from self._message(number, message)
        self._shown[call.id] = call
        if shown is None or (shown.input, shown.tool_metadata) != (call.input, call.tool_metadata):
            yield from (event for event in call_events(_as_asked(call)))
        said = "" if shown is None else shown.log
        if call.log != said:
            added = call.log[len(said) :] if call.log.startswith(said) else f"\n\n{call.log}"
            yield ev.ToolLog(call.id, added)
        if call.id not in self._running and (call.is_final or call.record.started is not None):
            self._running.add(call.id)
            yield ev.ToolExecution(call.id, "running")
        if call.is_final:
            yield from (event for event in call_events(call) if isinstance(event, _ENDS))
            yield from self._times(call, None)

    def _times(self, call: ToolCall, shown: ToolCall | None) -> Iterator[Event]:
        """Yields the times of the call's span, if they are known and new."""
        record = call.record
        if record.seconds is None and record.tokens is None:
            return
        if shown is None or (shown.record.seconds, shown.record.tokens) != (record.seconds, record.tokens):
            self._shown[call.id] = call
            yield ev.ToolTimes(call.id, record.started, record.seconds, record.tokens)


def _start_of(call: ToolCall) -> Hashable:
    """Returns the name and the start of a call, in microseconds: readings may differ by less."""
    started = call.record.started
    return call.name, None if started is None else round(started * 1_000_000)


def _may_be(shown: ToolCall, call: ToolCall) -> bool:
    """Whether a call may be one that was shown. Two with other starts are different calls."""
    return shown.name == call.name and None in (shown.record.started, call.record.started)


def _as_asked(call: ToolCall) -> ToolCall:
    """Returns the call without what comes after its arguments."""
    given = {} if call.input is MISSING else call.input
    return replace(call, state=State.INPUT_AVAILABLE, input=given, output=MISSING, error=None, traceback=None, log="")
