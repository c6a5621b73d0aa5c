"""pydantic-ai: streams of its models and agents, their results, and lists of messages.

Source: pydantic_ai/messages.py, run.py, result.py and _deferred.py, version 2.68. Its objects are known by
``event_kind``, ``kind`` and ``part_kind``, so that their JSON is read by the same code.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar

from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.parts import json_text, strange_item
from toolcall_nb.adapters.plain import get, json_value, mapping, type_name
from toolcall_nb.adapters.pydantic_ai.parts import fields, is_own, outcome_event, spoken
from toolcall_nb.adapters.pydantic_ai.run import Run
from toolcall_nb.adapters.spoken_messages import said
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

__all__ = ["FORMAT", "PydanticAIAdapter", "items_of"]

_TITLE = "pydantic-ai (streams of a model or an agent, results, messages)"


class PydanticAIAdapter:
    """Reads the events of a model's or an agent's stream, and messages.

    All requests of a run are one assistant message, with steps between them. Messages (``ModelRequest``,
    ``ModelResponse``) are items too: what a person said ends the assistant's message. A response that is not complete
    grows by the next one. A response whose parts came as events before is told with `describe`.
    """

    def __init__(self) -> None:
        self._run = Run()
        self._tools_ran = False
        self._growing: Mapping[str, Any] | None = None
        self._past: set[str] = set()
        self._asked: set[str] = set()
        self._instructions: str | None = None
        self._others_spoke = False

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        known = fields(item)
        reader = self._READERS.get(get(known, "event_kind", str) or get(known, "kind", str) or "")
        if reader is not None:
            return reader(self, known)
        node = known.get("model_response") or known.get("request")  # of `agent.iter`
        if node is not None:
            return self.take(node)
        is_quiet = "event_kind" in known or is_own(type(item)) or type_name(item).startswith("pydantic_graph.")
        return [] if is_quiet else strange_item(_TITLE, item)

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""
        return self._run.close() if self._run.has_begun or not self._others_spoke else []

    def describe(self, response: Any) -> None:
        """What a response says of itself: model, usage, why it ended."""
        self._run.describe(fields(response))

    # A request to the model, as events

    def _part_start(self, event: Mapping[str, Any]) -> list[Event]:
        index, part = _index(event), fields(event.get("part"))
        is_next = self._tools_ran or (self._run.has_ended(index) and not self._run.is_again(index, part))
        return [*(self._next_request() if is_next else []), *self._run.begin_part(index, part)]

    def _part_delta(self, event: Mapping[str, Any]) -> list[Event]:
        return self._run.grow_part(_index(event), fields(event.get("delta")))

    def _part_end(self, event: Mapping[str, Any]) -> list[Event]:
        return self._run.end_part(_index(event), fields(event.get("part")))

    def _next_request(self) -> list[Event]:
        self._tools_ran = False
        return self._run.next_request()

    # Agents

    def _tool_call(self, event: Mapping[str, Any]) -> list[Event]:
        self._tools_ran = True
        return self._run.start_call(fields(event.get("part")))

    def _tool_result(self, event: Mapping[str, Any]) -> list[Event]:
        self._tools_ran = True
        return self._tool_return(fields(event.get("part") or event.get("result")))

    def _tool_return(self, part: Mapping[str, Any]) -> list[Event]:
        call_id = get(part, "tool_call_id", str) or ""
        answer = self._answer(call_id, part)
        if call_id in self._past and not self._run.has_call(call_id):  # of an earlier message
            return [*answer, outcome_event(call_id, part)]
        return [*answer, *self._run.end_of_call(part)]

    def _deferred(self, event: Mapping[str, Any]) -> list[Event]:
        return self.ask(event.get("requests"))

    def ask(self, requests: Any) -> list[Event]:
        """A person is asked about the approvals of ``DeferredToolRequests``; of anything else, nothing."""
        found: list[Event] = []
        for item in get(fields(requests), "approvals", list) or []:
            part = fields(item)
            call_id = get(part, "tool_call_id", str) or "tool-call"
            if call_id not in self._asked:
                self._asked.add(call_id)
                found += [*self._run.complete_call(part), ev.ToolApprovalRequest(call_id, call_id)]
        return found

    def _deferred_results(self, event: Mapping[str, Any]) -> list[Event]:
        approvals = mapping(fields(event.get("results")).get("approvals"))
        return [answer for call_id, given in approvals.items() for answer in self._answer(call_id, given)]

    def _answer(self, call_id: str, given: Any) -> list[Event]:
        """The answer to a question that waits: True, False, ``ToolApproved``, ``ToolDenied``, or what came of it."""
        if call_id not in self._asked:
            return []
        self._asked.discard(call_id)
        known = fields(given)
        is_denied = given is False or known.get("kind") == "tool-denied" or known.get("outcome") == "denied"
        reason = get(known, "message", str) or get(known, "content", str) if is_denied else None
        return [ev.ToolApprovalResponse(call_id, not is_denied, reason)]

    def _run_result(self, event: Mapping[str, Any]) -> list[Event]:
        result = event.get("result")
        asked = self.ask(fields(result).get("output"))
        if not isinstance(result, Mapping):
            self.describe(getattr(result, "response", None))
        self._run.describe_usage(get(result, "usage") or getattr(result, "usage", None))
        return asked

    # Messages

    def _response(self, response: Mapping[str, Any]) -> list[Event]:
        is_open = response.get("state") == "incomplete"
        before, self._growing = self._growing, response if is_open else None
        found = self._next_request() if self._run.has_begun and before is None else self._run.message.start()
        parts = [fields(part) for part in response.get("parts") or ()]
        older = [fields(part) for part in before.get("parts") or ()] if before is not None else []
        for index, part in enumerate(parts):
            if self._run.knows(index):
                found += self._run.grow_part(index, _growth(older[index], part))
            else:
                found += self._run.begin_part(index, part)
            if not is_open or index < len(parts) - 1:
                found += self._run.end_part(index, part)
        if not is_open:
            self.describe(response)
        self._run.has_begun = True
        return found

    def _request(self, request: Mapping[str, Any]) -> list[Event]:
        found: list[Event] = []
        instructions = get(request, "instructions", str)
        if instructions and instructions != self._instructions:
            self._instructions = instructions
            found += self._other_side("system", [instructions])
        for part in request.get("parts") or ():
            found += self._request_part(fields(part))
        return found

    def _request_part(self, part: Mapping[str, Any]) -> list[Event]:
        content = part.get("content")
        match part.get("part_kind"):
            case "system-prompt":
                return self._other_side("system", spoken(content))
            case "user-prompt":
                return self._other_side("user", spoken(content))
            case "speech":
                return self._other_side("user", spoken(part.get("transcript")))
            case "tool-return":
                return self._tool_return(part)
            case "retry-prompt" if get(part, "tool_name", str):
                return self._tool_return(part)
            case "retry-prompt" | "retry-feedback" | "compaction" if content is not None:
                text = content if isinstance(content, str) else json_text(json_value(content))
                return self._other_side("system", [text])
        return []

    def _other_side(self, role: str, parts: Iterable[str | Event]) -> list[Event]:
        """Somebody else's message, which ends the assistant's."""
        ends: list[Event] = []
        self._others_spoke = True
        if self._run.has_begun:
            ends = self._run.close()
            self._past |= self._run.call_ids
            self._run = Run()
        return [*ends, *said(role, parts)]

    _READERS: ClassVar[Mapping[str, Callable[[PydanticAIAdapter, Mapping[str, Any]], list[Event]]]] = {
        "part_start": _part_start,
        "part_delta": _part_delta,
        "part_end": _part_end,
        "function_tool_call": _tool_call,
        "output_tool_call": _tool_call,
        "function_tool_result": _tool_result,
        "output_tool_result": _tool_result,
        "deferred_tool_requests": _deferred,
        "deferred_tool_results": _deferred_results,
        "agent_run_result": _run_result,
        "response": _response,
        "request": _request,
    }


def _index(event: Mapping[str, Any]) -> int:
    return get(event, "index", int) or 0


def _growth(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """What makes the one state of a part into the next, as pydantic-ai's own delta."""
    match new.get("part_kind"):
        case "text":
            kind, name = "text", "content"
        case "thinking":
            kind, name = "thinking", "content"
        case _:
            kind, name = "tool_call", "args"
    before, after = old.get(name), new.get(name)
    grown = after[len(before) :] if isinstance(before, str) and isinstance(after, str) else after
    return {"part_delta_kind": kind, f"{name}_delta": grown}


