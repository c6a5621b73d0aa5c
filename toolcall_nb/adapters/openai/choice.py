"""Reads one choice of a chat completion: `ChoiceReader`, for the deltas of its message or the complete message.

`ToolPieces` puts together the pieces of its tool calls, however a provider numbers them. OpenAI gives each call an
``index``, and its id and name only with the first piece. Other providers send the id or the name with each piece,
another id with each piece, no index, no id, one index for all calls, the arguments in one piece or as an object, or a
name in several pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import custom_part_event
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.adapters.openai.content import TEXTS, AudioPieces, cite, image_event, part_file_event, text_in
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import get, nonempty, object_fields

_REASONS = {
    **dict.fromkeys(("stop", "eos", "end_turn", "stop_sequence", "eos_token"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "sensitive", "safety", "refusal"), "content-filter"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), "tool-calls"),
    **dict.fromkeys(("error", "network_error", "insufficient_system_resource", "repetition_truncation"), "error"),
}


_USED_OF_CALL = in_use(
    "id extra_content", function=in_use("name arguments", envelope=True), custom=in_use("name input", envelope=True)
)
_USED_OF_TEXT = in_use("text refusal", envelope=True)
USED_OF_MESSAGE = in_use(
    "refusal annotations executed_tools reasoning_content reasoning search_results citations function_call "
    "extra_content",
    envelope=True,
    reasoning_details=in_use("text summary signature data"),
    audio=in_use("data transcript"),
    images=in_use("image_url url"),
    content=in_use(
        kinds={
            **dict.fromkeys((*TEXTS, "refusal"), _USED_OF_TEXT),
            "thinking": in_use("closed", thinking=_USED_OF_TEXT),
        }
    ),
    tool_calls=_USED_OF_CALL,
)
"""The fields of a delta or a message that `ChoiceReader` uses."""


class ChoiceReader:
    """Reads a choice into ``message``: call `choose` with each of its deltas or messages, then `end`."""

    def __init__(self, message: Assembler) -> None:
        self.message = message
        self._calls = ToolPieces(message)
        self._pages: dict[str, Any] = {}  # titles by URL
        self._audio = AudioPieces()
        self._details: list[Object] = []
        self._was_refused = False

    def choose(self, choice: Mapping[str, Any]) -> list[Event]:
        """Reads an entry of ``choices``: a ``delta``, a ``message``, or the ``text`` of the older completions API."""
        if "delta" in choice:
            events = self.take(object_fields(choice["delta"]))
        elif "message" in choice:
            events = self.take(object_fields(choice["message"]), is_whole=True)
        else:
            events = self.message.text(get(choice, "text", str) or "")
        if reason := nonempty(choice, "finish_reason"):
            self.message.reason = _REASONS.get(reason.lower(), "other")
        elif "message" in choice:  # it is whole, whatever it does not say
            events += [*self._calls.close(), *self.message.end_calls(), *self.message.complete_calls()]
        return events

    def take(self, delta: Mapping[str, Any], is_whole: bool = False) -> list[Event]:
        """Reads a delta, or with ``is_whole`` a complete message, in which each call is complete."""
        events = [*self.message.start(), *self._reason(delta)]
        for position, tool in enumerate(_items(delta, "executed_tools")):
            events += executed_tool_events(self.message, tool, position)
        content = delta.get("content")
        for part in content if isinstance(content, list | tuple) else [content]:
            events += self._part(part)
        if refusal := nonempty(delta, "refusal"):
            self._was_refused = True
            events += [*self._end_reasoning(), *self.message.text(refusal, "refusal")]
        audio = object_fields(delta.get("audio"))
        self._audio.add(get(audio, "data", str))
        if transcript := nonempty(audio, "transcript"):
            events += [*self._end_reasoning(), *self.message.text(transcript)]
        for item in _items(delta, "images"):
            events += self._add(image_event(object_fields(item).get("image_url")) or image_event(item))
        for item in _items(delta, "annotations"):
            events += cite(self.message, item)
        self.cite(delta)
        pieces = _items(delta, "tool_calls")
        if old := object_fields(delta.get("function_call")):  # of the API of 2023: one for a message
            pieces = [*pieces, {"index": -1, "function": old}]
        if pieces and "extra_content" in delta:  # Google's signature of a message that is nothing but calls
            pieces[0] = {"extra_content": delta["extra_content"], **object_fields(pieces[0])}
        for piece in pieces:
            events += [*self._end_reasoning(), *self._calls.take(piece, is_whole)]
        return events

    def cite(self, chunk: Mapping[str, Any]) -> None:
        """Collects pages that come beside the text, in every chunk; `end` adds each of them once."""
        for result in _items(chunk, "search_results"):
            if url := nonempty(object_fields(result), "url"):
                self._pages[url] = object_fields(result).get("title") or self._pages.get(url)
        for url in _items(chunk, "citations"):
            if isinstance(url, str):
                self._pages.setdefault(url, None)

    def end(self) -> list[Event]:
        """Ends the choice: signatures, calls, pages and sound. The message stays open."""
        events = [*self.message.start(), *self._end_reasoning()]
        if _has_more_than_text(self._details):
            events += [*self.message.reasoning("", object()), *self._end_details()]
        events += self._calls.close()
        pages = [self.message.sources.page(url, title) for url, title in self._pages.items()]
        for event in (*pages, self._audio.close()):
            events += self.message.other(event)
        if self._was_refused:
            self.message.reason = "content-filter"
        return events

    # Reasoning

    def _reason(self, delta: Mapping[str, Any]) -> list[Event]:
        """Reads ``reasoning_content`` (DeepSeek and most), ``reasoning`` (Groq, OpenRouter), or the details' text."""
        details = [dict(object_fields(detail)) for detail in _items(delta, "reasoning_details")]
        self._details += details
        text = nonempty(delta, "reasoning_content") or nonempty(delta, "reasoning")
        if text is None:
            text = "".join(nonempty(detail, "text") or nonempty(detail, "summary") or "" for detail in details)
        return self.message.reasoning(text, "reasoning") if text else []

    def _end_reasoning(self) -> list[Event]:
        """Ends open reasoning, with the details that the next request needs."""
        return self._end_details() if self.message.is_reasoning else []

    def _end_details(self) -> list[Event]:
        kept, self._details = _merged(self._details), []
        return self.message.end_block({"openrouter": {"reasoningDetails": kept}} if _has_more_than_text(kept) else None)

    # Text and files

    def _part(self, item: Any) -> list[Event]:
        if isinstance(item, str):
            return [*self._end_reasoning(), *self.message.text(item)] if item else []
        part = object_fields(item)
        if not part:
            return []
        kind = get(part, "type", str)
        if kind == "thinking":  # Mistral's
            content = part.get("thinking")
            pieces = content if isinstance(content, list) else [content]
            thought = "".join(text_in(object_fields(piece) or piece) or "" for piece in pieces)
            return self.message.reasoning(thought, "reasoning") if thought else []
        self._was_refused = self._was_refused or kind == "refusal"
        if (text := text_in(part)) is not None:
            return self._part(text)
        return self._add(part_event(part))

    def _add(self, event: Event | None) -> list[Event]:
        return [] if event is None else [*self._end_reasoning(), *self.message.other(event)]


