"""`StepReader` reads what ``agent.run(stream=True)`` of smolagents yields, and the steps of managed agents."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import add_counts, file_event
from toolcall_nb.agents.nested import nested_events
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_json_value

_FINAL = "final_answer"
"""The tool by which an agent gives its answer. It is shown as text."""


class StepReader:
    """Reads one run. A step of a managed agent is nested in the open call with its name, or else in the last one."""

    def __init__(self) -> None:
        self._message = Assembler()
        self._step = 0
        self._has_text = False  # of this step
        self._waiting: dict[str, list[Any]] = {}  # keys of this step's calls that have not started, by id
        self._running: dict[str, list[Any]] = {}  # keys of this step's calls that have started, by id
        self._open: dict[str, str] = {}  # names of the calls that have not ended, by id
        self._nested: dict[str, StepReader] = {}  # by agent
        self._usage: list[Mapping[str, int]] = []

    def take(self, item: Any, agent: str | None = None) -> list[Event]:
        """Returns the events of one item, or of a step of a managed agent."""
        if agent is not None:
            named = [call_id for call_id, name in self._open.items() if name == agent]
            parent = next(reversed(named or [*self._open]), None)
            if parent is None:
                return []
            return nested_events(self._nested.setdefault(agent, StepReader()).take(item), parent)
        match type(item).__name__:
            case "ChatMessageStreamDelta":
                return self._piece(item)
            case "ToolCall":
                return self._call(item)
            case "ToolOutput":
                return self._output(item)
            case "ActionStep":
                return self._whole(item)
            case "PlanningStep":
                self._add_usage(item)
                found = [] if self._has_text else self._message.reasoning(item.plan, (self._step, "plan"))
                self._next_step()
                return [*found, *self._message.end_block()]
            case "FinalAnswerStep":
                return self._answer(item.output)
        return []  # an ActionOutput, which the step repeats

    def close(self) -> list[Event]:
        """Returns the closing events, with the usage of the run."""
        usages = [usage for reader in (self, *self._nested.values()) for usage in reader._usage]
        if total := add_counts(usages):
            self._message.metadata["usage"] = total
        return self._message.close()

    def _piece(self, delta: Any) -> list[Event]:
        found: list[Event] = []
        if delta.content:
            self._has_text = True
            found += self._message.text(delta.content, (self._step, "text"))
        for call in delta.tool_calls or ():
            key, function = (self._step, call.index), call.function
            name = getattr(function, "name", None)
            if name and name != _FINAL and (begun := self._message.begin_call(key, call.id, name)):
                found += begun
                self._waiting.setdefault(call.id, []).append(key)
            found += self._message.arguments(key, str(getattr(function, "arguments", None) or ""))
        return found

    def _call(self, call: Any) -> list[Event]:
        if call.name == _FINAL:
            return []
        waiting, running = self._waiting.get(call.id), self._running.setdefault(call.id, [])
        key = waiting.pop(0) if waiting else (self._step, call.id, len(running))
        running.append(key)
        given = {"code": call.arguments} if isinstance(call.arguments, str) else as_json_value(call.arguments)
        found = self._message.begin_call(key, call.id, call.name)
        own_id = self._message.id_of(key) or call.id
        self._open[own_id] = call.name
        return [*found, *self._message.end_call(key, given), ev.ToolExecution(own_id, "running")]

    def _output(self, result: Any) -> list[Event]:
        own_ids = [self._message.id_of(key) for key in self._running.get(result.id, ())]
        own_id = next((own_id for own_id in own_ids if own_id in self._open), None)
        if own_id is None:
            return []
        self._open.pop(own_id, None)
        raw = result.output
        is_json = isinstance(raw, bool | int | float | list | dict | None)
        return self._message.output(own_id, as_json_value(raw) if is_json else result.observation)

    def _whole(self, step: Any) -> list[Event]:
        """Reads a complete step: its text if it was not streamed, and what became of its calls."""
        found: list[Event] = []
        text = step.model_output
        if isinstance(text, str) and not self._has_text:
            found += self._message.text(text, (self._step, "text"))
        for call in step.tool_calls or ():
            found += self._call(call) if call.id not in self._running else []
        for own_id in self._open:
            if step.error is not None:
                found += self._message.failure(own_id, str(step.error))
            else:
                found += self._message.output(own_id, step.observations)
        if step.error is not None and not self._open:
            found += self._message.other(ev.Data("step-error", str(step.error)))
        self._open.clear()
        self._add_usage(step)
        self._next_step()
        return [*found, *self._message.end_block()]

    def _answer(self, output: Any) -> list[Event]:
        if type(output).__name__ == "AgentImage":
            data = BytesIO()
            output.to_raw().save(data, "PNG")
            return self._message.other(file_event("image/png", data.getvalue()))
        value = output if isinstance(output, str) else as_json_value(output)
        return self._message.text(str(value), (self._step, "answer"))

    def _add_usage(self, step: Any) -> None:
        if step.token_usage is not None:
            counts = {"inputTokens": step.token_usage.input_tokens, "outputTokens": step.token_usage.output_tokens}
            self._usage.append(counts)

    def _next_step(self) -> None:
        self._step, self._has_text, self._waiting, self._running = self._step + 1, False, {}, {}