# What it reads ------------------------------------------------------------------------------------------------

_MESSAGES = frozenset({"pydantic_ai.messages.ModelRequest", "pydantic_ai.messages.ModelResponse"})
_RESULT = "pydantic_ai.run.AgentRunResult"
_STREAMED = "pydantic_ai.result.StreamedRunResult"
_STREAMED_SYNC = "pydantic_ai.result.StreamedRunResultSync"
_NODES = frozenset(
    f"pydantic_ai._agent_graph.{name}" for name in ("UserPromptNode", "ModelRequestNode", "CallToolsNode")
)
_LOOK_AT = 4


def _is_item(item: Any) -> bool:
    if type(item) is dict:
        return isinstance(item.get("event_kind"), str) and item["event_kind"] in _EVENT_KINDS
    cls = type(item)
    if cls.__module__.startswith("pydantic_ai.") and type_name(item) in _MESSAGES | _NODES:
        return True
    return is_own(cls) and isinstance(getattr(cls, "event_kind", None), str)


_EVENT_KINDS = frozenset(
    {*PydanticAIAdapter._READERS, "final_result", "enqueued_messages", "tool_availability_delta"}
    - {"request", "response"}
)


def _is_message(thing: Any) -> bool:
    if type(thing) is dict:
        return thing.get("kind") in ("request", "response") and isinstance(thing.get("parts"), list)
    return type_name(thing) in _MESSAGES


