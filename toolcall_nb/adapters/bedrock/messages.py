"""Lists of messages as Amazon Bedrock's Converse takes them: ``messages=[{"role": ..., "content": [{"text": ...}]}]``.

Source: the API reference of the Bedrock Runtime (``Message``, ``ContentBlock``). A list that holds nothing but text
has nothing that only Bedrock has, and is not claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from toolcall_nb.adapters.base import Format, never
from toolcall_nb.adapters.bedrock.converse import BedrockAdapter, file_of
from toolcall_nb.adapters.parts import custom
from toolcall_nb.adapters.plain import get, mapping
from toolcall_nb.adapters.turns import Turns, first_of
from toolcall_nb.core.events import Event

__all__ = ["FORMAT"]

_BLOCKS = ("toolUse", "toolResult", "reasoningContent", "citationsContent", "cachePoint", "guardContent")


def _events(messages: Iterable[Any]) -> list[Event]:
    turns = Turns(_Turn)
    for given in messages:
        message = mapping(given)
        if message.get("role") == "assistant":
            turns.assistant(message)
        else:
            turns.other(str(message.get("role")), list(_user_parts(turns, message)))
    turns.end()
    return turns.events


class _Turn(BedrockAdapter):
    """A turn of the assistant in a list of messages: its items are messages."""

    def take(self, item: Any) -> list[Event]:
        return self.blocks(mapping(item))


def _user_parts(turns: Turns[_Turn], message: Mapping[str, Any]) -> Iterator[str | Event]:
    for given in get(message, "content", list) or []:
        block = mapping(given)
        result = get(block, "toolResult", Mapping)
        if result is not None and turns.answer(partial(_answer, result)):
            continue
        text = get(block, "text", str)
        if text is not None:
            yield text
        elif block:
            yield file_of(block) or custom("bedrock", next(iter(block)), block)


def _answer(result: Mapping[str, Any], turn: _Turn) -> list[Event]:
    return turn.result(result)


def _is_list(thing: Any) -> bool:
    blocks = [block for message in first_of(thing) for block in first_of(get(message, "content"))]
    return any("type" not in mapping(block) and any(get(block, key, Mapping) for key in _BLOCKS) for block in blocks)


FORMAT = Format(
    name="bedrock-messages",
    title="a list of Bedrock's messages",
    is_item=never,
    adapter=BedrockAdapter,
    is_whole=_is_list,
    whole=_events,
)
