"""Writes AG-UI's events: `AgUiEncoder`. Their order is one that AG-UI's verifier accepts, whatever the order here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object, to_dict
from toolcall_nb.wire.ag_ui.calls import CallWriter
from toolcall_nb.wire.ag_ui.terms import (
    CHUNK,
    NO_EVENT,
    PROTOCOL_VERSION,
    STATE,
    USAGE,
    custom_event,
    extension,
    other_fields,
)
from toolcall_nb.wire.base import Frames, object_or_empty

_ROLES = ("system", "user", "assistant")


class AgUiEncoder:
    """Writes events as AG-UI's. The first run has the id ``run_id``, the next ``<run_id>-run-2`` and so on."""

    def __init__(self, thread_id: str = "thread", run_id: str = "run", numbered: bool | str = False) -> None:
        self._frames = Frames(numbered)
        self._thread_id = thread_id
        self._run_id = run_id
        self._runs = 0
        self._is_running = False
        self._role = "assistant"
        self._ids = (f"{run_id}-{number}" for number in itertools.count(1))
        self._calls = CallWriter(self._ids)
        self._blocks: dict[tuple[str, str], str] = {}  # kind and id of an open block: its message's id
        self._seams: set[str] = set()
        self._parent: str | None = None  # the message that the next call belongs to
        self._step: str | None = None
        self._steps = 0
        self._error: ev.Error | None = None  # held back until the next event shows whether it ends the run

    def encode(self, event: Event) -> bytes:
        """Returns the event, after the events that AG-UI requires before it."""
        return b"".join(map(self._frames.frame, self._with_run(event)))

    def close(self) -> bytes:
        """Returns the end of the run, if it has not ended."""
        events = [] if self._runs else [self._begin_run(None)]
        if self._is_running:
            events += self._end_run(None)
        return b"".join(map(self._frames.frame, events))

    # The run

    def _with_run(self, event: Event) -> Iterator[Object]:
        if self._error is not None and not isinstance(event, ev.Finish | ev.Abort | ev.FinishStep):
            yield custom_event(self._error)
            self._error = None
        if not self._is_running:
            yield self._begin_run(event)
            if isinstance(event, ev.Start):
                return
        yield from self._events(event)

    def _begin_run(self, event: Event | None) -> Object:
        self._is_running, self._role = True, "assistant"
        self._runs += 1
        more = NO_EVENT
        if isinstance(event, ev.Start):
            self._begin_message(event)
            more = {"type": event.type, **other_fields(event)}
        return {"type": "RUN_STARTED", **self._run(), "protocolVersion": PROTOCOL_VERSION, **extension(more)}

    def _run(self) -> Object:
        run_id = self._run_id if self._runs == 1 else f"{self._run_id}-run-{self._runs}"
        return {"threadId": self._thread_id, "runId": run_id}

    def _begin_message(self, event: ev.Start) -> None:
        self._role = event.role if event.role in _ROLES else "assistant"
        self._parent = None

    def _finish(self, event: ev.Finish | ev.Abort) -> Iterator[Object]:
        """Ends the message. The end of an assistant's message also ends the run."""
        if self._role == "assistant":
            yield from self._end_run(event)
            return
        yield from self._end_parts()
        if self._error is not None:
            yield custom_event(self._error)
            self._error = None
        self._calls.end_message()
        yield custom_event(event)
        self._role = "assistant"

    def _end_run(self, event: ev.Finish | ev.Abort | None) -> Iterator[Object]:
        yield from self._end_parts()
        usage = _usage(event)
        finish: Object = NO_EVENT if event is None else {**other_fields(event), "type": event.type}
        if self._error is not None:
            error: Object = {"type": "RUN_ERROR", "message": self._error.error_text, **usage}
            yield {**error, **extension({"type": "error", **other_fields(self._error, "errorText"), "finish": finish})}
        else:
            yield {"type": "RUN_FINISHED", **self._run(), "outcome": self._outcome(event), **usage, **extension(finish)}
        self._error = None
        self._calls.end_message()
        self._is_running, self._steps = False, 0

    def _outcome(self, event: ev.Finish | ev.Abort | None) -> Object:
        if isinstance(event, ev.Abort):
            return {"type": "cancelled"}
        if interrupts := self._calls.interrupts():
            return {"type": "interrupt", "interrupts": interrupts}
        pending = self._calls.pending()
        return {"type": "success", **({"pendingToolCallIds": pending} if pending else {})}

    def _end_parts(self) -> Iterator[Object]:
        yield from self._end_blocks()
        yield from self._calls.close()
        yield from self._end_step({})

    # Events within a run

    def _events(self, event: Event) -> Iterator[Object]:
        match event:
            case ev.Start():
                role = self._role
                self._begin_message(event)
                if self._role != role:
                    yield from self._end_parts()
                    self._calls.end_message()
                yield custom_event(event)
            case ev.Finish() | ev.Abort():
                yield from self._finish(event)
            case ev.Error():
                self._error = event
            case ev.StartStep():
                yield from self._start_step(event)
            case ev.FinishStep():
                yield from self._end_step(other_fields(event))
            case ev.Data():
                yield _data(event)
            case ev.TextStart() | ev.ReasoningStart():
                yield from self._text_start(event)
            case ev.TextDelta() | ev.ReasoningDelta():
                yield from self._text_delta(event)
            case ev.TextEnd() | ev.ReasoningEnd():
                yield from self._text_end(event)
            case ev.ToolInputStart() | ev.ToolInputAvailable() | ev.ToolInputError():
                yield from self._call(event)
            case ev.ToolInputDelta():
                yield from self._calls.delta(event)
            case ev.ToolOutputAvailable():
                self._parent = None  # a call that follows is another message
                yield from self._calls.output(event)
            case ev.ToolOutputError() | ev.ToolOutputDenied() | ev.ToolInterrupted():
                self._parent = None
                yield from self._calls.ended(event)
            case ev.ToolRetracted():
                yield from self._calls.retract(event)
            case ev.ToolApprovalRequest():
                yield from self._calls.ask(event)
            case ev.ToolApprovalResponse():
                yield from self._calls.answer(event)
            case _:
                yield custom_event(event)

    def _start_step(self, event: ev.StartStep) -> Iterator[Object]:
        yield from self._end_step({})
        self._steps += 1
        name = event.extra.get("stepName")
        self._step = name if isinstance(name, str) else f"step-{self._steps}"
        yield {"type": "STEP_STARTED", "stepName": self._step, **extension(other_fields(event))}

    def _end_step(self, more: Object) -> Iterator[Object]:
        if self._step is not None:
            yield {"type": "STEP_FINISHED", "stepName": self._step, **extension(more)}
            self._step = None

    def _call(self, event: ev.ToolInputStart | ev.ToolInputAvailable | ev.ToolInputError) -> Iterator[Object]:
        if not self._calls.has_begun(event.tool_call_id):
            yield from self._end_blocks()  # later text is another message, so that readers show it below the call
            self._parent = self._parent or next(self._ids)
        match event:
            case ev.ToolInputStart():
                yield from self._calls.start(event, self._parent)
            case ev.ToolInputAvailable():
                yield from self._calls.available(event, self._parent)
            case _:
                yield from self._calls.failed(event, self._parent)

    # Text and reasoning

    def _text_start(self, event: ev.TextStart | ev.ReasoningStart) -> Iterator[Object]:
        if isinstance(event, ev.TextStart) and event.seam:
            self._seams.add(event.id)
            yield custom_event(event)
            return
        self._seams.discard(event.id)
        yield from self._end_block((event.type.partition("-")[0], event.id), {})
        yield from self._begin_block(event, other_fields(event, "id"))

    def _begin_block(self, event: Event, more: Object) -> Iterator[Object]:
        kind, block = event.type.partition("-")[0], getattr(event, "id", "")
        message = self._blocks[kind, block] = next(self._ids)
        if kind == "text":
            self._parent = message
            yield {"type": "TEXT_MESSAGE_START", "messageId": message, "role": self._role, **extension(more)}
        else:
            yield {"type": "REASONING_START", "messageId": message}
            yield {"type": "REASONING_MESSAGE_START", "messageId": message, "role": "reasoning", **extension(more)}

    def _text_delta(self, event: ev.TextDelta | ev.ReasoningDelta) -> Iterator[Object]:
        kind = event.type.partition("-")[0]
        if kind == "text" and event.id in self._seams:
            yield custom_event(event)
            return
        if (kind, event.id) not in self._blocks:
            yield from self._begin_block(event, {})
        message = self._blocks[kind, event.id]
        more = other_fields(event, "id", "delta")
        if event.delta:
            name = "TEXT_MESSAGE_CONTENT" if kind == "text" else "REASONING_MESSAGE_CONTENT"
            yield {"type": name, "messageId": message, "delta": event.delta, **extension(more)}
        elif more:
            yield {"type": "CUSTOM", "name": CHUNK, "value": {**to_dict(event), "id": message}}

    def _text_end(self, event: ev.TextEnd | ev.ReasoningEnd) -> Iterator[Object]:
        kind = event.type.partition("-")[0]
        if kind == "text" and event.id in self._seams:
            self._seams.discard(event.id)
            yield custom_event(event)
        yield from self._end_block((kind, event.id), other_fields(event, "id"))

    def _end_block(self, key: tuple[str, str], more: Object) -> Iterator[Object]:
        message = self._blocks.pop(key, None)
        if message is None:
            return
        if key[0] == "text":
            yield {"type": "TEXT_MESSAGE_END", "messageId": message, **extension(more)}
        else:
            yield {"type": "REASONING_MESSAGE_END", "messageId": message, **extension(more)}
            yield {"type": "REASONING_END", "messageId": message}

    def _end_blocks(self) -> Iterator[Object]:
        for key in [*self._blocks]:
            yield from self._end_block(key, {})


def _data(event: ev.Data) -> Object:
    if (event.name, event.id) == (STATE, STATE) and not event.transient:
        return {"type": "STATE_SNAPSHOT", "snapshot": event.data, **extension(other_fields(event, "data", "id"))}
    if event.name == CHUNK:
        return custom_event(event)
    return {"type": "CUSTOM", "name": event.name, "value": event.data, **extension(other_fields(event, "data"))}


def _usage(event: ev.Finish | ev.Abort | None) -> Object:
    """Returns the token counts of the reply under AG-UI's names."""
    metadata = object_or_empty(event.message_metadata) if isinstance(event, ev.Finish) else {}
    usage, model = object_or_empty(metadata.get("usage")), metadata.get("model")
    counts = {theirs: usage[here] for here, theirs in USAGE.items() if type(usage.get(here)) is int}
    counts = {name: count for name, count in counts.items() if 0 <= count < 2**53}
    if not counts:
        return {}
    return {"usage": [{**({"model": model} if isinstance(model, str) else {}), **counts}]}
