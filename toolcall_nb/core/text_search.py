"""Finds text in messages and calls, and chooses calls by it, by their name, state or duration.

`TextPattern` is the text to find, `message_texts` yields the texts to search, and `CallFilter` chooses calls. Every
search of the package goes through these texts, so that all searches find the same. They are the texts that a card
shows and the JSON of its values. The bytes of files and pictures are not among them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from toolcall_nb.core.call_states import STATE_WORDS, State
from toolcall_nb.core.contents import piece_text
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
        match = self._expression.search(text)
        return None if match is None else match.span()


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
            yield from _nonempty(FieldText("error", part.text), FieldText("error", part.details or ""))
        case SourceUrlPart():
            yield from _nonempty(FieldText("source", part.title or ""), FieldText("source", part.url))
        case SourceDocumentPart():
            yield from _nonempty(FieldText("source", part.title), FieldText("source", part.filename or ""))
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
    yield from _nonempty(FieldText("name", call.name), FieldText("title", call.title or ""))
    yield from _value_texts("arguments", call.input)
    yield from _nonempty(FieldText("arguments", call.input_text), FieldText("error", call.error or ""))
    yield from _value_texts("result", call.output)
    yield from _nonempty(FieldText("result", call.model_text or ""))
    for piece in call.contents or ():
        yield from _nonempty(FieldText("result", "" if piece.get("type") == "file" else piece_text(piece)))
    for media_type, content in (call.display or {}).items():
        if media_type.startswith("text/") and isinstance(content, str):
            yield FieldText("result", content)
    yield from _nonempty(FieldText("log", call.log), FieldText("traceback", call.traceback or ""))
    if call.approval is not None:
        yield from _nonempty(FieldText("approval", call.approval.reason or ""))


def _nonempty(*texts: FieldText) -> Iterator[FieldText]:
    return (text for text in texts if text.text)


def _value_texts(field: str, value: Json | Missing) -> Iterator[FieldText]:
    """Yields a string as it is, any other value as JSON and as its strings, one a line."""
    if value is MISSING or value is None:
        return
    if isinstance(value, str):
        yield FieldText(field, value)
        return
    try:
        text = msgspec.json.encode(value).decode()
    except (UnicodeError, OverflowError, TypeError, ValueError):  # an integer that is too large
        text = json_text(value)
    yield FieldText(field, text)
    if isinstance(value, dict | list):
        yield FieldText(field, "\n".join(_strings(value)))


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


_CALLED = frozenset({State.INPUT_STREAMING, State.INPUT_AVAILABLE})
_STATES: dict[str, frozenset[State]] = {
    **{state.value: frozenset({state}) for state in State},
    **{word.lower(): frozenset({state}) for state, word in STATE_WORDS.items()},
    "called": _CALLED,
}
"""The states by their names, and by the words that a card shows."""


class CallFilter(Struct, frozen=True):
    """The conditions that a call has to meet, all of them; None is no condition. `call_filter` makes one."""

    names: frozenset[str] | None = None
    states: frozenset[State] | None = None
    text: TextPattern | None = None
    min_seconds: float | None = None

    def __call__(self, call: ToolCall) -> bool:
        """Whether the call meets them. A call whose duration is not known is never long enough."""
        if self.names is not None and call.name not in self.names:
            return False
        if self.states is not None and call.state not in self.states:
            return False
        if self.min_seconds is not None and (call.seconds is None or call.seconds < self.min_seconds):
            return False
        pattern = self.text
        return pattern is None or any(pattern.find(each.text) is not None for each in call_texts(call))


def call_filter(
    *,
    name: str | Collection[str] | None = None,
    state: str | Collection[str] | None = None,
    text: str | None = None,
    min_seconds: float | None = None,
) -> CallFilter:
    """Returns a filter. ``name`` and ``state`` may be several. Raises `UsageError` for a state that does not exist."""
    return CallFilter(
        None if name is None else frozenset([name] if isinstance(name, str) else name),
        None if state is None else frozenset().union(*map(_states, [state] if isinstance(state, str) else state)),
        None if text is None else TextPattern(text),
        min_seconds,
    )


def _states(name: str) -> frozenset[State]:
    states = _STATES.get(name.lower()) if isinstance(name, str) else None
    if states is None:
        words = ", ".join(word.lower() for word in STATE_WORDS.values())
        raise UsageError(f"There is no state {name!r}. The states are {words}, called; or {', '.join(State)}.")
    return states
