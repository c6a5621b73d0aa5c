"""Finding calls of the signature dialect in a stream. `toolcall_nb.dialects.signature` says what a call is.

``###`` at the start of a line is held only until the next characters decide. What began as a call and breaks off is
text, and gone through again from its brace on: so that an open string hides no call after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Diagnostic, Event, Object
from toolcall_nb.dialects.fences import LINE_START, Lines
from toolcall_nb.dialects.json_object import JsonObject, Member, parse_lenient_json
from toolcall_nb.dialects.live_call import Card, Flow, WrittenCallIds
from toolcall_nb.markdown.block_context import NEWLINE
from toolcall_nb.markdown.characters import CharacterReader, TextPosition
from toolcall_nb.redaction.masked_logging import logger

__all__ = ["FAILED", "INVALID", "SIGNATURE", "Detector"]

SIGNATURE = "CLIENT_TOOL_CALL"
"""What a call says of itself, if it says anything."""

INVALID = "❌ Invalid tool call format"
"""No closing brace, or no tool's name."""

FAILED = "❌ Error processing tool call"
"""Its brace has closed, but it is no JSON."""

_WAITING = "🔧 Waiting for tool call completion..."
_IN_PROGRESS = "🔧 Tool call in progress..."

_PARAMETERS = ("parameters", "params", "arguments")
_BLANKS = r"[ \t]{0,99}(?:(?:\r\n?|\n)[ \t]{0,99})?"
_MARK = re.compile(r" {0,3}###")
_OPENING = re.compile(rf"{_MARK.pattern}:{_BLANKS}(?=\{{)")
_MAY_OPEN = re.compile(rf" {{0,3}}(?:#{{0,3}}|###:{_BLANKS})")
_LINE_START = re.compile(LINE_START)
_BRACE_OR_QUOTE = re.compile(r'["\\{}]')

_log = logger("toolcall_nb.dialects.signature")


class _Attempt:
    """What began as a call: its text, its JSON as far as it goes, and its card from when the tool is known."""

    def __init__(self, opening: str, begin: int) -> None:
        self.opening = opening
        self.json = JsonObject()
        self.card: Card | None = None
        self.input: Member | None = None
        self.begin: int | None = begin  # in the text that is being fed; None: in an earlier one

    @property
    def source(self) -> str:
        return self.opening + self.json.source

    @property
    def tool_name(self) -> str | None:
        member = self.json.members.get("toolName")
        name = member.string() if member is not None else None
        return name if name and name.strip() else None


class _Remains:
    """Text that began as a call and is none: does its brace ever close? Strings are taken as JSON's are."""

    def __init__(self, place: TextPosition) -> None:
        self.line, self.column = place.line, place.column
        self._depth = 0
        self._in_string = False
        self._after_backslash = False

    def is_closed_by(self, text: str) -> bool:
        position = 0
        if self._after_backslash and text:
            position, self._after_backslash = 1, False
        while (found := _BRACE_OR_QUOTE.search(text, position)) is not None:
            position = found.end()
            if found[0] == '"':
                self._in_string = not self._in_string
            elif found[0] == "\\":
                self._after_backslash = position == len(text)
                position += 1
            elif not self._in_string:
                self._depth += 1 if found[0] == "{" else -1
                if not self._depth:
                    return True
        return False


