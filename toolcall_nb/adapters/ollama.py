"""Reads Ollama's own API, ``/api/chat`` and ``/api/generate``: the lines of a stream, and complete replies.

Source: ollama/ollama, ``docs/api.md``; ollama-python, ``_types.py``. A complete reply is a line with ``done``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import file_event, unknown_item, usage_of
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get, object_fields, type_name

_REASONS = {"stop": "stop", "length": "length"}
_USAGE = {"inputTokens": "prompt_eval_count", "outputTokens": "eval_count"}
_USED_OF_MESSAGE = in_use(
    "content response thinking images", tool_calls=in_use("id", function=in_use("name arguments")), envelope=True
)
_USED = in_use(
    "model error done done_reason prompt_eval_count eval_count content response thinking images tool_calls",
    message=_USED_OF_MESSAGE,
)


class OllamaAdapter(MessageAdapter):
    """Reads the lines of one stream. Tool calls come complete, and usually without ids."""

    def __init__(self) -> None:
        super().__init__()
        self._has_calls = False

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        line = object_fields(item)
        if "error" in line:
            return self.message.fail("Ollama", line["error"])
        if not _is_line(line):
            return unknown_item(OLLAMA_CHAT.title, line or item)
        events = self.begin_reply()
        self.message.describe(model=get(line, "model", str))
        message = as_mapping(line.get("message")) or line
        thought, text = get(message, "thinking", str), get(message, "content", str) or get(message, "response", str)
        events += self.message.reasoning(thought) if thought else []
        events += self.message.text(text) if text else []
        for image in get(message, "images", list) or []:
            events += self.message.other(file_event("image/png", image))
        for call in get(message, "tool_calls", list) or []:
            events += self._call(as_mapping(call))
        self.message.keep_unread("ollama", _USED.unread(line))
        return [*events, *(self._end(line) if line.get("done") is True else [])]

    def next_step(self) -> list[Event]:
        """Ends a reply and begins the next one of the same message."""
        self._has_calls = False
        return super().next_step()

    def _call(self, call: Mapping[str, Any]) -> list[Event]:
        function, key = as_mapping(call.get("function")), object()
        self._has_calls = True
        begins = self.message.begin_call(key, get(call, "id", str), get(function, "name", str) or "tool")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            return [*begins, *self.message.arguments(key, arguments), *self.message.end_call(key)]
        return [*begins, *self.message.end_call(key, as_json_value({} if arguments is None else arguments))]

    def _end(self, line: Mapping[str, Any]) -> list[Event]:
        kind = _REASONS.get(get(line, "done_reason", str) or "stop", "other")
        self.message.reason = "tool-calls" if kind == "stop" and self._has_calls else kind
        if usage := usage_of(line, _USAGE):
            self.message.describe(usage={**usage, "totalTokens": sum(usage.values())})
        return self.message.end_block()


def _is_line(thing: Any) -> bool:
    line = as_mapping(thing)
    has_content = isinstance(line.get("message"), Mapping) or isinstance(line.get("response"), str)
    return has_content and isinstance(line.get("done"), bool)


def _is_item(item: Any) -> bool:
    return _is_line(item) or type_name(item) in ("ollama._types.ChatResponse", "ollama._types.GenerateResponse")


OLLAMA_CHAT = Format(
    name="ollama",
    title="a reply of Ollama or its stream",
    adapter=OllamaAdapter,
    is_item=_is_item,
    is_whole=_is_item,
)
