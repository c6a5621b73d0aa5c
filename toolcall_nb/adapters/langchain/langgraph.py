"""Reads LangGraph: ``stream`` in each mode, ``astream_events``, the typed events of ``stream_events``, and states.

Source: langgraph 1.2 (pregel/main.py, types.py) and langchain_core 1.7 (tracers/event_stream.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.common_events import add_counts, unknown_item
from toolcall_nb.adapters.langchain.graph_run import INTERRUPT, GraphRun
from toolcall_nb.adapters.langchain.messages import message_of
from toolcall_nb.adapters.nesting import SEPARATOR, RunSteps, call_path, with_paths
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_mapping, first_items, get, type_name

_MODES = frozenset({"values", "updates", "messages", "custom", "tools", "tasks", "checkpoints", "debug"})
_FIELDS: tuple[tuple[str, set[str], set[str]], ...] = (
    ("debug", {"step", "timestamp", "type", "payload"}, set()),
    ("checkpoints", {"config", "metadata", "values", "next", "tasks"}, {"parent_config"}),
    ("tasks", {"id", "name", "triggers", "input"}, {"metadata"}),
    ("tasks", {"id", "name", "result", "error", "interrupts"}, set()),
)
"""The fields of an item of a stream with one mode, which does not name it: those of each item, and of some."""
_TOOL_EVENTS = frozenset({"tool-started", "tool-output-delta", "tool-finished", "tool-error"})
_TASK_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SNAPSHOT = "langgraph.types.StateSnapshot"
_LOOK_AT = 4


class LangGraphAdapter:
    """Reads the items of a graph's stream, whichever modes and subgraphs are mixed in it.

    Of ``astream_events`` it reads what the models and tools did and the messages that a node created without a model,
    but not their inputs. A state is read as a conversation, from its first message.

    What a graph inside a tool does belongs to the tool's call, and has a conversation of its own. Which call it is,
    the tasks and ``astream_events`` say; without them, it is known if only one call is open. Other subgraphs are part
    of the graph around them.

    The results of two calls with one id are paired in their order. With ``defers_shared_ids``, those of the graph
    itself are paired by the tasks that ran the calls.
    """

    def __init__(self, defers_shared_ids: bool = False) -> None:
        self.main = GraphRun(defers_shared_ids)
        """The run of the graph itself."""
        self._nested: dict[str, tuple[GraphRun, RunSteps]] = {}  # by the path of the call around
        self._callers: dict[str, str | None] = {}  # by task: our id of the call that it runs
        self._usage: list[Mapping[str, int]] = []  # of the steps inside calls
        self._tool_runs: dict[str, str] = {}  # by the run of a tool: the path of its call

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        mode, data = _mode_of(item)
        if mode is None:
            return unknown_item(LANGGRAPH.title, item)
        namespace = as_mapping(data.get("params")).get("namespace") if mode == "protocol" else _namespace_of(item)
        if mode == "event":
            path = next((self._tool_runs[run] for run in reversed(_parents(data)) if run in self._tool_runs), "")
        else:
            path = self.path_of(namespace)
        run = self.run_at(path)
        events = run.take(mode, data, namespace)
        if mode == "event" and (call_id := run.call_of_tool(str(data.get("run_id")))) is not None:
            self._tool_runs.setdefault(str(data.get("run_id")), call_path(path, call_id))
        elif mode in ("tasks", "debug"):
            self.note_task(as_mapping(data.get("payload")) if mode == "debug" else data, path)
        return self.inside(path, events)

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        events = [event for path, (run, _) in self._nested.items() for event in self.inside(path, run.close())]
        for event in self.main.close():
            if isinstance(event, ev.Finish) and self._usage:
                metadata = as_mapping(event.message_metadata)
                usage = add_counts([get(metadata, "usage", dict) or {}, *self._usage])
                event = replace(event, message_metadata={**metadata, "usage": usage})
            events.append(event)
        return events

    def path_of(self, namespace: Any) -> str:
        """Returns the path of the innermost call whose tool runs this part of the graph; empty for the graph itself."""
        path = ""
        for name in namespace if isinstance(namespace, list | tuple) else ():
            node, _, task = str(name).rpartition(":")
            if task not in self._callers:
                self._callers[task] = self._only_call(path) if node == _TOOLS else None
            path = call_path(path, call_id) if (call_id := self._callers[task]) is not None else path
        return path

    def _only_call(self, path: str) -> str | None:
        """Returns the open call of a run that no task is known to run, if there is only one."""
        calls = self.run_at(path).open_ids().keys() - set(self._callers.values())
        return calls.pop() if len(calls) == 1 else None

    def note_task(self, task: Mapping[str, Any], path: str) -> str | None:
        """Notes the call that a task runs, and returns our id of it."""
        task_id, calls = str(task.get("id")), [as_mapping(call) for call in first_items(task.get("input"))]
        if len(calls) == 1 and get(calls[0], "id", str) is not None and calls[0].get("type") == "tool_call":
            others = {call_id for call_id in self._callers.values() if call_id is not None}
            self._callers[task_id] = self.run_at(path).call_of(calls[0], besides=others)
        return self._callers.get(task_id)

    def run_at(self, path: str) -> GraphRun:
        """Returns the run inside the call with this path, or of the graph itself."""
        if not path:
            return self.main
        if path not in self._nested:
            self._nested[path] = GraphRun(is_nested=True), RunSteps(parent=path)
        return self._nested[path][0]

    def run_around(self, path: str) -> str:
        """Returns the path of the innermost run that a call with this path is, or is in: it may run no graph."""
        while path and path not in self._nested:
            path = path.rpartition(SEPARATOR)[0]
        return path

    def inside(self, path: str, events: Iterable[Event]) -> list[Event]:
        """Returns events of the run at a path as events of the whole stream."""
        if not path:
            return [*events]
        inside = [*self._nested[path][1].events_of(with_paths(events, path))]
        self._usage += [event.usage for event in inside if isinstance(event, ev.FinishStep) and event.usage]
        return inside


_TOOLS = "tools"
"""The name of the node that runs tools in the graphs of ``create_agent`` and ``create_react_agent``."""


def _parents(event: Mapping[str, Any]) -> Sequence[str]:
    parents: Sequence[str] = get(event, "parent_ids", (list, tuple)) or ()
    return parents


# Recognising


def _namespace_of(item: Any) -> Any:
    """Returns the path of the subgraph that an item is from; empty for the graph itself."""
    if type(item) is dict:
        return item.get("ns")
    return item[0] if type(item[0]) is tuple else ()


def _mode_of(item: Any) -> tuple[str | None, Any]:
    """Returns an item's stream mode and data; the mode is ``event`` or ``protocol`` for the two kinds of events."""
    if type(item) is dict:
        return _mode_of_dict(item)
    if type(item) is tuple and len(item) in (2, 3):
        first, last = item[0], item[-1]
        if type(first) is tuple and all(isinstance(name, str) for name in first[:_LOOK_AT]):  # of a subgraph
            return _mode_of(item[1:] if len(item) == 3 else last)
        if len(item) == 2 and isinstance(first, str) and first in _MODES:
            is_pair = type(last) is tuple and len(last) == 2
            fits = is_pair if first == "messages" else first == "custom" or isinstance(last, dict)
            return (first, last) if fits else (None, None)
        if len(item) == 2 and type(last) is dict and type(first) is not tuple and message_of(first) is not None:
            return "messages", item
    return (None, None)


