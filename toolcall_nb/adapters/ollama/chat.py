"""Ollama's own API, ``/api/chat`` and ``/api/generate``: the lines of a stream, and whole replies.

Source: ollama/ollama, ``docs/api.md``; ollama-python, ``_types.py``. A whole reply is a line that says ``done``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.assembling import Assembler, usage_of
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.parts import error_event, file_event, strange_item
from toolcall_nb.adapters.plain import get, json_value, mapping, plain, type_name
from toolcall_nb.core.events import Event

__all__ = ["FORMAT", "OllamaAdapter"]

_REASONS = {"stop": "stop", "length": "length"}
_USAGE = {
    "prompt_eval_count": "inputTokens",
    "eval_count": "outputTokens",
}


class OllamaAdapter:
    """Reads the lines of one stream. Calls come whole, mostly without ids."""

    def __init__(self) -> None:
        self.message = Assembler()
        self._has_calls = False

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        line = mapping(plain(item))
        if "error" in line:
            self.message.reason = "error"
            return self.message.other(error_event("Ollama", line["error"]))
        if not _is_line(line):
            return strange_item(FORMAT.title, line or item)
        if model := get(line, "model", str):
            self.message.metadata["model"] = model
        message = mapping(line.get("message")) or line
        thought, text = get(message, "thinking", str), get(message, "content", str) or get(message, "response", str)
        found = self.message.start()
        found += self.message.reasoning(thought) if thought else []
        found += self.message.text(text) if text else []
        for image in get(message, "images", list) or []:
            found += self._image(image)
        for call in get(message, "tool_calls", list) or []:
            found += self._call(mapping(call))
        return [*found, *(self._end(line) if line.get("done") is True else [])]

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""
        return self.message.close()

    def _call(self, call: Mapping[str, Any]) -> list[Event]:
        function, key = mapping(call.get("function")), object()
        self._has_calls = True
        begun = self.message.begin_call(key, get(call, "id", str), get(function, "name", str) or "tool")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            return [*begun, *self.message.arguments(key, arguments), *self.message.end_call(key)]
        return [*begun, *self.message.end_call(key, json_value({} if arguments is None else arguments))]

    def _image(self, image: Any) -> list[Event]:
        file = file_event("image/png", image)
        return self.message.other(file) if file is not None else []

    def _end(self, line: Mapping[str, Any]) -> list[Event]:
        kind = _REASONS.get(get(line, "done_reason", str) or "stop", "other")
        self.message.reason = "tool-calls" if kind == "stop" and self._has_calls else kind
        if usage := usage_of(line, _USAGE):
            self.message.metadata["usage"] = {**usage, "totalTokens": sum(usage.values())}
        return self.message.end_block()


def _is_line(thing: Any) -> bool:
    line = mapping(thing)
    has_content = isinstance(line.get("message"), Mapping) or isinstance(line.get("response"), str)
    return has_content and isinstance(line.get("done"), bool)


def _is_item(item: Any) -> bool:
    return _is_line(item) or type_name(item) in ("ollama._types.ChatResponse", "ollama._types.GenerateResponse")


def _whole(thing: Any) -> list[Event]:
    adapter = OllamaAdapter()
    return [*adapter.take(thing), *adapter.close()]


FORMAT = Format(
    name="ollama",
    title="a reply of Ollama or its stream",
    is_item=_is_item,
    adapter=OllamaAdapter,
    is_whole=_is_item,
    whole=_whole,
)
