"""Reads the events that ``codex exec --json`` prints: threads, turns and items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.events import Object
from toolcall_nb.core.sdk_objects import as_json_text, as_mapping, get, joined_text, nonempty
from toolcall_nb.runs.formats.codex_results import CallOutcome
from toolcall_nb.runs.formats.logged_items import LoggedItems

_EVENTS = ("thread.", "turn.", "item.", "tool.call.")
_CALLS = {"command_execution": "command_execution", "file_change": "file_change", "web_search": "web_search"}
_NOT_INPUT = frozenset(
    {
        *("id", "type", "status", "aggregated_output", "exit_code", "result", "error", "server", "tool", "arguments"),
        *("text", "output"),
    }
)


def is_thread_event(record: Any) -> bool:
    """Whether it is an event that ``codex exec --json`` prints."""
    kind = get(record, "type", str) or ""
    is_item = kind.startswith("item.") and get(record, "item", Mapping) is not None
    return is_item or (kind.startswith(("thread.", "turn.", "tool.call.")) and not kind.startswith("turn.context"))


class ThreadEvents:
    """Reads the events into ``messages``. An item is read when it is complete; one that never is, at the end."""

    def __init__(self, messages: LoggedItems) -> None:
        self._messages = messages
        self._growing: dict[str, Object] = {}

    def take(self, record: Mapping[str, Any], time: float | None) -> bool:
        """Reads an event; returns False if it has nothing for the transcript."""
        kind = str(record.get("type"))
        item = as_mapping(record.get("item"))
        match kind:
            case "item.started" | "item.updated":
                self._growing[str(item.get("id"))] = dict(item)
            case "item.completed":
                self._growing.pop(str(item.get("id")), None)
                return self._item(item, time)
            case "turn.completed" | "turn.failed":
                self._messages.use(record.get("usage"))
                return self._end(record)
            case "error" if record.get("will_retry") is not True:
                self._messages.error(nonempty(record, "message") or "The turn failed.", dict(record))
            case "tool.call.required":
                name = {"name": nonempty(record, "tool_name") or "tool", "call_id": record.get("call_id")}
                self._messages.take({"type": "function_call", **name, "arguments": record.get("arguments")}, time)
            case "tool.call.completed":
                self._messages.take({**record, "type": "function_call_output"}, time)
            case _ if kind.startswith("item.") and kind.endswith(".delta"):
                text = item.get("text") or get(item.get("content"), "text") or item.get("content")
                self._messages.text("user" if item.get("role") == "user" else "assistant", joined_text(text))
            case _:
                return False
        return True

    def close(self) -> None:
        """Reads the items that were never completed."""
        for item in self._growing.values():
            self._item(item, None)

    def _end(self, record: Mapping[str, Any]) -> bool:
        error = record.get("error")
        if record.get("type") == "turn.failed" or error:
            text = nonempty(error, "message") or (error if isinstance(error, str) else "The turn failed.")
            self._messages.error(text, error)
        return True

    def _item(self, item: Mapping[str, Any], time: float | None) -> bool:
        kind = nonempty(item, "type")
        text = nonempty(item, "text") or ""
        if kind == "agent_message":
            self._messages.text("assistant", text)
        elif kind == "reasoning":
            self._messages.reasoning(text)
        elif kind == "error":
            self._messages.error(nonempty(item, "message") or "The turn failed.", dict(item))
        elif kind == "mcp_tool_call" or kind in _CALLS:
            self._call(item, kind, time)
        else:
            return False
        return True

    def _call(self, item: Mapping[str, Any], kind: str, time: float | None) -> None:
        call_id = nonempty(item, "id") or ""
        given = {name: value for name, value in item.items() if name not in _NOT_INPUT and value is not None}
        server = {"namespace": item["server"]} if nonempty(item, "server") else {}
        call = {
            "type": "function_call",
            "call_id": call_id,
            "name": nonempty(item, "tool") or _CALLS.get(kind, kind),
            "arguments": as_json_text(item.get("arguments", given)),
        }
        self._messages.take({**call, **server}, time)
        status = item.get("status")
        if status == "declined":
            self._messages.deny(call_id)
        elif status != "in_progress":
            self._messages.result(call_id, _end_of(item, status))


def _end_of(item: Mapping[str, Any], status: Any) -> CallOutcome:
    error, exit_code = item.get("error"), get(item, "exit_code", int)
    result = item.get("aggregated_output", item.get("result"))
    if error:
        result = nonempty(error, "message") or (error if isinstance(error, str) else as_json_text(error))
    details = {} if exit_code is None else {"exit_code": exit_code}
    return CallOutcome(None, bool(error) or status == "failed" or exit_code not in (None, 0), result, details)