def _mode_of_dict(item: dict[str, Any]) -> tuple[str | None, Any]:
    name = item.get("event")
    if isinstance(name, str):
        if name in _TOOL_EVENTS and "tool_call_id" in item:
            return "tools", item
        is_event = name.startswith("on_") and isinstance(item.get("data"), dict) and "run_id" in item
        return ("event", item) if is_event or (name == "on_custom_event" and "run_id" in item) else (None, None)
    kind = item.get("type")
    if kind == "event" and isinstance(item.get("method"), str) and isinstance(item.get("params"), dict):
        return "protocol", item
    if isinstance(kind, str) and kind in _MODES and "ns" in item and "data" in item:
        return kind, item["data"]
    for mode, names, more in _FIELDS:
        if names <= item.keys() <= names | more and (mode != "tasks" or _TASK_ID.fullmatch(str(item["id"]))):
            return mode, item
    if _is_state(item):
        return "values", item
    is_update = INTERRUPT in item or any(map(_is_state, islice(item.values(), _LOOK_AT)))
    return ("updates", item) if is_update else (None, None)


def _is_state(thing: Any) -> bool:
    if type(thing) is not dict:
        return False
    messages = thing.get("messages")
    if type(messages) is list:
        return bool(messages) and all(message_of(item) is not None for item in messages[:_LOOK_AT])
    return type(messages) is not tuple and message_of(messages) is not None


def _is_whole(thing: Any) -> bool:
    return _is_state(thing) or (type_name(thing) == _SNAPSHOT and _is_state(thing.values))


def _read_state(thing: Any) -> list[Event]:
    adapter = LangGraphAdapter()
    return [*adapter.take(thing if type(thing) is dict else thing.values), *adapter.close()]


LANGGRAPH = Format(
    name="langgraph",
    title="LangGraph (stream in any mode, astream_events, stream_events, states)",
    adapter=LangGraphAdapter,
    is_item=lambda item: _mode_of(item)[0] is not None,
    is_whole=_is_whole,
    whole=_read_state,
)
