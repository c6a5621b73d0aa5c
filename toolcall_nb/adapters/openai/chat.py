"""Reads chat completions, streams and complete replies, of OpenAI and of the many providers that imitate it.

Source: openai-python 3.52 (``types/chat/chat_completion_chunk.py``, ``lib/streaming/chat/_events.py``). The additions
of others are from recordings: Azure, Groq, DeepSeek, Mistral, OpenRouter, Alibaba, xAI, Perplexity, Moonshot, Google.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.common_events import unknown_item
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.adapters.openai.choice import USED_OF_MESSAGE, ChoiceReader
from toolcall_nb.adapters.openai.content import ERROR_SENDER, USED_OF_USAGE, counts_of
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_mapping, dump, get, nonempty, object_fields, type_name

_HELPER = "openai.lib.streaming.chat."
_DERIVED = frozenset(
    {
        *("content.delta", "content.done", "refusal.delta", "refusal.done"),
        *("tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"),
        *("logprobs.content.delta", "logprobs.content.done", "logprobs.refusal.delta", "logprobs.refusal.done"),
    }
)
"""Events that the SDK's helper derives from the chunks and yields beside them."""

_CHUNKS = frozenset(
    {
        *("ChatCompletionChunk", "CompletionChunk", "CompletionEvent", "ChatCompletionStreamOutput"),
        *("ModelResponseStream", "ChatCompletionStreamResponse"),
    }
)
_REPLIES = frozenset({"ChatCompletion", "ParsedChatCompletion", "ChatCompletionResponse", "ChatCompletionOutput"})
_REPLIES |= {"ModelResponse"}

_USED = in_use(
    "id model error citations search_results data",
    usage=USED_OF_USAGE,
    x_groq=in_use("error", usage=USED_OF_USAGE),
    choices=in_use(
        "text finish_reason error",
        usage=USED_OF_USAGE,
        delta=USED_OF_MESSAGE,
        message=USED_OF_MESSAGE,
        envelope=True,
    ),
)


class OpenAIChatAdapter:
    """Reads chunks, raw or of an SDK, and the events of ``client.chat.completions.stream()``.

    Choice 0 is the message. The others follow it, each a message with the metadata ``{"choice": number}``.
    """

    def __init__(self) -> None:
        self.message = Assembler()
        self._main = ChoiceReader(self.message)
        self._id: str | None = None
        self._others: dict[int, tuple[ChoiceReader, list[Event]]] = {}

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        chunk = _chunk(item)
        if chunk is None:
            return []
        if "choices" not in chunk and not chunk.get("error"):
            return unknown_item(CHAT_COMPLETIONS.title, chunk or item)
        events = [*self._next_reply(chunk), *self._describe(chunk)]
        for position, entry in enumerate(get(chunk, "choices", (list, tuple)) or []):
            choice = object_fields(entry)
            events += self._choice(choice, position)
            events += self._error(choice.get("error"))
        self.message.keep_unread("openai", _USED.unread(chunk))
        return events + self._error(chunk.get("error") or get(chunk.get("x_groq"), "error"))

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        events = [*self._main.end(), *self.message.close()]
        for _, (reader, waiting) in sorted(self._others.items()):
            events += [*waiting, *reader.end(), *reader.message.close()]
        self._others.clear()
        return events

    def _next_reply(self, chunk: Mapping[str, Any]) -> list[Event]:
        """Begins another reply with a chunk that has content and another id, after the end of the last one."""
        message_id, before = nonempty(chunk, "id"), self._id
        self._id = message_id or before
        if self.message.reason is None or before in (None, self._id) or not chunk.get("choices"):
            return []
        choice = object_fields(chunk["choices"][0])
        if not any(object_fields(choice.get("delta") or choice.get("message")).values()):
            return []
        events = [*self._main.end(), *self.message.end_calls(), *self.message.complete_calls()]
        self._main = ChoiceReader(self.message)
        return [*events, *self.message.next_step()]

    def _describe(self, chunk: Mapping[str, Any]) -> list[Event]:
        """Reads the message's id, model, usage and sources."""
        usage, message_id = chunk.get("usage") or get(chunk.get("x_groq"), "usage"), nonempty(chunk, "id")
        self.message.describe(nonempty(chunk, "model"), counts_of(object_fields(usage)), message_id)
        self._main.cite(chunk)
        return self.message.start(message_id) if message_id or chunk.get("choices") else []

    def _choice(self, choice: Mapping[str, Any], position: int) -> list[Event]:
        number = get(choice, "index", int)
        number = position if number is None else number
        self.message.describe(usage=counts_of(object_fields(choice.get("usage"))))  # Moonshot puts them there
        if not number:
            return self._main.choose(choice)
        if number not in self._others:
            message = Assembler()
            message.metadata["choice"] = number
            self._others[number] = (ChoiceReader(message), [])
        reader, waiting = self._others[number]
        waiting += reader.choose(choice)
        return []

    def _error(self, error: Any) -> list[Event]:
        return self.message.fail(ERROR_SENDER, dump(error) or error) if error else []


def _chunk(item: Any) -> Mapping[str, Any] | None:
    """Returns the chunk in an item; None for an event that the helper derived, an empty one for anything else."""
    if not isinstance(item, Mapping) and type_name(item).startswith(_HELPER):
        inner = getattr(item, "chunk", None)
        return None if inner is None else object_fields(inner)
    fields = object_fields(item)
    kind = get(fields, "type", str)
    if kind == "chunk":
        return object_fields(fields.get("chunk"))
    if kind in _DERIVED:
        return None
    return object_fields(fields["data"]) if "choices" not in fields and "data" in fields else fields


def _class_name(thing: Any) -> str:
    """Returns an object's class, without the parameters of a generic one."""
    return type(thing).__name__.partition("[")[0]


def _is_item(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return _class_name(item) in _CHUNKS or type_name(item).startswith(_HELPER)
    kind = get(item, "type", str)
    if kind in _DERIVED or (kind == "chunk" and "chunk" in item):
        return True
    if "choices" in item:
        choices = get(item, "choices", (list, tuple))
        is_ours = choices is not None and all(isinstance(choice, Mapping) for choice in choices[:1])
        return is_ours and (not _is_whole(item) or item.get("object") == "text_completion")
    error = item.get("error")
    is_error = isinstance(error, Mapping) or (isinstance(error, str) and len(item) == 1)
    return bool(error) and is_error and "type" not in item and get(error, "status", str) is None


def _is_whole(thing: Any) -> bool:
    if not isinstance(thing, Mapping):
        return _class_name(thing) in _REPLIES and not type_name(thing).startswith("pydantic_ai.")
    choices = get(thing, "choices", (list, tuple))
    if not choices or thing.get("object") == "chat.completion.chunk":
        return False
    first = as_mapping(choices[0])
    return "delta" not in first and ("message" in first or thing.get("object") == "text_completion")


CHAT_COMPLETIONS = Format(
    name="openai-chat",
    title="an OpenAI chat completion or its stream",
    adapter=OpenAIChatAdapter,
    is_item=_is_item,
    is_whole=_is_whole,
)
