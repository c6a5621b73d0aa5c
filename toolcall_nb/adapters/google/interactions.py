"""Reads Google's Interactions API: streams of steps, and complete interactions.

Source: googleapis/python-genai 2.34, ``_gaos/types/interactions`` (``interactionsseevent.py``, ``step.py``,
``stepdelta.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import custom_part_event, file_event, unknown_item, usage_of
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.core.contents import read_contents
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get, object_fields, type_name

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
    "inputTokens": ("total_input_tokens", "total_tool_use_tokens"),
    "outputTokens": ("total_output_tokens", "total_thought_tokens"),
    "totalTokens": "total_tokens",
    "cachedInputTokens": "total_cached_tokens",
    "reasoningTokens": "total_thought_tokens",
}
_CONTENTS = {
    "text": in_use("text annotations"),
    **dict.fromkeys(("image", "audio", "video", "document"), in_use("data mime_type uri")),
}
_USED = in_use(
    "step error status interaction_id",
    interaction=in_use(
        # what repeats the request and the steps
        "id model status steps input tools generation_config agent_config system_instruction response_format "
        "response_mime_type response_modalities safety_settings webhook_config output_text output_audio output_image "
        "output_video",
        usage=in_use(
            "total_input_tokens total_tool_use_tokens total_output_tokens total_thought_tokens total_tokens "
            "total_cached_tokens"
        ),
        envelope=True,
        snapshot=True,
    ),
    delta=in_use(
        kinds={
            **_CONTENTS,
            "thought_signature": in_use("signature"),
            "thought_summary": in_use(content=in_use(kinds=_CONTENTS, envelope=True)),
            **dict.fromkeys(("text_annotation", "text_annotation_delta"), in_use("annotations")),
            "arguments_delta": in_use("arguments"),
        },
        envelope=True,
    ),
)
_USED_OF_STEP = in_use(
    kinds={
        "thought": in_use("signature", summary=in_use(kinds=_CONTENTS, envelope=True)),
        "model_output": in_use(content=in_use(kinds=_CONTENTS, envelope=True)),
        "*_call": in_use("id name arguments signature server_name"),
        "*_result": in_use("call_id result is_error name"),
    }
)


class _Step(Struct):
    """An open step. ``fields`` holds the fields of its start and its deltas; ``key`` is that of its call or text."""

    key: Any
    kind: str
    fields: Object
    has_grown: bool = False


class InteractionsAdapter(MessageAdapter):
    """Reads the events of one interaction. A tool that Google runs is a call, named after its step."""

    def __init__(self) -> None:
        super().__init__()
        self._steps: dict[Any, _Step] = {}
        self._has_steps = False

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        event = object_fields(item)
        index = event.get("index") if isinstance(event.get("index"), int) else None
        events = self._read(event, index)
        if events is None:
            kind = get(event, "event_type", str)
            return (
                self.message.custom("google", kind, event) if kind else unknown_item(INTERACTIONS.title, event or item)
            )
        self.message.keep_unread("google", _USED.unread(event))
        return events

    def _read(self, event: Mapping[str, Any], index: int | None) -> list[Event] | None:
        """Returns the events of an item; None for one of another type."""
        match get(event, "event_type", str):
            case "interaction.created":
                events = self.next_step() if self.message.reason is not None else []
                return [*events, *self._head(as_mapping(event.get("interaction")))]
            case "interaction.completed" | "interaction.in_progress":
                return self._head(as_mapping(event.get("interaction")))
            case "interaction.status_update":
                return self.message.start()
            case "step.start":
                return [*self._stop(index), *self._begin(index, as_mapping(event.get("step")))]
            case "step.delta":
                return self._grow(index, as_mapping(event.get("delta")))
            case "step.stop":
                return self._stop(index)
            case "error":
                return self.message.fail("Google", event.get("error"))
        return None

    def whole(self, interaction: Mapping[str, Any]) -> list[Event]:
        """Returns the events of a complete interaction."""
        return [*self.take({"event_type": "interaction.completed", "interaction": interaction}), *self.close()]

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        return [*(event for index in list(self._steps) for event in self._stop(index)), *self.message.close()]

    def _head(self, interaction: Mapping[str, Any]) -> list[Event]:
        response_id = get(interaction, "id", str) or None
        model = get(interaction, "model", str) or get(interaction, "agent", str)
        self.message.describe(model, usage_of(as_mapping(interaction.get("usage")), _USAGE), response_id)
        events = self.message.start(response_id)
        self.message.reason = _REASONS.get(get(interaction, "status", str) or "", self.message.reason)
        for index, step in enumerate([] if self._has_steps else get(interaction, "steps", list) or []):
            events += [*self._begin(index, as_mapping(step)), *self._stop(index)]
        return events

    def next_step(self) -> list[Event]:
        """Ends a reply and begins the next one of the same message."""
        self._has_steps = False
        return super().next_step()

    # Steps

    def _begin(self, index: Any, fields: Mapping[str, Any]) -> list[Event]:
        self._has_steps = True
        step = self._steps[index] = _Step(object(), get(fields, "type", str) or "unknown", dict(fields))
        match step.kind:
            case "thought":
                events = self.message.reasoning("", step.key, self._signature(fields))
                return events + self._contents(step, get(fields, "summary", list))
            case "model_output":
                return self._contents(step, get(fields, "content", list))
            case kind if kind.endswith("_call"):
                name = get(fields, "name", str) or kind.removesuffix("_call")
                return self.message.begin_call(
                    step.key,
                    get(fields, "id", str),
                    name,
                    provider_executed=None if kind == "function_call" else True,
                    provider_metadata=self._call_metadata(fields),
                )
            case _:
                return []

    def _contents(self, step: _Step, contents: Iterable[Any] | None) -> list[Event]:
        return [event for content in contents or [] for event in self._content(step, as_mapping(content))]

    def _content(self, step: _Step, content: Mapping[str, Any]) -> list[Event]:
        """Returns the events of a text with its annotations or of a file, in a delta or in a complete step."""
        text = get(content, "text", str)
        if text is not None and step.kind == "thought":
            return [*self.message.reasoning(text, step.key), *self._annotated(content)]
        if text is not None:
            return [*self.message.text(text, step.key), *self._annotated(content)]
        kind = get(content, "type", str) or "content"
        return self.message.other(_file(content) or custom_part_event("google", kind, content))

    def _annotated(self, content: Mapping[str, Any]) -> list[Event]:
        events: list[Event] = []
        for annotation in get(content, "annotations", list) or []:
            url, title = get(annotation, "url", str) or get(annotation, "document_uri", str), get(annotation, "title")
            source = self.message.sources.page(url, title, {"google": as_json_value(annotation)})
            events += self.message.cite("google", annotation, source)
        return events

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> list[Event]:
        kind = get(delta, "type", str) or "unknown"
        if index not in self._steps:  # its start was not seen
            step_type = kind if kind.endswith(("_call", "_result")) else "model_output"
            step_type = "thought" if kind.startswith("thought") else step_type
            return [*self._begin(index, {"type": step_type}), *self._grow(index, delta)]
        step = self._steps[index]
        match kind:
            case "text" | "image" | "audio" | "video" | "document":
                return self._content(step, delta)
            case "thought_signature":
                return self.message.annotate(self._signature(delta) or {})
            case "thought_summary":
                return self._content(step, as_mapping(delta.get("content")))
            case "text_annotation_delta" | "text_annotation":
                return self._annotated(delta)
            case "arguments_delta":
                step.has_grown = True
                return self.message.arguments(step.key, get(delta, "arguments", str) or "")
            case _:
                fields = {name: value for name, value in delta.items() if name != "type" and value not in (None, "")}
                step.fields.update(fields)
                return []

    def _stop(self, index: Any) -> list[Event]:
        step = self._steps.pop(index, None)
        if step is None:
            return []
        self.message.keep_unread("google", _USED_OF_STEP.unread(step.fields))
        match step.kind:
            case "thought" | "model_output":
                return self.message.end_block()
            case kind if kind.endswith("_call"):
                arguments = as_mapping(step.fields.get("arguments"))
                name, metadata = get(step.fields, "name", str), self._call_metadata(step.fields)
                self.message.describe_call(step.key, name, provider_metadata=metadata)
                return self.message.end_call(step.key, MISSING if step.has_grown else as_json_value(arguments))
            case kind:
                return self._result(kind, step.fields) or self.message.custom("google", kind, step.fields)

    def _result(self, kind: str, fields: Mapping[str, Any]) -> list[Event]:
        call_id = get(fields, "call_id", str) or ""
        result = read_contents(fields.get("result"), _file)
        more: Object = {"provider_executed": None if kind == "function_result" else True, "contents": result.contents}
        if fields.get("is_error") is True:
            return self.message.failure(call_id, result.error, **more)
        return self.message.output(call_id, result.output, **more)

    def _call_metadata(self, fields: Mapping[str, Any]) -> Object | None:
        metadata: Object = dict((self._signature(fields) or {}).get("google", {}))
        if server := get(fields, "server_name", str):
            metadata["serverName"] = server
        return {"google": metadata} if metadata else None

    @staticmethod
    def _signature(fields: Mapping[str, Any]) -> Object | None:
        signature = get(fields, "signature", str)
        return {"google": {"thoughtSignature": signature}} if signature else None


def _file(content: Mapping[str, Any]) -> Event | None:
    data, url = content.get("data"), get(content, "uri", str)
    metadata: Object | None = {"google": {"uri": url}} if data and url else None
    return file_event(get(content, "mime_type", str), data, url, metadata)


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


INTERACTIONS = Format(
    name="google-interactions",
    title="an interaction with Google or its stream",
    adapter=InteractionsAdapter,
    is_item=_is_item,
    is_whole=_is_whole,
    whole=lambda thing: InteractionsAdapter().whole(object_fields(thing)),
)
