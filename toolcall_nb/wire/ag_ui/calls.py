"""Tool calls as AG-UI has them: a start, the arguments as JSON text, an end, and a result."""

from __future__ import annotations

from collections.abc import Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Json, Object, to_dict
from toolcall_nb.core.json_text import json_text
from toolcall_nb.wire.ag_ui.terms import CHUNK, ours, rest_of
from toolcall_nb.wire.base import JsonText

__all__ = ["CallWriter", "Ids", "custom"]

_SILENT: Object = {"type": None}
_INTERRUPTED = "The call was interrupted before it had a result."
_DENIED = "The call was denied"
_NO_CALL = "This was no call: its text stays text."


class Ids:
    """Message ids, each used once: ``<run>-1``, ``<run>-2``, …"""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._last = 0

    def next(self) -> str:
        """An id that was not used."""
        self._last += 1
        return f"{self._run_id}-{self._last}"


class _Call:
    """One call: its id on the wire, and what of its input was written there."""

    def __init__(self, native: str, name: str) -> None:
        self.native = native
        self.name = name
        self.text = JsonText()
        self.is_json: bool | None = None  # whether the text that is written is JSON: known by how it begins
        self.is_anew = False
        self.is_open = True
        self.has_result = False


class CallWriter:
    """Writes the calls of a stream, message by message."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._calls: dict[str, _Call] = {}
        self._earlier: dict[str, str] = {}  # calls of earlier messages: their ids on the wire
        self._taken: set[str] = set()
        self._asked: dict[str, str] = {}  # questions without an answer: the calls that they are about
        self._reasons: dict[str, str] = {}

    def begun(self, call_id: str) -> bool:
        """Whether a call of this id has begun in the message."""
        return call_id in self._calls

    def end_message(self) -> None:
        """Another message follows; its calls are others, also where they have the same ids."""
        self._earlier.update({call_id: call.native for call_id, call in self._calls.items()})
        self._calls.clear()
        self._asked.clear()

    def pending(self) -> list[str]:
        """The calls of the message that have no result, as the wire names them."""
        return [call.native for call in self._calls.values() if not call.has_result]

    def interrupts(self) -> list[Object]:
        """The questions that were not answered."""
        return [self._interrupt(asked, call_id) for asked, call_id in self._asked.items()]

    def close(self) -> Iterator[Object]:
        """The verifier wants every call ended before the run is; the input of these is not complete."""
        for call in self._calls.values():
            yield from self._end(call, _SILENT)

    # Input

    def start(self, event: ev.ToolInputStart, parent: str | None) -> Iterator[Object]:
        """A call begins. One that began before is written anew, which AG-UI cannot say."""
        if (call := self._calls.get(event.tool_call_id)) is not None:
            call.is_json = False
            call.is_anew = True
            yield custom(event)
        else:
            yield self._begin(event.tool_call_id, event.tool_name, parent, rest_of(event, "toolCallId", "toolName"))

    def delta(self, event: ev.ToolInputDelta) -> Iterator[Object]:
        """More of the input. What is no JSON is not for other readers, who take it for JSON."""
        call = self._calls.get(event.tool_call_id)
        delta = event.input_text_delta
        if call is None or not call.is_open or not _may_be_json(call, delta):
            yield custom(event)
        elif delta:
            call.text.add(delta)
            yield _arguments(call, delta)

    def available(self, event: ev.ToolInputAvailable, parent: str | None) -> Iterator[Object]:
        """The input is complete; after that, and edited, it is a chunk for this package's reader alone."""
        yield from self._begin_as_needed(event.tool_call_id, event.tool_name, parent)
        call = self._calls[event.tool_call_id]
        if not call.is_open:
            yield custom(event)
            return
        more = rest_of(event, "toolCallId", "toolName", "input")
        if event.tool_name != call.name:
            more["toolName"] = event.tool_name
        if not str(call.text).strip():
            yield _arguments(call, json_text(event.input))
        elif call.is_anew or not _is(call, event.input):
            more["input"] = event.input
        yield from self._end(call, more)

    def failed(self, event: ev.ToolInputError, parent: str | None) -> Iterator[Object]:
        """The input could not be used: a result that says so."""
        yield from self._begin_as_needed(event.tool_call_id, event.tool_name, parent)
        call = self._calls[event.tool_call_id]
        if call.is_open and not str(call.text).strip():
            yield _arguments(call, event.input if isinstance(event.input, str) else json_text(event.input))
        more = {"type": event.type, **rest_of(event, "toolCallId", "errorText")}
        yield from self._result(event.tool_call_id, event.error_text, more)

    def _begin_as_needed(self, call_id: str, name: str, parent: str | None) -> Iterator[Object]:
        if call_id not in self._calls:
            yield self._begin(call_id, name, parent, {})

    def _begin(self, call_id: str, name: str, parent: str | None, more: Object) -> Object:
        native, number = call_id, 1
        while native in self._taken:  # readers put what comes for an id that they know to the call that they know
            number += 1
            native = f"{call_id}~{number}"
        self._taken.add(native)
        self._calls[call_id] = _Call(native, name)
        own = more if native == call_id else {"toolCallId": call_id, **more}
        where = {} if parent is None else {"parentMessageId": parent}
        named = name if name.strip() else "tool"
        return {"type": "TOOL_CALL_START", "toolCallId": native, "toolCallName": named, **where, **ours(own)}

    def _end(self, call: _Call, more: Object) -> Iterator[Object]:
        if call.is_open:
            call.is_open = False
            yield {"type": "TOOL_CALL_END", "toolCallId": call.native, **ours(more)}

    # What became of it

    def output(self, event: ev.ToolOutputAvailable) -> Iterator[Object]:
        """The output, as text; a preliminary one is for this package's reader alone."""
        if event.preliminary:
            yield custom(event)
            return
        more = rest_of(event, "toolCallId", "output")
        content = event.output
        if not isinstance(content, str):
            content, more["json"] = json_text(content), True
        yield from self._result(event.tool_call_id, content, more)

    def ended(
        self, event: ev.ToolOutputError | ev.ToolOutputDenied | ev.ToolInterrupted | ev.ToolRetracted
    ) -> Iterator[Object]:
        """Any other end, as a text that says so."""
        more: Object = {"type": event.type}
        match event:
            case ev.ToolOutputError():
                text = event.error_text
                more |= rest_of(event, "toolCallId", "errorText")
            case ev.ToolOutputDenied():
                reason = self._reasons.get(event.tool_call_id)
                text = f"{_DENIED}: {reason}" if reason else f"{_DENIED}."
                more |= rest_of(event, "toolCallId")
            case ev.ToolInterrupted():
                text = _INTERRUPTED
                more |= rest_of(event, "transient")
            case _:
                text = _NO_CALL
                more |= rest_of(event, "transient")
        yield from self._result(event.tool_call_id, text, more)

    def retract(self, event: ev.ToolRetracted) -> Iterator[Object]:
        """What began as a call was none; or it has another id, which others need not know."""
        call = self._calls.get(event.tool_call_id)
        if call is None or call.has_result:
            yield custom(event)
        elif event.successor is None:
            yield from self.ended(event)
            self._earlier[event.tool_call_id] = self._calls.pop(event.tool_call_id).native
        else:
            yield custom(event)
            if event.successor not in self._calls:
                self._calls[event.successor] = self._calls.pop(event.tool_call_id)

    def _result(self, call_id: str, content: str, more: Object) -> Iterator[Object]:
        call = self._calls.get(call_id)
        if call is not None:
            yield from self._end(call, _SILENT)
            call.has_result = True
        native = call.native if call is not None else self._earlier.get(call_id, call_id)
        own = more if native == call_id else {"toolCallId": call_id, **more}
        result = {"type": "TOOL_CALL_RESULT", "messageId": self._ids.next(), "toolCallId": native, "content": content}
        self._asked = {asked: about for asked, about in self._asked.items() if about != call_id}
        yield {**result, "role": "tool", **ours(own)}

    # Approval

    def ask(self, event: ev.ToolApprovalRequest) -> Iterator[Object]:
        """A question: a chunk for now, and an interrupt if the run ends before its answer."""
        self._asked[event.approval_id] = event.tool_call_id
        yield custom(event)

    def answer(self, event: ev.ToolApprovalResponse) -> Iterator[Object]:
        """The answer to a question."""
        call_id = self._asked.pop(event.approval_id, None)
        if call_id is not None and event.reason:
            self._reasons[call_id] = event.reason
        yield custom(event)

    def _interrupt(self, asked: str, call_id: str) -> Object:
        call = self._calls.get(call_id)
        answer = {"approved": {"type": "boolean"}, "reason": {"type": "string"}}
        return {
            "id": asked,
            "reason": "tool_call",
            "message": f"May {call.name if call else 'the tool'} run?",
            "toolCallId": call.native if call else self._earlier.get(call_id, call_id),
            "responseSchema": {"type": "object", "properties": answer, "required": ["approved"]},
        }


def custom(event: Event) -> Object:
    """The event as a chunk that only this package reads."""
    return {"type": "CUSTOM", "name": CHUNK, "value": to_dict(event)}


def _arguments(call: _Call, delta: str) -> Object:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": call.native, "delta": delta}


def _may_be_json(call: _Call, delta: str) -> bool:
    if call.is_json is None and delta.strip():
        call.is_json = delta.lstrip().startswith(("{", "["))
    return call.is_json is not False


def _is(call: _Call, given: Json) -> bool:
    """Whether the text that was written says just this; as text, since for Python 1 == True."""
    said = call.text.event("", "")
    return isinstance(said, ev.ToolInputAvailable) and json_text(said.input) == json_text(given)
