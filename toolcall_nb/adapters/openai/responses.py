"""The Responses API: its streams and whole responses, of OpenAI and of others who speak it.

Source: openai-python 3.52, ``types/responses/response_stream_event.py``; recordings of Azure, xAI, DeepSeek, LM Studio
and GitHub Copilot, which gives an item another id with each event: items are known by their index in the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from toolcall_nb.adapters.assembling import Assembler
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.openai.output import OutputReader
from toolcall_nb.adapters.openai.parts import PROVIDER, WHO, Sound, add_up, counts_of, mapped, nonempty
from toolcall_nb.adapters.parts import custom, error_event, strange_item
from toolcall_nb.adapters.plain import get, type_name
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object

__all__ = ["FORMAT", "OpenAIResponsesAdapter"]

_EVENTS = ("openai.types.responses.", "openai.lib.streaming.responses.")
_REASONS = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "content-filter"}
_FACTS = frozenset(
    {
        *("added", "done", "in_progress", "searching", "completed", "failed", "generating", "interpreting"),
        *("partial_image", "compacting", "accepted", "pending", "steer", "keepalive"),
    }
)
"""Last words of the types of events that say again what others say, or only that something goes on."""


class OpenAIResponsesAdapter:
    """Events, raw or of the SDK. Several responses behind each other are steps of one message."""

    def __init__(self) -> None:
        self.message = Assembler()
        self.output = OutputReader(self.message)
        self._sound = Sound()
        self._response_id: str | None = None
        self._usages: list[Object] = []
        self._errors: set[str] = set()

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        event = _event(item)
        kind = get(event, "type", str) or ""
        read = _READERS.get(kind)
        if read is not None:
            return read(self, event)
        if not kind.startswith("response."):
            return strange_item(FORMAT.title, event or item)
        is_fact = kind.rpartition(".")[2] in _FACTS or kind.endswith("_output_content.delta")
        return [] if is_fact else self.message.other(custom(PROVIDER, kind, dict(event)))

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""
        found = [*self.message.start(), *self.output.end()]
        sound = self._sound.close()
        found += self.message.other(sound) if sound is not None else []
        if self._usages:
            self.message.metadata["usage"] = add_up(self._usages)
        if self.output.was_refused:
            self.message.reason = "content-filter"
        return found + self.message.close()

    # The response

    def begin(self, event: Mapping[str, Any]) -> list[Event]:
        """``response.created``: with another id than the last, a further step begins."""
        response = mapped(event.get("response"))
        response_id = nonempty(response, "id")
        found: list[Event] = []
        if self._response_id is not None and response_id != self._response_id:
            found = [*self.output.end(), *self.message.other(ev.FinishStep()), ev.StartStep()]
        self._response_id = response_id or self._response_id
        return found + self.tell(event)

    def tell(self, event: Mapping[str, Any]) -> list[Event]:
        """Of the response as a whole: its id, its model."""
        response = mapped(event.get("response"))
        if model := nonempty(response, "model"):
            self.message.metadata["model"] = model
        return self.message.start(nonempty(response, "id"))

    def end(self, event: Mapping[str, Any]) -> list[Event]:
        """``response.completed`` and the like: why it ended, what it cost, and items that were not told yet."""
        response = mapped(event.get("response"))
        found = self.tell(event)
        for place, given in enumerate(get(response, "output", (list, tuple)) or []):
            item = mapped(given)
            if not self.output.knows(place, item):
                found += self.output.done(place, item)
        if counts := counts_of(mapped(response.get("usage"))):
            self._usages.append(counts)
        status = nonempty(response, "status") or str(event.get("type")).rpartition(".")[2]
        self.message.reason = self._reason(status, response)
        return found + (self._error(response.get("error")) if response.get("error") else [])

    def _reason(self, status: str, response: Mapping[str, Any]) -> str | None:
        if status == "completed":
            return "tool-calls" if self.output.awaits_results else "stop"
        if status == "incomplete":
            return _REASONS.get(str(get(response.get("incomplete_details"), "reason")), "other")
        return {"failed": "error", "cancelled": "other"}.get(status)

    def fail(self, event: Mapping[str, Any]) -> list[Event]:
        """An ``error``; the failed response behind it says the same again."""
        return self._error(mapped(event.get("error")) or {key: event[key] for key in event if key != "type"})

    def _error(self, error: Any) -> list[Event]:
        self.message.reason = "error"
        said = get(error, "message", str) or str(error)
        if said in self._errors:
            return []
        self._errors.add(said)
        return self.message.other(error_event(WHO, error))

    def hear(self, event: Mapping[str, Any]) -> list[Event]:
        """More sound."""
        self._sound.add(get(event, "delta", str))
        return []


_Reader: TypeAlias = Callable[[OpenAIResponsesAdapter, Mapping[str, Any]], list[Event]]


def _place(event: Mapping[str, Any]) -> Any:
    """What an event is of: an index in the output, or else an id."""
    index = get(event, "output_index", int)
    return nonempty(event, "item_id") if index is None else index


def _part(event: Mapping[str, Any], name: str) -> int:
    """Which part of the item an event is of."""
    index: int | None = get(event, name, int)
    return index or 0


_READERS: Mapping[str, _Reader] = {
    "response.created": OpenAIResponsesAdapter.begin,
    "response.queued": OpenAIResponsesAdapter.tell,
    "response.in_progress": OpenAIResponsesAdapter.tell,
    **dict.fromkeys(
        [f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled")],
        OpenAIResponsesAdapter.end,
    ),
    "error": OpenAIResponsesAdapter.fail,
    "response.output_item.added": lambda to, e: to.output.begin(_place(e), mapped(e.get("item"))),
    "response.output_item.done": lambda to, e: to.output.done(_place(e), mapped(e.get("item"))),
    "response.output_text.delta": lambda to, e: to.output.text(_place(e), _part(e, "content_index"), e.get("delta")),
    "response.refusal.delta": lambda to, e: to.output.refusal(_place(e), _part(e, "content_index"), e.get("delta")),
    "response.output_text.annotation.added": lambda to, e: to.output.cite(e.get("annotation")),
    "response.reasoning_summary_text.delta": lambda to, e: to.output.reasoning(
        _place(e), "summary", _part(e, "summary_index"), e.get("delta")
    ),
    "response.reasoning_text.delta": lambda to, e: to.output.reasoning(
        _place(e), "content", _part(e, "content_index"), e.get("delta")
    ),
    "response.function_call_arguments.delta": lambda to, e: to.output.write(_place(e), e.get("delta")),
    "response.function_call_arguments.done": lambda to, e: to.output.written(_place(e), e.get("arguments")),
    "response.mcp_call_arguments.delta": lambda to, e: to.output.write(_place(e), e.get("delta")),
    "response.mcp_call_arguments.done": lambda to, e: to.output.written(_place(e), e.get("arguments")),
    "response.custom_tool_call_input.delta": lambda to, e: to.output.write(_place(e), e.get("delta")),
    "response.custom_tool_call_input.done": lambda to, e: to.output.written(_place(e), e.get("input"), False),
    "response.code_interpreter_call_code.delta": lambda to, e: to.output.write_within(
        _place(e), '{"code": "', e.get("delta")
    ),
    "response.code_interpreter_call_code.done": lambda to, e: to.output.given(_place(e), {"code": e.get("code")}),
    "response.apply_patch_call_operation_diff.delta": lambda to, e: to.output.write_within(
        _place(e), '{"diff": "', e.get("delta")
    ),
    "response.shell_call_command.added": lambda to, e: to.output.write_command(_place(e)),
    "response.shell_call_command.delta": lambda to, e: to.output.write_within(
        _place(e), '{"commands": ["', e.get("delta")
    ),
    "response.audio.delta": OpenAIResponsesAdapter.hear,
    "response.audio.transcript.delta": lambda to, e: to.output.text(_place(e), "transcript", e.get("delta")),
}
"""What reads an event, by its type."""


def _event(item: Any) -> Mapping[str, Any]:
    """The item as a mapping; of the helper's events without what they have gathered, which grows with each."""
    if not type_name(item).startswith(_EVENTS[1]):
        return mapped(item)
    return mapped(item.model_dump(mode="json", exclude={"snapshot", "parsed"}, exclude_unset=True, warnings=False))


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


def _whole(thing: Any) -> Iterable[Event]:
    adapter = OpenAIResponsesAdapter()
    return [*adapter.end({"response": thing}), *adapter.close()]


FORMAT = Format(
    name="openai-responses",
    title="a response of OpenAI's Responses API or its stream",
    is_item=_is_item,
    adapter=OpenAIResponsesAdapter,
    is_whole=_is_whole,
    whole=_whole,
)