def _is_whole(thing: Any) -> bool:
    if type(thing) is list:
        return bool(thing) and all(_is_message(item) for item in thing[:_LOOK_AT])
    return _is_message(thing) or _is_result(thing)


def _is_result(thing: Any) -> bool:
    """A result; of one that streams, only when it has come whole."""
    name = type_name(thing)
    return name == _RESULT or (name in (_STREAMED, _STREAMED_SYNC) and thing.is_complete)


def _whole(thing: Any) -> Iterator[Event]:
    adapter = PydanticAIAdapter()
    is_result = _is_result(thing)
    for message in thing.all_messages() if is_result else thing if type(thing) is list else [thing]:
        yield from adapter.take(message)
    if is_result:
        yield from adapter.ask(getattr(thing, "output", None))
    yield from adapter.close()


def items_of(thing: Any) -> Iterable[Any] | AsyncIterable[Any] | None:
    """What came before and the response as it grows, of a result that streams; None of anything else."""
    name = type_name(thing)
    if name == _STREAMED_SYNC:
        return chain(thing.all_messages(), thing.stream_response(debounce_by=None))
    return _grown(thing) if name == _STREAMED else None


async def _grown(thing: Any) -> AsyncIterator[Any]:
    for message in thing.all_messages():
        yield message
    async for response in thing.stream_response(debounce_by=None):
        yield response


FORMAT = Format(
    name="pydantic-ai",
    title=_TITLE,
    is_item=_is_item,
    adapter=PydanticAIAdapter,
    is_whole=_is_whole,
    whole=_whole,
)