def part_event(part: Mapping[str, Any]) -> Event:
    """Returns the event of a content part that is not text: an image, sound, a file; others are kept as they are."""
    return part_file_event(part) or custom_part_event("openai", get(part, "type", str) or "unknown", part)


def _items(fields: Mapping[str, Any], name: str) -> list[Any]:
    items = fields.get(name)
    return list(items) if isinstance(items, list | tuple) else []


def _has_more_than_text(details: list[Object]) -> bool:
    return any(detail.get(name) for detail in details for name in ("signature", "data"))


def _merged(details: list[Object]) -> list[Object]:
    """Returns OpenRouter's ``reasoning_details`` in the form of a request: the pieces of one detail joined."""
    merged: list[Object] = []
    for detail in details:
        last = merged[-1] if merged else {}
        is_same = bool(last) and all(last.get(name) == detail.get(name) for name in ("type", "index"))
        if is_same and detail.get("type") in ("reasoning.text", "reasoning.summary"):
            for name, value in detail.items():
                grows = name in ("text", "summary") and isinstance(value, str) and isinstance(last.get(name), str)
                if value is not None:
                    last[name] = last[name] + value if grows else value
        else:
            merged.append(dict(detail))
    return merged


class _Key(Struct, eq=False):
    """Identifies a call in the message. ``is_text``: the written text is the input itself, not its JSON."""

    id: str | None
    is_text: bool