class Detector:
    """Text of one message in, cut anywhere; events out. See `toolcall_nb.dialects.Detector`."""

    def __init__(self) -> None:
        self._characters = CharacterReader()
        self._lines = Lines()
        self._flow = Flow()
        self._ids = WrittenCallIds()
        self._text = ""  # what is not decided yet, and after it what is being fed
        self._at = 0
        self._waiting = False
        self._attempt: _Attempt | None = None
        self._remains: _Remains | None = None

    @property
    def held(self) -> int:
        """How many characters are withheld, because they may still become a call."""
        attempt = self._attempt
        begun = len(attempt.opening) + attempt.json.length if attempt is not None and attempt.card is None else 0
        return len(self._text) + begun + self._flow.held + self._characters.held

    def feed(self, text: str) -> list[Event]:
        """Take in more text; return the events that are certain now."""
        text = self._characters.feed(text)
        is_text = self._attempt is None and self._remains is None and not self._text
        if is_text and self._lines.go_on(text, _LINE_START):
            return self._flow.text(text)
        return self._take(text, final=False)

    def close(self) -> list[Event]:
        """The text is complete; return the rest."""
        events = [*self._take(self._characters.close(), final=True), *self._never_closed(), *self._flow.close()]
        return [*events, *self._characters.troubles]

    def _take(self, text: str, final: bool) -> list[Event]:
        self._text += text
        events: list[Event] = []
        while self._at < len(self._text) or (final and self._attempt is not None):
            before = self._at, self._attempt
            if self._attempt is None:
                events += self._text_step(final)
            else:
                events += self._json_step(self._attempt, final)
            if before == (self._at, self._attempt):
                break
        self._text, self._at = self._text[self._at :], 0
        if self._attempt is not None:
            self._attempt.begin = None
        return events

    # Outside a call

    def _text_step(self, final: bool) -> list[Event]:
        """What comes before the next line that may be a call or a fence."""
        events: list[Event] = []
        if self._lines.at_start and self._lines.fence is None:
            if _MARK.match(self._text, self._at):
                events += self._wait()
            opening = _OPENING.match(self._text, self._at)
            if opening is not None:
                return events + self._begin(opening[0])
            if not final and _MAY_OPEN.fullmatch(self._text, self._at):
                return events
            events += self._stop_waiting()
        may_be_mark = self._lines.may_be_mark(self._text, self._at)
        line = (NEWLINE if may_be_mark else _LINE_START).search(self._text, self._at)
        return events + self._pass(line.end() if line else len(self._text))

    def _wait(self) -> list[Event]:
        if self._waiting:
            return []
        self._waiting = True
        return [ev.Status(_WAITING)]

    def _stop_waiting(self) -> list[Event]:
        if not self._waiting:
            return []
        self._waiting = False
        return [ev.Status("")]

    def _pass(self, end: int) -> list[Event]:
        """What stands before ``end`` is text."""
        text = self._text[self._at : end]
        self._at = end
        self._lines.extend(text)
        events = self._flow.text(text)
        remains = self._remains
        if remains is not None and remains.is_closed_by(text):
            self._remains = None
            events.append(_not_a_call(FAILED, remains.line, remains.column))
        return events

    def _never_closed(self) -> list[Event]:
        remains, self._remains = self._remains, None
        return [] if remains is None else [_not_a_call(INVALID, remains.line, remains.column)]

    # In a call

    def _begin(self, opening: str) -> list[Event]:
        _log.info("🔧 Tool call detection: Starting tool call request...")
        self._attempt = _Attempt(opening, self._at)
        self._at += len(opening)
        return [*self._never_closed(), ev.Status(_IN_PROGRESS)]

    def _json_step(self, attempt: _Attempt, final: bool) -> Iterator[Event]:
        self._at = attempt.json.feed(self._text, self._at)
        yield from self._grow(attempt)
        if attempt.json.is_whole:
            self._attempt = None
            yield from self._whole(attempt)
        elif attempt.json.is_broken or final:
            self._attempt = None
            yield from self._broken(attempt)

    def _grow(self, attempt: _Attempt) -> Iterator[Event]:
        if attempt.card is None and (name := attempt.tool_name) is not None:
            attempt.card = Card(name, self._ids.take())
            yield from attempt.card.start(self._flow)
        if attempt.card is not None:
            attempt.input = attempt.input or _first(attempt.json.members)
            if attempt.input is not None:
                yield from attempt.card.grow(attempt.input)

    def _whole(self, attempt: _Attempt) -> Iterator[Event]:
        """The brace has closed: a call, or one that cannot be read."""
        source = attempt.source
        _log.info("🔧 Tool call completed, processing: %s", source)
        place = self._lines.place
        try:
            read = parse_lenient_json(attempt.json.source)
        except (ValueError, RecursionError):
            read = None
        if attempt.card is not None and isinstance(read, dict):
            _log.info("🔧 Extracted tool JSON: %s", attempt.json.source)
            yield from self._called(attempt, attempt.card, read)
            yield from self._stop_waiting()
            self._lines.skip(source)
            return
        line, column = place.line, place.column
        yield from self._take_back(attempt)
        yield from self._flow.text(source)
        self._lines.extend(source)
        yield _not_a_call(FAILED if read is None else INVALID, line, column)

    def _called(self, attempt: _Attempt, card: Card, read: Object) -> Iterator[Event]:
        _log.info("🔧 Parsed tool call: %s", read)
        if read.get("signature", SIGNATURE) != SIGNATURE:
            message = f"the signature {read['signature']!r:.80} of a tool call is not {SIGNATURE}"
            yield Diagnostic(message, "It was called all the same.", self._lines.place.line, self._lines.place.column)
        yield from card.rename(read, self._ids)
        key = attempt.input.key if attempt.input is not None else None
        given = {} if key is None or read[key] is None else read[key]
        if isinstance(given, dict):
            yield ev.ToolInputAvailable(card.id, card.name, given)
        else:
            error = f"The {key} of a tool call are a JSON object, but here they are {_kind(given)}."
            yield ev.ToolInputError(card.id, card.name, given, error)
        self._flow.end_call()

    def _broken(self, attempt: _Attempt) -> Iterator[Event]:
        """It is no JSON, or ended before its brace closed: text, which is looked through again from there on."""
        yield from self._take_back(attempt)
        self._remains = _Remains(self._lines.place)
        if attempt.begin is None:
            self._text, self._at = attempt.source + self._text[self._at :], 0
        else:
            self._at = attempt.begin
        yield from self._pass(self._at + len(attempt.opening) + 1)

    def _take_back(self, attempt: _Attempt) -> Iterator[Event]:
        yield from self._stop_waiting()
        if attempt.card is not None:
            yield from attempt.card.retract(self._ids)


def _first(members: dict[str, Member]) -> Member | None:
    """The member that holds the parameters: of several, the first."""
    found = [members[key] for key in _PARAMETERS if key in members]
    return min(found, key=lambda member: member.index, default=None)


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return kinds[type(value)]


def _not_a_call(message: str, line: int, column: int) -> Diagnostic:
    return Diagnostic(message, "It was kept as text.", line, column)
