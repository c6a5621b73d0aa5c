"""Google's generateContent: streams of responses, whole ones, lists of either, as its JSON or its SDK has them.

Source: googleapis/python-genai 2.34, ``types.GenerateContentResponse``; on the wire names are in camelCase, and
``model_dump`` of the SDK writes them in snake_case: both are read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolcall_nb.adapters.assembling import usage_of
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.google.parts import PROVIDER, Candidate, at
from toolcall_nb.adapters.parts import error_event, strange_item
from toolcall_nb.adapters.plain import mapping, plain, type_name
from toolcall_nb.adapters.turns import first_of
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object

__all__ = ["FORMAT", "GoogleAdapter"]

_USAGE = {
    "promptTokenCount": "inputTokens",
    "toolUsePromptTokenCount": "inputTokens",
    "candidatesTokenCount": "outputTokens",
    "thoughtsTokenCount": "outputTokens",
    "totalTokenCount": "totalTokens",
    "cachedContentTokenCount": "cachedInputTokens",
}
_REASONING = {"thoughtsTokenCount": "reasoningTokens"}


class GoogleAdapter:
    """Reads the responses of one stream. Calls without ids get ids of their own, ``call_1`` and so on, from ``ids``.

    The first candidate is the message; the others follow it at the end, each a message with ``{"choice": N}``. A
    response of another id is a further step.
    """

    def __init__(self, ids: Iterator[int] | None = None) -> None:
        self._ids = ids or itertools.count(1)
        self._first = Candidate(self._ids)
        self.message = self._first.message
        self._others: dict[int, Candidate] = {}
        self._held: dict[int, list[Event]] = {}
        self._responses: dict[str, Object] = {}

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        chunk = mapping(plain(item))
        if not _is_response(chunk):
            return strange_item(FORMAT.title, chunk or item)
        found = self._head(chunk)
        for position, given in enumerate(at(chunk, "candidates", list) or []):
            candidate = mapping(given)
            index = at(candidate, "index", int)
            found += self._take_candidate(position if index is None else index, candidate)
        feedback = mapping(at(chunk, "promptFeedback"))
        if reason := at(feedback, "blockReason", str):
            found += self._blocked(reason, feedback)
        if "error" in chunk:
            self.message.reason = "error"
            found += self.message.other(error_event("Google", chunk["error"]))
        return found

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open, then the other candidates."""
        if usage := self._usage():
            self.message.metadata["usage"] = usage
        found = self._first.close()
        for index, other in sorted(self._others.items()):
            model = {"model": self.message.metadata["model"]} if "model" in self.message.metadata else {}
            other.message.metadata.update({**model, "choice": index})
            found += [*self._held.pop(index, []), *other.close()]
        return found

    def respond(self, response: Mapping[str, Any]) -> list[Event]:
        """What a function gave; of no call that waits, nothing."""
        return self._first.respond(response)

    def _head(self, chunk: Mapping[str, Any]) -> list[Event]:
        """Of the response as a whole: its id, its model, what it cost so far."""
        response_id = at(chunk, "responseId", str) or ""
        is_next = bool(response_id and self._responses) and response_id not in self._responses
        found = [*self._first.end_calls(), *self.message.end_block()] if is_next else []
        usage = self._responses.setdefault(response_id or next(reversed(self._responses), ""), {})
        reported = mapping(at(chunk, "usageMetadata"))
        usage.update({name: count for name in {**_USAGE} if (count := at(reported, name)) is not None})
        if model := at(chunk, "modelVersion", str):
            self.message.metadata["model"] = model
        steps: list[Event] = [ev.FinishStep(), ev.StartStep()] if is_next else []
        return [*found, *steps, *self.message.start(response_id or None)]

    def _usage(self) -> Object:
        total: Object = {}
        for reported in self._responses.values():
            for name, count in {**usage_of(reported, _USAGE), **usage_of(reported, _REASONING)}.items():
                total[name] = total.get(name, 0) + count
        return total

    def _take_candidate(self, index: int, given: Mapping[str, Any]) -> list[Event]:
        if index == 0:
            return self._first.take(given)
        other = self._others.setdefault(index, Candidate(self._ids))
        self._held.setdefault(index, []).extend(other.take(given))
        return []

    def _blocked(self, reason: str, feedback: Mapping[str, Any]) -> list[Event]:
        self.message.reason = "content-filter"
        message = at(feedback, "blockReasonMessage", str)
        text = f"Google blocked the prompt ({message or reason}). Change the prompt, and ask again."
        return self.message.other(ev.Error(text, details=f"{PROVIDER}: {reason}"))


def _is_response(thing: Any) -> bool:
    chunk = mapping(thing)
    if isinstance(at(chunk, "candidates"), list):
        return "candidates" in chunk
    error = mapping(chunk.get("error"))
    is_error = isinstance(error.get("status"), str) and isinstance(error.get("code"), int)
    is_tail = at(chunk, "usageMetadata", Mapping) is not None and at(chunk, "modelVersion", str) is not None
    return is_error or is_tail or at(chunk, "promptFeedback", Mapping) is not None


def _is_item(item: Any) -> bool:
    return _is_response(item) or type_name(item) == "google.genai.types.GenerateContentResponse"


def _is_whole(thing: Any) -> bool:
    first = first_of(thing, 1)
    return _is_item(first[0]) if first else _is_item(thing)


def _whole(thing: Any) -> Iterable[Event]:
    adapter = GoogleAdapter()
    items = thing if isinstance(thing, list | tuple) else [thing]
    return [*(event for item in items for event in adapter.take(item)), *adapter.close()]


FORMAT = Format(
    name="google",
    title="a response of Google's generateContent or its stream",
    is_item=_is_item,
    adapter=GoogleAdapter,
    is_whole=_is_whole,
    whole=_whole,
)
