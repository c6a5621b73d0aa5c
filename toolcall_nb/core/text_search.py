"""Finds text in messages and calls: `TextPattern` is what is looked for, `message_texts` where it is looked for.

Every search of the package goes through these texts, so that what one finds, all find. They are the texts that a card
shows and the JSON of its values. The bytes of files and pictures are not among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from toolcall_nb.core.events import MISSING, Json, Missing
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.transcript import (
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCall,
)
from toolcall_nb.errors import UsageError

_LONGEST_ADDRESS = 2_000


class FieldText(NamedTuple):
    """One text of a message, with the name of the field that it is in, for example ``arguments``."""

    field: str
    text: str


class TextPattern:
    """A text that is found in upper and lower case, or a compiled regular expression.

    Raises `UsageError` for an empty text, which would be found everywhere.
    """

    def __init__(self, pattern: str | re.Pattern[str]) -> None:
        if not isinstance(pattern, str | re.Pattern):
            raise UsageError(f"A search needs a text or a compiled regular expression, not {pattern!r:.100}.")
        if not (pattern if isinstance(pattern, str) else pattern.pattern):
            raise UsageError("A search needs a text that is not empty.")
        self._lower = pattern.lower() if isinstance(pattern, str) else None
        self._expression = re.compile(re.escape(pattern), re.IGNORECASE) if isinstance(pattern, str) else pattern

    def find(self, text: str) -> tuple[int, int] | None:
        """Returns the start and the end of the first place where the text has the pattern; None if there is none."""
        if self._lower is not None and self._lower not in text.lower():  # ten times as fast as the expression
            return None
        found = self._expression.search(text)
        return None if found is None else found.span()


def message_texts(message: Message) -> Iterator[tuple[Part, FieldText]]:
    """Yields the texts of a message, each with the part that it is in."""
    for part in message.parts:
        for text in part_texts(part):
            yield part, text


def part_texts(part: Part) -> Iterator[FieldText]:
    """Yields the texts of one part."""
    match part:
        case TextPart():
            yield FieldText("text", part.text)
        case ReasoningPart():
            yield FieldText("reasoning", part.text)
        case ToolCall():
            yield from call_texts(part)
        case ErrorPart():
            yield from _known(FieldText("error", part.text), FieldText("error", part.details or ""))
        case SourceUrlPart():
            yield from _known(FieldText("source", part.title or ""), FieldText("source", part.url))
        case SourceDocumentPart():
            yield from _known(FieldText("source", part.title), FieldText("source", part.filename or ""))
        case FilePart():
            address = part.media_type if part.url.startswith("data:") else part.url[:_LONGEST_ADDRESS]
            yield FieldText("file", address)
        case DataPart():
            yield FieldText("data", part.name)
            yield from _value_texts("data", part.data)
        case CustomPart():
            yield FieldText("custom", part.kind)


def call_texts(call: ToolCall) -> Iterator[FieldText]:
    """Yields the texts of a call: its name, arguments, result, error, and what its tool printed."""
    yield from _known(FieldText("name", call.name), FieldText("title", call.title or ""))
    yield from _value_texts("arguments", call.input)
    yield from _known(FieldText("arguments", call.input_text), FieldText("error", call.error or ""))
    yield from _value_texts("result", call.output)
    yield from _known(FieldText("result", call.model_text or ""))
    for media_type, shown in (call.display or {}).items():
        if media_type.startswith("text/") and isinstance(shown, str):
            yield FieldText("result", shown)
    yield from _known(FieldText("log", call.log), FieldText("traceback", call.traceback or ""))
    if call.approval is not None:
        yield from _known(FieldText("approval", call.approval.reason or ""))


def _known(*texts: FieldText) -> Iterator[FieldText]:
    return (text for text in texts if text.text)


def _value_texts(field: str, value: Json | Missing) -> Iterator[FieldText]:
    """Yields a string as it is, any other value as JSON and as its strings, one a line."""
    if value is MISSING or value is None:
        return
    if isinstance(value, str):
        yield FieldText(field, value)
        return
    yield FieldText(field, _compact_json(value))
    if isinstance(value, dict | list):
        yield FieldText(field, "\n".join(_strings(value)))


def _compact_json(value: Json) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, OverflowError, TypeError, ValueError):  # an integer that is too large
        return json_text(value)


def _strings(value: Any) -> Iterator[str]:
    """Yields the strings of a value. Values of a transcript are at most 64 levels deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
