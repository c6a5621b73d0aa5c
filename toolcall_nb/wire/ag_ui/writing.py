"""Writes AG-UI's events: `AgUiEncoder`. Their order is one that AG-UI's verifier accepts, whatever the order here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object, to_dict
from toolcall_nb.wire.ag_ui.calls import CallWriter
from toolcall_nb.wire.ag_ui.subagents import SubagentWriter
from toolcall_nb.wire.ag_ui.terms import (
    CHUNK,
    CONTINUES,
    NO_EVENT,
    PROTOCOL_VERSION,
    STATE,
    USAGE,
    custom_event,
    extension,
    other_fields,
)
from toolcall_nb.wire.base import Frames, ReplyUsage

_ROLES = ("system", "user", "assistant")
_TextEvent: TypeAlias = (
    ev.TextStart | ev.TextDelta | ev.TextEnd | ev.ReasoningStart | ev.ReasoningDelta | ev.ReasoningEnd
)


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
        self._subagents = SubagentWriter(self._ids)
        # The open blocks: kind, call around it and id; and the fields that name its message.
        self._blocks: dict[tuple[str, str | None, str], Object] = {}
        self._seams: set[str] = set()
        self._usage = ReplyUsage()
        self._begun: set[str | None] = set()  # the calls, or None, of whose open step something has come
        self._messages: dict[str | None, str] = {}  # by the call around it: the message that the next call belongs to
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
        if isinstance(event, ev.FinishStep):
            self._usage.add(event)
        ends_step = isinstance(event, ev.FinishStep) and self._subagents.has_step(event.parent)
        if self._error is not None and not (ends_step or isinstance(event, ev.Finish | ev.Abort)):
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
        self._messages.clear()

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
        usage = _usage(self._usage.take(event))
        finish: Object = NO_EVENT if event is None else {**other_fields(event), "type": event.type}
        if self._error is not None:
            error: Object = {"type": "RUN_ERROR", "message": self._error.error_text, **usage}
            yield {**error, **extension({"type": "error", **other_fields(self._error, "errorText"), "finish": finish})}
        else:
            yield {"type": "RUN_FINISHED", **self._run(), "outcome": self._outcome(event), **usage, **extension(finish)}
        self._error = None
        self._calls.end_message()
        self._is_running = False

    def _outcome(self, event: ev.Finish | ev.Abort | None) -> Object:
        if isinstance(event, ev.Abort):
            return {"type": "cancelled"}
        if interrupts := self._calls.interrupts():
            return {"type": "interrupt", "interrupts": interrupts}
        pending = self._calls.pending()
        return {"type": "success", **({"pendingToolCallIds": pending} if pending else {})}

    def _end_parts(self) -> Iterator[Object]:
        for key in [*self._blocks]:
            yield from self._end_block(key, {})
        yield from self._calls.close()
        yield from self._subagents.end_all({"outcome": {"type": "suspended"}} if self._calls.interrupts() else {})

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
            case ev.Error(parent=None):
                self._error = event
            case ev.Error():
                yield from self._begin_subagent(event.parent)
                yield from self._subagents.fail(event)
                self._messages.pop(event.parent, None)
            case ev.StartStep():
                if event.parent is None:
                    self._calls.begin_step()
                yield from self._begin_subagent(event.parent, event.agent)
                self._begun.discard(event.parent)
                yield from self._subagents.start_step(event)
            case ev.FinishStep() if self._subagents.has_step(event.parent):
                yield from self._subagents.end_step(event.parent, {"type": event.type, **other_fields(event)})
            case ev.Data():
                yield from self._begin_subagent(event.parent)
                yield {**_data(event), **self._subagents.tag(event.parent)}
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
                if not event.preliminary:
                    yield from self._end_call(event.tool_call_id)
                yield from self._calls.output(event)
            case ev.ToolOutputError() | ev.ToolOutputDenied() | ev.ToolInterrupted():
                yield from self._end_call(event.tool_call_id)
                yield from self._calls.ended(event)
            case ev.ToolRetracted():
                yield from self._calls.retract(event)
            case ev.ToolApprovalRequest():
                yield from self._calls.ask(event)
            case ev.ToolApprovalResponse():
                yield from self._calls.answer(event)
            case _:
                yield custom_event(event)

    def _begin_subagent(self, parent: str | None, agent: str | None = None) -> Iterator[Object]:
        """Announces the subagent inside the call, if it is not open."""
        if parent is None:
            return
        begun = [*self._subagents.begin(parent, *self._calls.about(parent), agent)]
        if begun:
            self._messages.pop(parent, None)
        yield from begun

    def _continues(self, parent: str | None) -> Object:
        """Returns the extension of what comes now: whether something came before it in its step."""
        is_first = not self._subagents.has_step(parent) or parent not in self._begun
        self._begun.add(parent)
        return {} if is_first else CONTINUES

    def _end_call(self, call_id: str) -> Iterator[Object]:
        """Ends the subagent inside the call, which has its result. A call that follows is another message."""
        self._messages.pop(self._calls.parent(call_id), None)
        self._messages.pop(call_id, None)
        yield from self._subagents.finish(call_id)

    def _call(self, event: ev.ToolInputStart | ev.ToolInputAvailable | ev.ToolInputError) -> Iterator[Object]:
        if not self._calls.has_begun(event.tool_call_id):
            parent = (event.tool_metadata or {}).get("parent")
            parent = parent if isinstance(parent, str) and parent else None
            yield from self._begin_subagent(parent)
            for key in [key for key in self._blocks if key[1] == parent]:
                yield from self._end_block(key, {})  # later text is another message, shown below the call
            more = {} if parent in self._messages else self._continues(parent)
            message = self._messages.setdefault(parent, next(self._ids))
            self._calls.place(parent, message, self._subagents.tag(parent), more)
        match event:
            case ev.ToolInputStart():
                yield from self._calls.start(event)
            case ev.ToolInputAvailable():
                yield from self._calls.available(event)
            case _:
                yield from self._calls.failed(event)

    # Text and reasoning

    def _text_start(self, event: ev.TextStart | ev.ReasoningStart) -> Iterator[Object]:
        if isinstance(event, ev.TextStart) and event.seam:
            self._seams.add(event.id)
            yield custom_event(event)
            return
        self._seams.discard(event.id)
        yield from self._end_block(_block(event), {})
        yield from self._begin_block(event, other_fields(event, "id"))

    def _begin_block(self, event: _TextEvent, more: Object) -> Iterator[Object]:
        yield from self._begin_subagent(event.parent)
        more = {**more, **self._continues(event.parent)}
        message = next(self._ids)
        names = self._blocks[_block(event)] = {"messageId": message, **self._subagents.tag(event.parent)}
        if event.type.startswith("text"):
            self._messages[event.parent] = message
            yield {"type": "TEXT_MESSAGE_START", **names, "role": self._role, **extension(more)}
        else:
            yield {"type": "REASONING_START", **names}
            yield {"type": "REASONING_MESSAGE_START", **names, "role": "reasoning", **extension(more)}

    def _text_delta(self, event: ev.TextDelta | ev.ReasoningDelta) -> Iterator[Object]:
        is_text = isinstance(event, ev.TextDelta)
        if is_text and event.id in self._seams:
            yield custom_event(event)
            return
        if _block(event) not in self._blocks:
            yield from self._begin_block(event, {} if event.parent is None else {"parent": event.parent})
        names = self._blocks[_block(event)]
        more = _more(event)
        if event.delta:
            name = "TEXT_MESSAGE_CONTENT" if is_text else "REASONING_MESSAGE_CONTENT"
            yield {"type": name, **names, "delta": event.delta, **extension(more)}
        elif more:
            yield {"type": "CUSTOM", "name": CHUNK, "value": {**to_dict(event), "id": names["messageId"]}}

    def _text_end(self, event: ev.TextEnd | ev.ReasoningEnd) -> Iterator[Object]:
        if isinstance(event, ev.TextEnd) and event.id in self._seams:
            self._seams.discard(event.id)
            yield custom_event(event)
        yield from self._end_block(_block(event), _more(event))

    def _end_block(self, key: tuple[str, str | None, str], more: Object) -> Iterator[Object]:
        names = self._blocks.pop(key, None)
        if names is None:
            return
        if key[0] == "text":
            yield {"type": "TEXT_MESSAGE_END", **names, **extension(more)}
        else:
            yield {"type": "REASONING_MESSAGE_END", **names, **extension(more)}
            yield {"type": "REASONING_END", **names}


def _block(event: _TextEvent) -> tuple[str, str | None, str]:
    return event.type.partition("-")[0], event.parent, event.id


def _more(event: _TextEvent) -> Object:
    """Returns the other fields of a delta or an end. The call around it is that of the block, unless there are any."""
    more = other_fields(event, "id", "delta")
    return {} if more.keys() <= {"parent"} else more


def _data(event: ev.Data) -> Object:
    if (event.name, event.id, event.parent) == (STATE, STATE, None) and not event.transient:
        return {"type": "STATE_SNAPSHOT", "snapshot": event.data, **extension(other_fields(event, "data", "id"))}
    if event.name == CHUNK:
        return custom_event(event)
    return {"type": "CUSTOM", "name": event.name, "value": event.data, **extension(other_fields(event, "data"))}


def _usage(used: list[tuple[str | None, Mapping[str, int | float]]]) -> Object:
    """Returns the token counts of the reply under AG-UI's names."""
    entries: list[Object] = []
    for model, usage in used:
        counts = {theirs: count for here, theirs in USAGE.items() if type(count := usage.get(here)) is int}
        entries += [{**({} if model is None else {"model": model}), **counts}] if counts else []
    return {"usage": entries} if entries else {}
