"""Streams and whole things of any known format, told apart by their shape."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from toolcall_nb.adapters import stage_logs, texts, wires
from toolcall_nb.adapters.ai_sdk import chunks as ui_chunks
from toolcall_nb.adapters.ai_sdk import messages as ui_messages
from toolcall_nb.adapters.anthropic import messages as anthropic_messages
from toolcall_nb.adapters.anthropic import stream as anthropic
from toolcall_nb.adapters.base import Adapter, Format
from toolcall_nb.adapters.bedrock import converse as bedrock
from toolcall_nb.adapters.bedrock import messages as bedrock_messages
from toolcall_nb.adapters.cohere import chat as cohere
from toolcall_nb.adapters.google import contents as google_contents
from toolcall_nb.adapters.google import generate_content as google
from toolcall_nb.adapters.google import interactions as google_interactions
from toolcall_nb.adapters.langchain import langgraph
from toolcall_nb.adapters.langchain import stream as langchain
from toolcall_nb.adapters.mistral import conversations as mistral
from toolcall_nb.adapters.ollama import chat as ollama
from toolcall_nb.adapters.openai import chat as openai_chat
from toolcall_nb.adapters.openai import conversation as openai_conversation
from toolcall_nb.adapters.openai import responses as openai_responses
from toolcall_nb.adapters.parts import is_sign_of_life
from toolcall_nb.adapters.plain import type_name
from toolcall_nb.adapters.pydantic_ai import stream as pydantic_ai
from toolcall_nb.core.events import Event
from toolcall_nb.errors import UsageError

__all__ = ["FORMATS", "AnyAdapter", "events_of", "format_of_item", "format_of_whole", "read", "read_async"]

FORMATS: tuple[Format, ...] = (
    pydantic_ai.FORMAT,
    anthropic.FORMAT,
    anthropic_messages.FORMAT,
    google.FORMAT,
    google_contents.FORMAT,
    google_interactions.FORMAT,
    bedrock.FORMAT,
    bedrock_messages.FORMAT,
    cohere.FORMAT,
    mistral.FORMAT,
    ollama.FORMAT,
    openai_responses.FORMAT,
    openai_chat.FORMAT,
    openai_conversation.FORMAT,
    langchain.FORMAT,
    langgraph.FORMAT,
    ui_messages.FORMAT,
    ui_chunks.FORMAT,
    wires.AG_UI,
    wires.CHAT,
    wires.ENVELOPES,
    stage_logs.FORMAT,
    texts.FORMAT,
)
"""All formats; the first that knows a thing reads it."""


def format_of_item(item: Any) -> Format | None:
    """The format whose streams have such items."""
    return next((known for known in FORMATS if _is(known.is_item, item)), None)


def format_of_whole(thing: Any) -> Format | None:
    """The format of a whole reply, or of a list of messages."""
    return next((known for known in FORMATS if _is(known.is_whole, thing)), None)


def _is(test: Callable[[Any], bool], thing: Any) -> bool:
    """What raises when it is looked at is nothing that is known."""
    try:
        return test(thing)
    except Exception:
        return False


def events_of(thing: Any) -> Iterable[Event]:
    """The events of a whole reply, or of a list of messages. Raises `UsageError` for what is none."""
    found = format_of_whole(thing)
    if found is None:
        raise _unknown(thing)
    return found.whole(thing)


class AnyAdapter:
    """Reads a stream of any known format; its first item says which. Raises `UsageError` where none knows it."""

    def __init__(self) -> None:
        self._adapter: Adapter | None = None

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        if self._adapter is None and is_sign_of_life(item):
            return []
        if self._adapter is None:
            found = format_of_item(item)
            if found is None:
                raise _unknown(item)
            self._adapter = found.adapter()
        return self._adapter.take(item)

    def close(self) -> list[Event]:
        """The stream is over; one that had no items gives nothing."""
        return self._adapter.close() if self._adapter is not None else []


def read(items: Iterable[Any]) -> Iterator[Event]:
    """The events of a stream. What the stream raises is raised, after the ends of what is open."""
    adapter = AnyAdapter()
    try:
        for item in items:
            yield from adapter.take(item)
    except Exception:
        yield from adapter.close()
        raise
    yield from adapter.close()


async def read_async(items: AsyncIterable[Any]) -> AsyncIterator[Event]:
    """As `read`, of an asynchronous stream."""
    adapter = AnyAdapter()
    try:
        async for item in items:
            for event in adapter.take(item):
                yield event
    except Exception:
        for event in adapter.close():
            yield event
        raise
    for event in adapter.close():
        yield event


def _unknown(thing: Any) -> UsageError:
    titles = "; ".join(known.title for known in FORMATS)
    return UsageError(f"Something of the type {type_name(thing)} is nothing that can be read here. What can: {titles}.")
