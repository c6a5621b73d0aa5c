"""`WorkflowReader` reads the events of LlamaIndex's workflow agents."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import add_counts, usage_of
from toolcall_nb.agents.nested import nested_events
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, class_names, object_fields

_USAGE = {
    "inputTokens": ("input_tokens", "prompt_tokens"),
    "outputTokens": ("output_tokens", "completion_tokens"),
    "totalTokens": "total_tokens",
}
_IGNORED = frozenset({"AgentInput", "AgentSetup", "StartEvent", "StopEvent", "HumanResponseEvent"})


class WorkflowReader:
    """Reads one run. Partial arguments, which LlamaIndex has parsed, become the text that they were parsed from.

    ``agents`` are the names of the agents of the run. What another agent writes to the same stream is nested in the
    call that runs. ``running`` is the id of the call that began to run last and has not ended.
    """

    def __init__(self, agents: Collection[str]) -> None:
        self._message = Assembler()
        self._agents = agents
        self._step = 0
        self._text = ""  # of this step
        self._last: Any = None  # the last complete reply
        self._running: list[str] = []
        self._nested: dict[str, WorkflowReader] = {}  # by agent
        self._usage: list[Mapping[str, int]] = []

    @property
    def running(self) -> str | None:
        """The id of the call that began to run last and has not ended."""
        return self._running[-1] if self._running else None

    def take(self, event: Any) -> list[Event]:
        """Returns the events of one event of the workflow."""
        kinds = [name for _, name in class_names(type(event))]
        agent = getattr(event, "current_agent_name", None)
        if agent is not None and agent not in self._agents and self.running is not None:
            reader = self._nested.setdefault(agent, WorkflowReader((agent,)))
            return nested_events(reader.take(event), self.running)
        match kinds[0]:
            case "AgentStream":
                return self._piece(event)
            case "AgentOutput":
                return self._whole(event)
            case "ToolCall":
                return self._run(event)
            case "ToolCallResult":
                return self._end(event)
        if _IGNORED.intersection(kinds):
            return []
        return self._message.other(ev.Data(kinds[0], event_fields(event)))

    def result(self, output: Any) -> list[Event]:
        """Reads the result of the run, as far as it did not come before.

        A tool that passes on all events of another workflow passes on its end too, which ends LlamaIndex's stream.
        """
        if type(output).__name__ != "AgentOutput":
            return []
        ends = [call for call in output.tool_calls if type(call).__name__ == "ToolCallResult"]
        found = [event for call in ends for event in self._end(call)]
        return found if self._last == output.response else [*found, *self._whole(output)]

    def end_block(self) -> list[Event]:
        """Ends the open text."""
        return self._message.end_block()

    def close(self) -> list[Event]:
        """Returns the closing events, with the usage of the run."""
        usages = [usage for reader in (self, *self._nested.values()) for usage in reader._usage]
        if total := add_counts(usages):
            self._message.metadata["usage"] = total
        return self._message.close()

    def _piece(self, event: Any) -> list[Event]:
        found: list[Event] = []
        if event.thinking_delta:
            found += self._message.reasoning(event.thinking_delta, (self._step, "thinking"))
        if event.delta:
            self._text += event.delta
            found += self._message.text(event.delta, (self._step, "text"))
        for position, call in enumerate(event.tool_calls):
            found += self._begin(position, call)
            found += self._grow((self._step, position), as_mapping(as_json_value(call.tool_kwargs)))
        return found

    def _begin(self, position: int, call: Any) -> list[Event]:
        key = (self._step, position)
        found = self._message.begin_call(key, call.tool_id or None, call.tool_name)
        if not found and call.tool_id:
            found = self._message.rename_call(key, call.tool_id)
        return found

    def _grow(self, key: Any, given: Mapping[str, Any]) -> list[Event]:
        """Adds what is new of the arguments, without the brackets and quotes that may only close what is not whole."""
        written, known = json.dumps(given, ensure_ascii=False).rstrip('"]} '), self._message.written(key)
        return self._message.arguments(key, written[len(known) :]) if written.startswith(known) else []

    def _whole(self, event: Any) -> list[Event]:
        """Reads a complete reply, of which a part may have come before."""
        found: list[Event] = []
        self._last = event.response
        text = event.response.content or ""
        if not self._text:
            found += self._message.text(text, (self._step, "text"))
        calls = [call for call in event.tool_calls if type(call).__name__ == "ToolSelection"]
        for position, call in enumerate(calls):
            found += self._begin(position, call)
            found += self._message.end_call((self._step, position), as_json_value(call.tool_kwargs))
        raw = object_fields(event.raw)
        counts = as_mapping(as_json_value(raw.get("usage"))) or event.response.additional_kwargs
        if usage := usage_of(counts, _USAGE):
            self._usage.append(usage)
        self._step, self._text = self._step + 1, ""
        return [*self._message.end_block(), *found] if not found else [*found, *self._message.end_block()]

    def _run(self, event: Any) -> list[Event]:
        nested = self._reader_of(event.tool_id)
        if nested is not None:
            return nested_events(nested._run(event), self.running or "")
        self._running.append(event.tool_id)
        found: list[Event] = []
        if not self._message.knows(event.tool_id):
            key = ("run", event.tool_id)
            found = self._message.begin_call(key, event.tool_id, event.tool_name)
            found += self._message.end_call(key, as_json_value(event.tool_kwargs))
        return [*found, ev.ToolExecution(event.tool_id, "running")]

    def _end(self, event: Any) -> list[Event]:
        nested = self._reader_of(event.tool_id)
        if nested is not None:
            return nested_events(nested._end(event), self.running or "")
        if event.tool_id in self._running:
            self._running.remove(event.tool_id)
        result = event.tool_output
        if result.is_error:
            return self._message.failure(event.tool_id, result.content)
        return self._message.output(event.tool_id, _output(result))

    def _reader_of(self, call_id: str) -> WorkflowReader | None:
        """Returns the nested agent that made a call."""
        if self._message.knows(call_id):
            return None
        return next((reader for reader in self._nested.values() if reader._message.knows(call_id)), None)


def event_fields(event: Any) -> Object:
    """Returns the declared and the other fields of an event of LlamaIndex, as JSON values."""
    declared = {name: getattr(event, name) for name in type(event).model_fields}
    return {name: as_json_value(value) for name, value in {**declared, **event.to_dict()}.items()}


def _output(result: Any) -> Any:
    """Returns a JSON value that a tool returned, or else its text."""
    raw = result.raw_output
    return as_json_value(raw) if isinstance(raw, str | bool | int | float | list | dict | None) else result.content
