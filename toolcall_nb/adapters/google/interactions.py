"""Google's Interactions API: streams of steps, and whole interactions.

Source: googleapis/python-genai 2.34, ``_gaos/types/interactions`` (``interactionsseevent.py``, ``step.py``,
``stepdelta.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.adapters.assembling import Assembler, usage_of
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.parts import Sources, custom, error_event, file_event, strange_item, text_of
from toolcall_nb.adapters.plain import get, json_value, mapping, plain, type_name
from toolcall_nb.core.events import MISSING, Event, Object

__all__ = ["FORMAT", "InteractionsAdapter"]

_PROVIDER = "google"
_SDK = ("google.genai._gaos.types.interactions.", "google.genai._interactions.types.")
_REASONS = {
    "completed": "stop",
    "requires_action": "tool-calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "failed": "error",
    "cancelled": "other",
}
_USAGE = {
    "total_input_tokens": "inputTokens",
    "total_tool_use_tokens": "inputTokens",
    "total_output_tokens": "outputTokens",
    "total_thought_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "total_cached_tokens": "cachedInputTokens",
}
_REASONING = {"total_thought_tokens": "reasoningTokens"}


class _Step(Struct):
    """A step that is open: what its start and its deltas said, and the key of its call or its text."""

    key: Any
    kind: str
    given: Object
    has_grown: bool = False


class InteractionsAdapter:
    """Reads the events of one interaction. Tools that Google runs are calls by the name of their step."""

    def __init__(self) -> None:
        self.message = Assembler()
        self._sources = Sources()
        self._steps: dict[Any, _Step] = {}

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        event = mapping(plain(item))
        index = event.get("index") if isinstance(event.get("index"), int) else None
        match get(event, "event_type", str):
            case "interaction.created" | "interaction.completed" | "interaction.in_progress":
                return self._head(mapping(event.get("interaction")))
            case "interaction.status_update":
                return self.message.start()
            case "step.start":
                return [*self._stop(index), *self._begin(index, mapping(event.get("step")))]
            case "step.delta":
                return self._grow(index, mapping(event.get("delta")))
            case "step.stop":
                return self._stop(index)
            case "error":
                self.message.reason = "error"
                return self.message.other(error_event("Google", event.get("error")))
            case None:
                return strange_item(FORMAT.title, event or item)
            case kind:
                return self.message.other(custom(_PROVIDER, kind, event))

    def whole(self, interaction: Mapping[str, Any]) -> list[Event]:
        """All of an interaction that is complete."""
        found = self._head(interaction)
        for index, given in enumerate(get(interaction, "steps", list) or []):
            found += [*self._begin(index, mapping(given)), *self._stop(index)]
        return [*found, *self.close()]

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""
        return [*(event for index in list(self._steps) for event in self._stop(index)), *self.message.close()]

    def _head(self, interaction: Mapping[str, Any]) -> list[Event]:
        found = self.message.start(get(interaction, "id", str) or None)
        if model := get(interaction, "model", str) or get(interaction, "agent", str):
            self.message.metadata["model"] = model
        reported = mapping(interaction.get("usage"))
        if usage := {**usage_of(reported, _USAGE), **usage_of(reported, _REASONING)}:
            self.message.metadata["usage"] = usage
        self.message.reason = _REASONS.get(get(interaction, "status", str) or "", self.message.reason)
        return found

    # Its steps

    def _begin(self, index: Any, given: Mapping[str, Any]) -> list[Event]:
        step = self._steps[index] = _Step(object(), get(given, "type", str) or "unknown", dict(given))
        match step.kind:
            case "thought":
                found = self.message.reasoning("", step.key, self._signature(given))
                return found + self._contents(step, get(given, "summary", list))
            case "model_output":
                return self._contents(step, get(given, "content", list))
            case kind if kind.endswith("_call"):
                name = get(given, "name", str) or kind.removesuffix("_call")
                about = {"provider_executed": None if kind == "function_call" else True}
                metadata = {**(self._signature(given) or {}).get(_PROVIDER, {}), **_server(given)}
                about_call = {**about, "provider_metadata": {_PROVIDER: metadata} if metadata else None}
                return self.message.begin_call(step.key, get(given, "id", str), name, **about_call)
            case _:
                return []

    def _contents(self, step: _Step, contents: Iterable[Any] | None) -> list[Event]:
        return [event for content in contents or [] for event in self._content(step, mapping(content))]

    def _content(self, step: _Step, content: Mapping[str, Any]) -> list[Event]:
        """A piece of text with its annotations, or a file; what a delta brings and what a whole step holds."""
        text = get(content, "text", str)
        if text is not None and step.kind == "thought":
            return self.message.reasoning(text, step.key)
        if text is not None:
            return [*self.message.text(text, step.key), *self._annotated(content)]
        file = file_event(get(content, "mime_type", str), content.get("data"), get(content, "uri", str))
        kind = get(content, "type", str) or "content"
        return self.message.other(file if file is not None else custom(_PROVIDER, kind, content))

    def _annotated(self, content: Mapping[str, Any]) -> list[Event]:
        found = []
        for annotation in get(content, "annotations", list) or []:
            url, title = get(annotation, "url", str) or get(annotation, "document_uri", str), get(annotation, "title")
            if (source := self._sources.page(url, title, {_PROVIDER: json_value(annotation)})) is not None:
                found += self.message.after_block(source)
        return found

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> list[Event]:
        kind = get(delta, "type", str) or "unknown"
        if index not in self._steps:
            return [*self._begin(index, {"type": _step_of(kind)}), *self._grow(index, delta)]
        step = self._steps[index]
        match kind:
            case "text" | "image" | "audio" | "video" | "document":
                return self._content(step, delta)
            case "thought_signature":
                return self.message.annotate(self._signature(delta) or {})
            case "thought_summary":
                return self._content(step, mapping(delta.get("content")))
            case "text_annotation_delta" | "text_annotation":
                return self._annotated(delta)
            case "arguments_delta":
                step.has_grown = True
                return self.message.arguments(step.key, get(delta, "arguments", str) or "")
            case _:
                news = {name: value for name, value in delta.items() if name != "type" and value not in (None, "")}
                step.given.update(news)
                return []

    def _stop(self, index: Any) -> list[Event]:
        step = self._steps.pop(index, None)
        if step is None:
            return []
        match step.kind:
            case "thought" | "model_output":
                return self.message.end_block()
            case kind if kind.endswith("_call"):
                arguments = mapping(step.given.get("arguments"))
                return self.message.end_call(step.key, MISSING if step.has_grown else json_value(arguments))
            case kind:
                return self._result(kind, step.given) or self.message.other(custom(_PROVIDER, kind, step.given))

    def _result(self, kind: str, given: Mapping[str, Any]) -> list[Event]:
        call_id, about = get(given, "call_id", str), {"provider_executed": None if kind == "function_result" else True}
        if call_id is None:
            return []
        if given.get("is_error") is True:
            return self.message.failure(call_id, text_of(given.get("result")), **about)
        return self.message.output(call_id, json_value(given.get("result")), **about)

    @staticmethod
    def _signature(given: Mapping[str, Any]) -> Object | None:
        signature = get(given, "signature", str)
        return {_PROVIDER: {"thoughtSignature": signature}} if signature else None


def _server(given: Mapping[str, Any]) -> Object:
    name = get(given, "server_name", str)
    return {"serverName": name} if name else {}


def _step_of(kind: str) -> str:
    """The kind of step that such a delta belongs to, where its start was not seen."""
    if kind.startswith("thought"):
        return "thought"
    return kind if kind.endswith(("_call", "_result")) else "model_output"


def _is_item(item: Any) -> bool:
    if isinstance(item, Mapping):
        kind = get(item, "event_type", str) or ""
    else:
        kind = getattr(item, "event_type", "") if type_name(item).startswith(_SDK) else ""
    return isinstance(kind, str) and (kind.startswith(("interaction.", "step.")) or kind == "error")


def _is_whole(thing: Any) -> bool:
    if isinstance(thing, Mapping):
        return thing.get("object") == "interaction" and isinstance(thing.get("steps"), list)
    return type_name(thing).startswith(_SDK) and type_name(thing).endswith(".Interaction")


FORMAT = Format(
    name="google-interactions",
    title="an interaction with Google or its stream",
    is_item=_is_item,
    adapter=InteractionsAdapter,
    is_whole=_is_whole,
    whole=lambda thing: InteractionsAdapter().whole(mapping(plain(thing))),
)