class ToolPieces:
    """Reads the entries of ``tool_calls`` into a message."""

    def __init__(self, message: Assembler) -> None:
        self._message = message
        self._texts: list[_Key] = []
        self._at: dict[Any, _Key] = {}  # the latest call at each index
        self._by_id: dict[str, _Key] = {}

    def take(self, entry: Any, is_whole: bool = False) -> list[Event]:
        """Returns the events of one entry of ``tool_calls``. ``is_whole``: it is a complete call."""
        piece = object_fields(entry)
        kind = _kind(piece)
        inner = object_fields(piece.get(kind))
        call_id, name, index = nonempty(piece, "id"), nonempty(inner, "name"), get(piece, "index", int)
        written = inner.get("input" if kind == "custom" else "arguments")
        if not (call_id or name or written):
            return []
        fields = _call_fields(piece)
        key = None if is_whole else self._continued(index, call_id, name, written)
        if key is not None:
            self._message.grow_name(key, name or "")
            self._message.describe_call(key, **fields)
            return self._write(key, written)
        key = self._at[index] = self._at[None] = _Key(call_id, kind == "custom")
        self._texts += [key] if key.is_text else []
        if call_id:
            self._by_id[call_id] = key
        return [*self._message.begin_call(key, call_id, name or "", **fields), *self._write(key, written)]

    def close(self) -> list[Event]:
        """Completes the calls whose input is text. Such a text may have been cut off anywhere."""
        ends = (self._message.end_call(key, self._message.written(key), may_be_cut=True) for key in self._texts)
        return [event for events in ends for event in events]

    def _write(self, key: _Key, written: Any) -> list[Event]:
        if isinstance(written, str):
            return self._message.arguments(key, written)
        if written is None:
            return []
        return self._message.end_call(key, dict(written) if isinstance(written, Mapping) else written)

    def _continued(self, index: int | None, call_id: str | None, name: str | None, written: Any) -> _Key | None:
        """Returns the call that a piece continues; None for a new call."""
        same_id = self._by_id.get(call_id) if call_id else None
        if not name:
            latest = self._at.get(index) if index is not None or call_id is None else None
            return latest or same_id
        key = self._at.get(index) if index is not None else same_id
        if key is None or (call_id and key.id and call_id != key.id):
            return None
        if name != self._message.name_of(key) and self._message.has_arguments(key):
            return None
        is_another = isinstance(written, Mapping) or (isinstance(written, str) and written.lstrip().startswith("{"))
        return None if is_another and self._message.is_complete(key) else key


def _kind(piece: Mapping[str, Any]) -> str:
    """Returns which of ``function`` and ``custom`` has content. Some servers send both, one of them empty."""
    filled = {kind: any(object_fields(piece.get(kind)).values()) for kind in ("function", "custom")}
    if filled["custom"] and filled["function"]:
        return "custom" if get(piece, "type") == "custom" else "function"
    return "custom" if filled["custom"] or (not filled["function"] and get(piece, "type") == "custom") else "function"


def _call_fields(piece: Mapping[str, Any]) -> Object:
    """Returns the metadata that Google sends with a call: a signature that the next request needs."""
    content = object_fields(piece.get("extra_content"))
    extra = {provider: dict(value) for provider, value in content.items() if isinstance(value, Mapping)}
    return {"provider_metadata": extra} if extra else {}


def executed_tool_events(message: Assembler, entry: Any, position: int) -> list[Event]:
    """Returns the events of an entry of ``executed_tools``, which Groq runs and sends again with more fields."""
    tool = object_fields(entry)
    key = ("executed", tool.get("index") if isinstance(tool.get("index"), int) else position)
    tool_name = nonempty(tool, "type") or nonempty(tool, "name") or "tool"
    events = message.begin_call(key, None, tool_name, provider_executed=True)
    events += [*message.arguments(key, get(tool, "arguments", str) or ""), *message.end_call(key)]
    details = {name: value for name, value in tool.items() if name not in ("index", "type", "name", "arguments")}
    call_id = message.id_of(key)
    if call_id is None or details.get("output") is None:
        return events
    output = details["output"] if len(details) == 1 else details
    return events + message.output(call_id, output, provider_executed=True)
