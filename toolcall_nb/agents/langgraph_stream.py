"""`GraphReader` reads the stream of a graph's run: its messages, tools, nested agents and interrupts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from toolcall_nb.adapters.common_events import add_counts
from toolcall_nb.adapters.langchain import LangGraphAdapter
from toolcall_nb.agents.base import AgentModel
from toolcall_nb.agents.langgraph_interrupts import Questions
from toolcall_nb.agents.nested import nested_events
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_mapping, first_items, get
from toolcall_nb.models.callable_models import OneReply

STREAM_MODES = ("messages", "updates", "custom", "tools", "tasks")
"""The stream modes of the items that `GraphReader` reads, with ``subgraphs=True``."""

_INTERRUPT = "__interrupt__"


class GraphReader:
    """Reads one run. An agent that runs inside a tool is nested in the tool's call; other subgraphs are not.

    After `close`, ``questions`` holds what the run waits for, ``reason`` and ``metadata`` what ends the reply.
    ``denied`` are the calls that a person did not allow, for which the graph has an error. ``structured_response`` is
    the graph's own typed answer (``response_format``), if it gave one that is not the text of its last message.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.metadata: Object = {}
        self.denied: Collection[str] = ()
        self.structured_response: Any = None
        self.questions = Questions()
        self._main = LangGraphAdapter(defers_shared_ids=True)
        self._nested: dict[str, tuple[LangGraphAdapter, OneReply]] = {}  # by the call that the agent runs for
        self._callers: dict[str, str] = {}  # calls, by the task that runs each
        self._interrupts: dict[str, Any] = {}
        self._interrupted: dict[str, str] = {}  # calls, by the interrupt that each waits for
        self._usage: list[Mapping[str, int]] = []

    def mark_read(self, messages: Iterable[Any]) -> None:
        """Marks messages as read, which the graph had before the run."""
        self._main.mark_read(messages)

    def take(self, item: tuple[Sequence[str], str, Any]) -> list[Event]:
        """Returns the events of one item: namespace, stream mode and data."""
        namespace, mode, data = item
        if mode == "tasks":
            self._read_task(as_mapping(data))
            is_nested = self._caller(namespace) is not None
            return [] if is_nested else self._events(self._task_result(as_mapping(data)))
        if mode == "updates" and _INTERRUPT in as_mapping(data):
            for interrupt in data[_INTERRUPT]:
                self._interrupts.setdefault(interrupt.id, interrupt)
            return []
        caller = self._caller(namespace)
        if mode == "updates" and not namespace:
            self._read_structured_response(as_mapping(data))
        if caller is None:
            return self._events(self._main.take((mode, data)))
        adapter, reply = self._nested.setdefault(caller, (LangGraphAdapter(), OneReply()))
        return nested_events(self._events(reply.events_of(adapter.take((mode, data)))), caller)

    def close(self) -> list[Event]:
        """Returns the closing events, and the questions of the interrupts."""
        found: list[Event] = []
        for caller, (adapter, reply) in self._nested.items():
            found += nested_events(self._events(reply.events_of(adapter.close())), caller)
        found += self._events(self._main.close())
        if usage := add_counts(self._usage):
            self.metadata["usage"] = usage
        calls: list[str | None] = []
        for interrupt in self._interrupts.values():
            waiting = self._interrupted.get(interrupt.id)
            adapter = self._nested[waiting][0] if waiting in self._nested else self._main
            asked_about = adapter.calls_asked_about(interrupt.value, besides=calls)
            if any(call is not None and adapter.shares_id(call) for call in asked_about):
                raise AgentModel.ambiguous_question()
            calls += asked_about
            found += self.questions.ask(interrupt, asked_about, waiting)
        return found

    def open_ids(self) -> dict[str, str]:
        """Returns the graph's ids of the calls that wait, by ours."""
        return self._main.open_ids()

    def expect(self, ids: Mapping[str, str]) -> None:
        """Notes the calls that an earlier run left waiting (`open_ids`)."""
        self._main.expect(ids)

    def _events(self, events: Iterable[Event]) -> list[Event]:
        """Returns the events without the ends of messages, which are noted."""
        kept: list[Event] = []
        for event in events:
            if isinstance(event, ev.Finish):
                self.reason = event.finish_reason
                about = as_mapping(event.message_metadata)
                self._usage.append(get(about, "usage", dict) or {})
                self.metadata.update(about)
            elif isinstance(event, ev.ToolOutputError) and event.tool_call_id in self.denied:
                kept.append(ev.ToolOutputDenied(event.tool_call_id))
            else:
                kept.append(event)
        return kept

    def _read_structured_response(self, update: Mapping[str, Any]) -> None:
        for state in map(as_mapping, update.values()):
            messages = state.get("messages") or [None]
            if getattr(messages[-1], "type", None) != "ai":  # otherwise it is the text of this message
                self.structured_response = state.get("structured_response", self.structured_response)

    def _read_task(self, task: Mapping[str, Any]) -> None:
        """Notes the call that a task runs, and the interrupts that ended it."""
        task_id = str(task.get("id"))
        calls = [as_mapping(call) for call in first_items(task.get("input"))]
        if len(calls) == 1 and get(calls[0], "id", str) is not None and calls[0].get("type") == "tool_call":
            self._callers[task_id] = self._main.call_of(calls[0], besides=self._callers.values())
        for interrupt in task.get("interrupts") or ():
            if task_id in self._callers:
                self._interrupted.setdefault(str(as_mapping(interrupt).get("id")), self._callers[task_id])

    def _task_result(self, task: Mapping[str, Any]) -> list[Event]:
        return self._main.take_task_result(task.get("result"), self._callers.get(str(task.get("id"))))

    def _caller(self, namespace: Sequence[str]) -> str | None:
        """Returns the innermost call whose tool runs this part of the graph."""
        tasks = (name.rpartition(":")[2] for name in reversed(namespace))
        return next((self._callers[task] for task in tasks if task in self._callers), None)
