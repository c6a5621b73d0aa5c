"""Reads Google's generateContent: streams of responses, whole ones, and lists of ``Content`` as requests take them.

Source: googleapis/python-genai 2.34, ``types.GenerateContentResponse`` and ``types.Content``. Names are in camelCase
on the wire and in snake_case in the SDK's ``model_dump``; both are read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.common_events import unknown_item, usage_of
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.adapters.google.parts import USED_OF_CANDIDATE, Candidate, at, google_file_event
from toolcall_nb.adapters.message_lists import BlockMessages, read_message_list
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_mapping, first_items, get, object_fields, type_name

_USAGE = {
    "inputTokens": ("promptTokenCount", "toolUsePromptTokenCount"),
    "outputTokens": ("candidatesTokenCount", "thoughtsTokenCount"),
    "totalTokens": "totalTokenCount",
    "cachedInputTokens": "cachedContentTokenCount",
    "reasoningTokens": "thoughtsTokenCount",
}
_COUNTS = (
    *("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"),
    *("totalTokenCount", "cachedContentTokenCount"),
)
_USED = in_use(
    "responseId modelVersion error parsed",
    candidates=USED_OF_CANDIDATE,
    promptFeedback=in_use("blockReason blockReasonMessage"),
    usageMetadata=in_use(" ".join(_COUNTS), snapshot=True),
)
_ROLES = ("user", "model", "function", "tool", "system")


class GoogleAdapter:
    """Reads the responses of one stream. Calls without ids are numbered by ``ids``: ``call_1``, ``call_2`` …

    The first candidate is the message. The others follow at its end, each a message with the metadata
    ``{"choice": N}``. A response with another id is a further step.
    """

    def __init__(self, ids: Iterator[int] | None = None) -> None:
        self._ids = ids or itertools.count(1)
        self._first = Candidate(self._ids)
        self.message = self._first.message
        self._others: dict[int, tuple[Candidate, list[Event]]] = {}
        self._response_id = ""
        self._model: str | None = None
        self._counts: Object = {}

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        chunk = object_fields(item)
        if not _is_response(chunk):
            return unknown_item(GENERATE_CONTENT.title, chunk or item)
        events = self._begin_response(chunk)
        for position, entry in enumerate(at(chunk, "candidates", list) or []):
            candidate = as_mapping(entry)
            index = at(candidate, "index", int)
            index = position if index is None else index
            if index == 0:
                events += self._first.take(candidate)
            else:
                other, waiting = self._others.setdefault(index, (Candidate(self._ids), []))
                waiting += other.take(candidate)
        feedback = as_mapping(at(chunk, "promptFeedback"))
        if reason := at(feedback, "blockReason", str):
            self.message.reason = "content-filter"
            text = f"Google blocked the prompt ({at(feedback, 'blockReasonMessage', str) or reason})."
            error = ev.Error(f"{text} Change the prompt, and ask again.", details=f"google: {reason}")
            events += self.message.other(error)
        self.message.keep_unread("google", _USED.unread(chunk))
        return events + (self.message.fail("Google", chunk["error"]) if "error" in chunk else [])

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open, and then the other candidates."""
        events = self._first.message.close()
        for index, (other, waiting) in sorted(self._others.items()):
            other.message.describe(self._model)
            other.message.metadata["choice"] = index
            events += [*waiting, *other.message.close()]
            waiting.clear()
        return events

    def next_step(self) -> list[Event]:
        """Ends a reply and begins the next one of the same message."""
        self._counts = {}
        return [*self._first.end_calls(), *self.message.next_step()]

    def respond(self, response: Mapping[str, Any]) -> list[Event]:
        """Returns the events of a function's response; nothing if no call waits for it."""
        return self._first.respond(response)

    def _begin_response(self, chunk: Mapping[str, Any]) -> list[Event]:
        """Reads the response's id, its model and its token counts so far."""
        response_id = at(chunk, "responseId", str) or ""
        events = self.next_step() if response_id and self._response_id not in ("", response_id) else []
        self._response_id = response_id or self._response_id
        reported = as_mapping(at(chunk, "usageMetadata"))
        self._counts |= {name: count for name in _COUNTS if (count := at(reported, name)) is not None}
        self._model = at(chunk, "modelVersion", str) or self._model
        self.message.describe(self._model, usage_of(self._counts, _USAGE), response_id)
        return [*events, *self.message.start(response_id or None)]


def _is_response(thing: Any) -> bool:
    chunk = as_mapping(thing)
    if isinstance(at(chunk, "candidates"), list):
        return "candidates" in chunk
    error = as_mapping(chunk.get("error"))
    is_error = isinstance(error.get("status"), str) and isinstance(error.get("code"), int)
    is_tail = at(chunk, "usageMetadata", Mapping) is not None and at(chunk, "modelVersion", str) is not None
    return is_error or is_tail or at(chunk, "promptFeedback", Mapping) is not None


def _is_item(item: Any) -> bool:
    return _is_response(item) or type_name(item) == "google.genai.types.GenerateContentResponse"


def _is_whole(thing: Any) -> bool:
    first = first_items(thing, 1)
    return _is_item(first[0]) if first else _is_item(thing)


GENERATE_CONTENT = Format(
    name="google",
    title="a response of Google's generateContent or its stream",
    adapter=GoogleAdapter,
    is_item=_is_item,
    is_whole=_is_whole,
)


# Lists of contents


def _read_contents(contents: Iterable[Any]) -> list[Event]:
    reader = BlockMessages(
        "google",
        turn=partial(GoogleAdapter, itertools.count(1)),
        assistant="model",
        item=lambda content: {"candidates": [{"content": content}]},
        blocks=lambda content: get(content, "parts", list) or [],
        is_result=lambda part: at(part, "functionResponse") is not None,
        result=_respond,
        file=google_file_event,
        are_replies=False,  # a chat of the SDK keeps each chunk of a stream as a content of its own
    )
    return read_message_list(contents, reader)


def _respond(turn: GoogleAdapter, part: Mapping[str, Any]) -> list[Event]:
    response = at(part, "functionResponse", Mapping)
    return turn.respond(response) if response is not None else []


def _is_content(thing: Any) -> bool:
    if not isinstance(thing, Mapping):
        return type_name(thing).startswith("google.genai.types.") and type_name(thing).endswith("Content")
    parts = first_items(thing.get("parts"), 4)
    are_parts = bool(parts) and all(isinstance(part, Mapping) and "type" not in part for part in parts)
    return thing.get("role", "user") in _ROLES and are_parts and not {"kind", "id"} & set(thing)


GOOGLE_CONTENTS = Format(
    name="google-contents",
    title="a list of Google's contents",
    adapter=GoogleAdapter,
    is_whole=lambda thing: any(_is_content(content) for content in first_items(thing, 8)),
    whole=_read_contents,
)
