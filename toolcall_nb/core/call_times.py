"""The times of tool calls: `CallTimes` computes them from timed events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from toolcall_nb.core import events as ev
from toolcall_nb.core.call_record import CallRecord
from toolcall_nb.core.call_states import CALL_ENDS
from toolcall_nb.core.events import Event, Json
from toolcall_nb.core.reducer import TranscriptBuilder, normalize_call_id
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.core.usage import read_requests

_NOT_OF_CALLS = frozenset((ev.Start, ev.StartStep, ev.FinishStep, ev.TextStart, ev.TextEnd, ev.Data))


class TimedEvent(NamedTuple):
    """An event and its time in seconds since the start of the run; None if that is unknown."""

    seconds: float | None
    event: Event


class CallTimes:
    """Keeps the records of the calls up to date: `note` each event with its time before it is applied.

    A call starts when its tool does. Streams of others seldom say when that is: without ``says_running``, a call
    starts when its input is complete. So does a call that the provider runs.
    """

    def __init__(self, says_running: bool = False) -> None:
        self.records: dict[str, CallRecord] = {}
        self._says_running = says_running

    def note(self, seconds: float, event: Any) -> None:
        """Notes the start, the run and the end of a call, its new id, and the tokens of its result."""
        if type(event) in _NOT_OF_CALLS:  # as most are; `match` would try one class after the other
            return
        match event:
            case ev.Finish() | ev.MessageMetadata():
                self._note_tokens(event.message_metadata)
            case ev.Abort():
                for record in self.records.values():
                    _end(record, seconds)
            case ev.ToolRetracted():
                if (
                    found := self.records.pop(normalize_call_id(event.tool_call_id), None)
                ) and event.successor is not None:
                    self.records[normalize_call_id(event.successor)] = found
            case ev.ToolInputStart() | ev.ToolInputAvailable() | ev.ToolInputError():
                record = self._open_record(normalize_call_id(event.tool_call_id))
                starts = isinstance(event, ev.ToolInputAvailable) and record.started is None
                if starts and (event.provider_executed or not self._says_running):
                    record.started = seconds
            case ev.ToolExecution(status="running"):
                self._open_record(normalize_call_id(event.tool_call_id)).started = seconds
            case ev.ToolOutputAvailable(preliminary=True) | ev.ToolOutputDenied():
                pass
            case _ if isinstance(event, CALL_ENDS):
                _end(self._open_record(normalize_call_id(event.tool_call_id)), seconds)

    def _open_record(self, call_id: str) -> CallRecord:
        """Returns the record of the call; a new one if there is none, or if that call has ended."""
        record = self.records.get(call_id)
        if record is None or record.seconds is not None:
            record = self.records[call_id] = CallRecord()
        return record

    def _note_tokens(self, metadata: Json) -> None:
        for request in read_requests(metadata) if isinstance(metadata, dict) else ():
            for call_id, tokens in request.added.items():
                if (record := self.records.get(call_id)) is not None:
                    record.tokens = tokens


def _end(record: CallRecord, seconds: float) -> None:
    if record.started is not None and record.seconds is None:
        record.seconds = max(0.0, seconds - record.started)


def timed_transcript(
    events: Iterable[TimedEvent], initial: Transcript | None = None, *, says_running: bool = False
) -> Transcript:
    """Builds the transcript of timed events, which continue ``initial``; its calls have their times."""
    times = CallTimes(says_running)
    builder = TranscriptBuilder(initial, times.records)
    for seconds, event in events:
        if seconds is not None:
            times.note(seconds, event)
        builder.apply(event)
    return builder.transcript
