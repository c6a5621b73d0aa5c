"""Reads the Responses API: streams and complete responses, of OpenAI and of others that imitate it.

Source: openai-python 3.52, ``types/responses/response_stream_event.py``; recordings of Azure, xAI, DeepSeek, LM Studio
and GitHub Copilot. Copilot gives an item another id with each event, so items are identified by their index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import error_event, unknown_item
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.adapters.openai.content import ERROR_SENDER, USED_OF_USAGE, AudioPieces, counts_of
from toolcall_nb.adapters.openai.output import USED_OF_ITEM, OutputReader
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import get, nonempty, object_fields, type_name

_EVENTS = ("openai.types.responses.", "openai.lib.streaming.responses.")
_REASONS = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "content-filter"}
_FACTS = frozenset(
    {
        *("added", "done", "in_progress", "searching", "completed", "failed", "generating", "interpreting"),
        *("partial_image", "compacting", "keepalive"),
    }
)
"""Last words of event types that repeat other events, or only report progress."""

_OF_THE_REQUEST = (
    "background include input instructions max_output_tokens max_tool_calls metadata parallel_tool_calls prompt "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier store stream temperature "
    "text tool_choice tools top_p truncation user"
)
"""The fields of a response that repeat its request."""

_USED = in_use(
    # of deltas, of events that repeat what deltas said, and of previews of a picture
    "delta text refusal arguments input code name command partial_image_b64 item_id annotation error output "
    "size quality background output_format message param",
    response=in_use(
        f"id model status error incomplete_details {_OF_THE_REQUEST}",
        usage=USED_OF_USAGE,
        output=USED_OF_ITEM,
        envelope=True,
        snapshot=True,
    ),
    item=USED_OF_ITEM,
    part=in_use("text refusal annotations", envelope=True),
)


class OpenAIResponsesAdapter(MessageAdapter):
    """Reads events, raw or of the SDK. Several responses in sequence are steps of one message."""

    def __init__(self) -> None:
        super().__init__()
        self.output = OutputReader(self.message)
        self._audio = AudioPieces()
        self._response_id: str | None = None
        self._is_complete = False
        self._errors: set[str] = set()

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        event = _event(item)
        kind = get(event, "type", str) or ""
        read = _READERS.get(kind)
        if read is None and not kind.startswith("response."):
            return unknown_item(OPENAI_RESPONSES.title, event or item)
        is_steering = kind.startswith("response.steer")
        is_fact = kind.rpartition(".")[2] in _FACTS or kind.endswith(("_output_content.delta", "_output_content.done"))
        if read is None and (is_steering or not is_fact):
            return self.message.custom("openai", kind, event)
        events = [] if read is None else read(self, event)
        self.message.keep_unread("openai", _USED.unread(event))
        return events

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        events = [*self.message.start(), *self.output.end(), *self.message.other(self._audio.close())]
        if self.output.was_refused:
            self.message.reason = "content-filter"
        return events + self.message.close()

    # The response

    def begin(self, event: Mapping[str, Any]) -> list[Event]:
        """Reads ``response.created``; with another id, or after the end of the last response, it begins a further step.

        The OpenAI Agents SDK gives all responses of models without the Responses API one id (``FAKE_RESPONSES_ID``).
        """
        response = object_fields(event.get("response"))
        response_id = nonempty(response, "id")
        events: list[Event] = []
        if self._is_complete or (self._response_id is not None and response_id != self._response_id):
            events = [*self.output.end(), *self.message.next_step()]
            self._is_complete = False
        self._response_id = response_id or self._response_id
        return events + self.describe(event)

    def describe(self, event: Mapping[str, Any]) -> list[Event]:
        """Reads the response's id and model."""
        response = object_fields(event.get("response"))
        self.message.describe(model=nonempty(response, "model"), response_id=nonempty(response, "id"))
        return self.message.start(nonempty(response, "id"))

    def end(self, event: Mapping[str, Any]) -> list[Event]:
        """Reads ``response.completed`` and the like: the reason, the usage, and items without events of their own."""
        response = object_fields(event.get("response"))
        self._is_complete = True
        events = self.describe(event)
        for index, entry in enumerate(get(response, "output", (list, tuple)) or []):
            item = object_fields(entry)
            if not self.output.knows(index, item):
                events += self.output.done(index, item)
        self.message.describe(usage=counts_of(object_fields(response.get("usage"))))
        status = nonempty(response, "status") or str(event.get("type")).rpartition(".")[2]
        self.message.reason = self._reason(status, response)
        return events + (self._error(response.get("error")) if response.get("error") else [])

    def _reason(self, status: str, response: Mapping[str, Any]) -> str | None:
        if status == "completed":
            return "tool-calls" if self.output.awaits_results else "stop"
        if status == "incomplete":
            return _REASONS.get(str(get(response.get("incomplete_details"), "reason")), "other")
        return {"failed": "error", "cancelled": "other"}.get(status)

    def fail(self, event: Mapping[str, Any]) -> list[Event]:
        """Reads an ``error``; the failed response after it repeats it."""
        return self._error(object_fields(event.get("error")) or {key: event[key] for key in event if key != "type"})

    def _error(self, error: Any) -> list[Event]:
        self.message.reason = "error"
        text = get(error, "message", str) or str(error)
        if text in self._errors:
            return []
        self._errors.add(text)
        return self.message.other(error_event(ERROR_SENDER, error))

    def add_audio(self, event: Mapping[str, Any]) -> list[Event]:
        """Reads a piece of sound."""
        self._audio.add(get(event, "delta", str))
        return []


