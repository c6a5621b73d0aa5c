"""AG-UI's events as ours. See `toolcall_nb.wire.ag_ui`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object, from_dict
from toolcall_nb.errors import WireError
from toolcall_nb.wire.ag_ui.documents import Documents
from toolcall_nb.wire.ag_ui.snapshot import Seen, snapshot_events
from toolcall_nb.wire.ag_ui.terms import CHUNK, USAGE, chunk, ours_of, text_of
from toolcall_nb.wire.base import JsonEvents, JsonText, broke_off, mapping

__all__ = ["AgUiDecoder"]

_ROLES = {"developer": "system", "system": "system", "user": "user"}
_ASIDE = ("RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE")
"""Events that a message sent in chunks goes on after (client, chunks/transform.ts)."""

_THINKING = "thinking"
_NO_MESSAGE = "The agent reported an error and said no more."


class AgUiDecoder(JsonEvents):
    """Runs to messages: see the package's own docstring for what becomes of what."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str, JsonText]] = {}  # open ones: id and name here, and the arguments
        self._ids: dict[str, str] = {}  # of calls: the wire's to ours, where they differ
        self._blocks: dict[tuple[str, str], None] = {}  # open messages: "text" or "reasoning", and the id
        self._seen = Seen()
        self._asked: set[str] = set()
        self._role: str | None = None
        self._lane: tuple[str, str] | None = None  # what is sent in chunks and not ended: its kind and id
        self._documents = Documents()
        self._is_running = False
        self._thoughts = 0
        self._handlers = self._table()
        super().__init__(self._event, self._ended)

    def _table(self) -> Mapping[str, Callable[[Object], Iterator[Event]]]:
        return {
            "RUN_STARTED": self._run_started,
            "RUN_FINISHED": self._run_finished,
            "RUN_ERROR": self._run_error,
            "STEP_STARTED": lambda e: chunk(e, "start-step", stepName=text_of(e, "stepName")),
            "STEP_FINISHED": lambda e: chunk(e, "finish-step", stepName=text_of(e, "stepName")),
            "TEXT_MESSAGE_START": lambda e: self._start(e, "text"),
            "TEXT_MESSAGE_CONTENT": lambda e: self._content(e, "text"),
            "TEXT_MESSAGE_END": lambda e: self._end(e, "text"),
            "TEXT_MESSAGE_CHUNK": lambda e: self._message_chunk(e, "text"),
            "REASONING_START": lambda e: iter(()),
            "REASONING_MESSAGE_START": lambda e: self._start(e, "reasoning"),
            "REASONING_MESSAGE_CONTENT": lambda e: self._content(e, "reasoning"),
            "REASONING_MESSAGE_END": lambda e: self._end(e, "reasoning"),
            "REASONING_MESSAGE_CHUNK": lambda e: self._message_chunk(e, "reasoning"),
            "REASONING_END": lambda e: iter(()),
            "THINKING_START": lambda e: iter(()),
            "THINKING_TEXT_MESSAGE_START": self._thinking,
            "THINKING_TEXT_MESSAGE_CONTENT": lambda e: self._content(self._thought(e), "reasoning"),
            "THINKING_TEXT_MESSAGE_END": lambda e: self._end(self._thought(e), "reasoning"),
            "THINKING_END": lambda e: iter(()),
            "TOOL_CALL_START": self._call_start,
            "TOOL_CALL_ARGS": self._call_arguments,
            "TOOL_CALL_END": self._call_end,
            "TOOL_CALL_CHUNK": self._call_chunk,
            "TOOL_CALL_RESULT": self._call_result,
            "STATE_SNAPSHOT": self._documents.state_snapshot,
            "STATE_DELTA": self._documents.state_delta,
            "ACTIVITY_SNAPSHOT": self._documents.activity_snapshot,
            "ACTIVITY_DELTA": self._documents.activity_delta,
            "MESSAGES_SNAPSHOT": lambda e: self._messages(e.get("messages")),
            "CUSTOM": self._custom,
            "RAW": lambda e: iter([ev.Data("raw", e.get("event"), transient=True)]),
        }

    def _event(self, event: Object) -> Iterator[Event]:
        kind = event.get("type")
        if kind not in _ASIDE and not (isinstance(kind, str) and kind.endswith("_CHUNK")):
            yield from self._end_lane()
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        yield from handler(event) if handler is not None else iter([from_dict(event)])

    # The run

    def _run_started(self, event: Object) -> Iterator[Event]:
        self._is_running, self.is_over, self._role = True, False, None
        self._seen.add_messages(mapping(event.get("input")).get("messages"))
        names = {name: event[name] for name in ("threadId", "runId") if isinstance(event.get(name), str)}
        native: Object = {} if ours_of(event) else {"messageMetadata": names}
        yield from self._started(chunk(event, "start", **native))

    def _started(self, events: Iterator[Event]) -> Iterator[Event]:
        """Keep the role that the message has by these events."""
        for event in events:
            if isinstance(event, ev.Start):
                self._role = event.role
            yield event

    def _run_finished(self, event: Object) -> Iterator[Event]:
        self._is_running, self.is_over = False, True
        yield from self._end_parts()
        if ours_of(event):
            yield from chunk(event, "finish")
            return
        if event.get("result") is not None:
            yield ev.Data("result", event["result"])
        outcome = mapping(event.get("outcome"))
        for interrupt in _list(outcome.get("interrupts")):
            yield self._interrupt(mapping(interrupt))
        if outcome.get("type") == "cancelled":
            yield ev.Abort()
        else:
            yield ev.Finish(finish_reason="stop", message_metadata=_usage(event))

    def _interrupt(self, interrupt: Mapping[str, Any]) -> Event:
        asked, call_id = interrupt.get("id"), interrupt.get("toolCallId")
        if isinstance(asked, str) and isinstance(call_id, str) and self._seen.has_call(call_id):
            return ev.ToolApprovalRequest(
                asked, self._ids.get(call_id, call_id), extra=_but(interrupt, "id", "toolCallId")
            )
        return ev.Data("interrupt", dict(interrupt), id=asked if isinstance(asked, str) else None)

    def _run_error(self, event: Object) -> Iterator[Event]:
        self._is_running, self.is_over = False, True
        yield from self._end_parts()
        told, code = ours_of(event), event.get("code")
        message = event.get("message")
        said = {"errorText": message if isinstance(message, str) and (message or told) else _NO_MESSAGE}
        details = {"details": str(code)} if code is not None and not told else {}
        yield from_dict({"type": "error", **said, **details, **_but(told, "type", "finish")})
        if not told:
            yield ev.Finish(finish_reason="error", message_metadata=_usage(event))
        elif mapping(told.get("finish")).get("type") is not None:
            yield from_dict(mapping(told.get("finish")))

    def _ended(self, is_over: bool) -> Iterator[Event]:
        yield from self._end_lane()
        if not is_over or self._is_running:
            yield from self._end_parts()
            yield from broke_off()

    def _end_parts(self) -> Iterator[Event]:
        for kind, message in self._blocks:
            yield ev.TextEnd(message) if kind == "text" else ev.ReasoningEnd(message)
        self._blocks.clear()
        self._calls.clear()
        yield from self._documents.end_run()

    # Text and reasoning

    def _start(self, event: Object, kind: str) -> Iterator[Event]:
        message = text_of(event, "messageId")
        if (kind, message) in self._blocks:
            raise WireError(f"The message {message!r:.80} has begun already.")
        if kind == "text":
            yield from self._said_by(event.get("role"))
        self._blocks[kind, message] = None
        self._seen.messages.add(message)
        yield from chunk(event, f"{kind}-start", id=message)

    def _said_by(self, role: Any) -> Iterator[Event]:
        """Another role is another message."""
        wanted = _ROLES.get(role) if isinstance(role, str) else None
        if wanted != (self._role if self._role in ("user", "system") else None):
            self._role = wanted
            yield ev.Start(role=wanted)

    def _content(self, event: Object, kind: str) -> Iterator[Event]:
        message, delta = self._open(event, kind), text_of(event, "delta")
        yield from chunk(event, f"{kind}-delta", id=message, delta=delta)

    def _end(self, event: Object, kind: str) -> Iterator[Event]:
        message = self._open(event, kind)
        del self._blocks[kind, message]
        yield from chunk(event, f"{kind}-end", id=message)

    def _open(self, event: Object, kind: str) -> str:
        message = text_of(event, "messageId")
        if (kind, message) not in self._blocks:
            raise WireError(f"A {event.get('type')} is for the message {message!r:.80}, which is not open.")
        return message

    def _thinking(self, event: Object) -> Iterator[Event]:
        self._thoughts += 1
        yield from self._start(self._thought(event), "reasoning")

    def _thought(self, event: Object) -> Object:
        """The events of the time before 1.0, whose messages have no ids."""
        return {**event, "messageId": f"{_THINKING}-{self._thoughts}"}

    # Calls

    def _call_start(self, event: Object) -> Iterator[Event]:
        native, name = text_of(event, "toolCallId"), text_of(event, "toolCallName")
        own = ours_of(event).get("toolCallId")
        call_id = own if isinstance(own, str) else native
        if native in self._calls:
            raise WireError(f"The tool call {native!r:.80} has begun already.")
        self._calls[native] = (call_id, name, JsonText())
        self._ids[native] = call_id
        self._seen.calls.add(native)
        subagent = event.get("subagentRunId")
        attribution = {"subagentRunId": subagent} if isinstance(subagent, str) else {}
        yield from chunk(event, "tool-input-start", toolCallId=call_id, toolName=name, **attribution)

    def _call_arguments(self, event: Object) -> Iterator[Event]:
        call_id, _, text = self._open_call(event)
        delta = text_of(event, "delta")
        text.add(delta)
        yield ev.ToolInputDelta(call_id, delta)

    def _call_end(self, event: Object) -> Iterator[Event]:
        call_id, name, text = self._open_call(event)
        del self._calls[event["toolCallId"]]
        told = ours_of(event)
        if "type" in told and told["type"] is None:
            return
        found = text.event(call_id, name)
        if isinstance(found, ev.ToolInputAvailable) or "input" in told:
            given = found.input if isinstance(found, ev.ToolInputAvailable) else None
            yield from chunk(event, "tool-input-available", toolCallId=call_id, toolName=name, input=given)
        else:
            yield found

    def _open_call(self, event: Object) -> tuple[str, str, JsonText]:
        native = text_of(event, "toolCallId")
        if native not in self._calls:
            raise WireError(f"A {event.get('type')} is for the tool call {native!r:.80}, which is not open.")
        return self._calls[native]

    def _call_result(self, event: Object) -> Iterator[Event]:
        native, content, told = text_of(event, "toolCallId"), event.get("content"), ours_of(event)
        own = told.get("toolCallId")
        call_id = own if isinstance(own, str) else self._ids.get(native, native)
        if told.get("json") is True and isinstance(content, str):
            found = JsonText(content).event(call_id, "")
            content = found.input if isinstance(found, ev.ToolInputAvailable) else content
        kind = told.get("type", "tool-output-available")
        said: Object = {"toolCallId": call_id}
        if kind == "tool-output-available":
            said["output"] = content
        elif kind in ("tool-output-error", "tool-input-error"):
            said["errorText"] = content
        elif "data" in told:
            said = {}  # a chunk of this package's own, whose fields are all in its data
        yield from_dict({"type": kind, **said, **_but(told, "json", "type", "toolCallId")})

    # Chunks

    def _message_chunk(self, event: Object, kind: str) -> Iterator[Event]:
        message = event.get("messageId")
        if message is not None and (kind, message) != self._lane:
            yield from self._end_lane()
            yield from self._start(event, kind)
            self._lane = (kind, text_of(event, "messageId"))
        elif self._lane is None or self._lane[0] != kind:
            raise WireError(f"The first {event.get('type')} of a message needs a messageId, but is {event!r:.200}.")
        if event.get("delta"):
            yield from self._content({**event, "messageId": self._lane[1]}, kind)

    def _call_chunk(self, event: Object) -> Iterator[Event]:
        call_id = event.get("toolCallId")
        if call_id is not None and ("tool", call_id) != self._lane:
            yield from self._end_lane()
            yield from self._call_start(event)
            self._lane = ("tool", text_of(event, "toolCallId"))
        elif self._lane is None or self._lane[0] != "tool":
            raise WireError(f"The first TOOL_CALL_CHUNK of a call needs a toolCallId, but is {event!r:.200}.")
        if event.get("delta"):
            yield from self._call_arguments({**event, "toolCallId": self._lane[1]})

    def _end_lane(self) -> Iterator[Event]:
        lane, self._lane = self._lane, None
        if lane is None:
            return
        kind, name = lane
        if kind == "tool" and name in self._calls:
            yield from self._call_end({"toolCallId": name})
        elif (kind, name) in self._blocks:
            yield from self._end({"messageId": name}, kind)

    # The rest

    def _messages(self, messages: Any) -> Iterator[Event]:
        yield from self._started(snapshot_events(messages, self._seen))

    def _custom(self, event: Object) -> Iterator[Event]:
        value = event.get("value")
        if event.get("name") != CHUNK or not isinstance(value, dict):
            yield from chunk(event, f"data-{text_of(event, 'name')}", data=value)
            return
        found = from_dict(value)
        if isinstance(found, ev.ToolRetracted) and found.successor is not None:
            self._ids = {name: _renamed(known, found) for name, known in self._ids.items()}
            self._calls = {name: (_renamed(c[0], found), *c[1:]) for name, c in self._calls.items()}
        yield from self._started(iter([found]))


def _renamed(known: str, found: ev.ToolRetracted) -> str:
    return found.successor if known == found.tool_call_id and found.successor is not None else known


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _but(fields: Mapping[str, Any], *names: str) -> Object:
    return {key: value for key, value in fields.items() if key not in names}


def _usage(event: Object) -> Object | None:
    """The tokens of all the models that the run names, and the first model."""
    told = [mapping(one) for one in _list(event.get("usage"))]
    usage: Object = {}
    for here, theirs in USAGE.items():
        counts = [one[theirs] for one in told if type(one.get(theirs)) is int]
        if counts:
            usage[here] = sum(counts)
    models = [one["model"] for one in told if isinstance(one.get("model"), str)]
    return {**({"model": models[0]} if models else {}), **({"usage": usage} if usage else {})} or None