_Reader: TypeAlias = Callable[[OpenAIResponsesAdapter, Mapping[str, Any]], list[Event]]


def _index(event: Mapping[str, Any]) -> Any:
    """Returns the index in the output of the item that an event belongs to, or else the item's id."""
    index = get(event, "output_index", int)
    return nonempty(event, "item_id") if index is None else index


def _grow(kind: str, part_field: str) -> _Reader:
    return lambda to, e: to.output.grow(_index(e), (kind, get(e, part_field, int) or 0), e.get("delta"))


def _write_within(head: str) -> _Reader:
    return lambda to, e: to.output.write_within(_index(e), head, e.get("delta"))


_READERS: Mapping[str, _Reader] = {
    "response.created": OpenAIResponsesAdapter.begin,
    "response.queued": OpenAIResponsesAdapter.describe,
    "response.in_progress": OpenAIResponsesAdapter.describe,
    **dict.fromkeys(
        [f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled")],
        OpenAIResponsesAdapter.end,
    ),
    "error": OpenAIResponsesAdapter.fail,
    "response.output_item.added": lambda to, e: to.output.begin(_index(e), object_fields(e.get("item"))),
    "response.output_item.done": lambda to, e: to.output.done(_index(e), object_fields(e.get("item"))),
    "response.output_text.delta": _grow("text", "content_index"),
    "response.refusal.delta": _grow("refusal", "content_index"),
    "response.output_text.annotation.added": lambda to, e: to.output.cite(e.get("annotation")),
    "response.reasoning_summary_text.delta": _grow("summary", "summary_index"),
    "response.reasoning_text.delta": _grow("content", "content_index"),
    "response.function_call_arguments.delta": lambda to, e: to.output.write(_index(e), e.get("delta")),
    "response.function_call_arguments.done": lambda to, e: to.output.finish_text(_index(e), e.get("arguments")),
    "response.mcp_call_arguments.delta": lambda to, e: to.output.write(_index(e), e.get("delta")),
    "response.mcp_call_arguments.done": lambda to, e: to.output.finish_text(_index(e), e.get("arguments")),
    "response.custom_tool_call_input.delta": lambda to, e: to.output.write(_index(e), e.get("delta")),
    "response.custom_tool_call_input.done": lambda to, e: to.output.finish_text(_index(e), e.get("input"), False),
    "response.code_interpreter_call_code.delta": _write_within('{"code": "'),
    "response.code_interpreter_call_code.done": lambda to, e: to.output.finish(_index(e), {"code": e.get("code")}),
    "response.apply_patch_call_operation_diff.delta": _write_within('{"diff": "'),
    "response.shell_call_command.added": lambda to, e: to.output.write_command(_index(e)),
    "response.shell_call_command.delta": _write_within('{"commands": ["'),
    "response.audio.delta": OpenAIResponsesAdapter.add_audio,
    "response.audio.transcript.delta": lambda to, e: to.output.grow(_index(e), ("text", "transcript"), e.get("delta")),
}
"""The reader of each event type."""


def _event(item: Any) -> Mapping[str, Any]:
    """Returns the item as a mapping; the helper's events without their snapshots, which grow with each event."""
    if not type_name(item).startswith(_EVENTS[1]):
        return object_fields(item)
    return object_fields(
        item.model_dump(mode="json", exclude={"snapshot", "parsed"}, exclude_unset=True, warnings=False)
    )


def _is_item(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return type_name(item).startswith(_EVENTS) and type_name(item).endswith("Event")
    kind = get(item, "type", str) or ""
    return kind.startswith("response.") or (
        kind == "error" and ("sequence_number" in item or ("message" in item and len(item) > 2))
    )


def _is_whole(thing: Any) -> bool:
    if isinstance(thing, Mapping):
        is_ours = thing.get("object") == "response" or ("created_at" in thing and "model" in thing)
        return is_ours and isinstance(thing.get("output"), list | tuple)
    name = type_name(thing).partition("[")[0]
    return name.startswith("openai.types.responses.") and name.rpartition(".")[2] in ("Response", "ParsedResponse")


def _read_response(thing: Any) -> list[Event]:
    adapter = OpenAIResponsesAdapter()
    return [*adapter.take({"type": "response.completed", "response": object_fields(thing)}), *adapter.close()]


OPENAI_RESPONSES = Format(
    name="openai-responses",
    title="a response of OpenAI's Responses API or its stream",
    is_item=_is_item,
    adapter=OpenAIResponsesAdapter,
    is_whole=_is_whole,
    whole=_read_response,
)
