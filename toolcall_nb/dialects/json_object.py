"""A JSON object in a stream, `JsonObject`: reads it as it comes and finds its end, or where it breaks.

The grammar is RFC 8259's with two exceptions: a string may contain line ends and other control characters, because
models write them so, and nesting is limited. Each character is scanned once, however the text is cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn

from toolcall_nb.core.text import well_formed

MAX_JSON_DEPTH = 200
"""The deepest nesting of objects and arrays: jiter's limit, and well below Python's."""

_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]*')
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_ESCAPES = frozenset('"\\/bfnrt')
_CLOSES = {"}": "{", "]": "["}
_DIGITS = "0123456789"

_Expected = Literal["object", "first key", "key", "colon", "value", "first value", "after"]


def _scalars() -> Mapping[str, Mapping[str, str]]:
    """Returns, for each state of a number or a literal, the next state by character. The first state is ""."""
    after_int = {".": ".", "e": "e", "E": "e"}
    table: dict[str, dict[str, str]] = {
        "": {"-": "-", "0": "0", **dict.fromkeys("123456789", "int")},
        "-": {"0": "0", **dict.fromkeys("123456789", "int")},
        "0": after_int,
        "int": {**dict.fromkeys(_DIGITS, "int"), **after_int},
        ".": dict.fromkeys(_DIGITS, "fraction"),
        "fraction": {**dict.fromkeys(_DIGITS, "fraction"), "e": "e", "E": "e"},
        "e": {"+": "sign", "-": "sign", **dict.fromkeys(_DIGITS, "exponent")},
        "sign": dict.fromkeys(_DIGITS, "exponent"),
        "exponent": dict.fromkeys(_DIGITS, "exponent"),
    }
    for word in ("true", "false", "null"):
        for index, character in enumerate(word):
            table.setdefault(word[:index], {})[character] = word[: index + 1]
        table[word] = {}
    return table


_SCALARS = _scalars()
_COMPLETE = frozenset({"0", "int", "fraction", "exponent", "true", "false", "null"})


class Member:
    """A key of the object and the text of its value so far; ``index`` counts the members from 0."""

    __slots__ = ("chunks", "index", "is_whole", "key")

    def __init__(self, key: str, index: int) -> None:
        self.key = key
        self.index = index
        self.chunks: list[str] = []
        self.is_whole = False

    @property
    def begins(self) -> str:
        """The first character of the value, or an empty string before it has come."""
        return self.chunks[0][:1] if self.chunks else ""

    def string(self) -> str | None:
        """Returns the value if it is a string and complete."""
        return _string("".join(self.chunks)) if self.is_whole and self.begins == '"' else None


class JsonObject:
    """A JSON object, fed from its opening brace on in pieces that are cut anywhere.

    ``members`` holds the object's own keys; of equal keys, the first. ``length`` counts the characters read. Once the
    object ``is_whole`` or ``is_broken``, it reads no more.
    """

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.length = 0
        self.is_whole = False
        self.is_broken = False
        self._chunks: list[str] = []
        self._stack: list[tuple[str, int]] = []  # open objects and arrays: bracket and position
        self._expected: _Expected = "object"
        self._step: Callable[[str, int], int] = self._between
        self._scalar_state = ""
        self._digits_missing = 0
        self._start = 0  # position in the text that is being fed
        self._key: list[str] | None = None  # the source of a key
        self._member: Member | None = None
        self._kept: list[str] | None = None  # the list that gets the text since `_mark`
        self._mark = 0

    @property
    def source(self) -> str:
        """All the text that was read."""
        return "".join(self._chunks)

    @property
    def open_braces(self) -> list[int]:
        """The positions of the objects that are open now, counted from the beginning of this one."""
        return [position for bracket, position in self._stack if bracket == "{"]

    def feed(self, text: str, start: int = 0) -> int:
        """Reads ``text`` from ``start`` up to the end of the object, and returns the position where it stopped."""
        position = self._start = self._mark = start
        while position < len(text) and not (self.is_whole or self.is_broken):
            position = self._step(text, position)
        self._keep(text, position)
        self._chunks.append(text[start:position])
        self.length += position - start
        return position

    # Each step returns where the next one begins. A character that breaks the object is not read.

    def _between(self, text: str, position: int) -> int:
        blanks = _BLANKS.match(text, position)
        assert blanks is not None
        position = blanks.end()
        if position == len(text):
            return position
        character = text[position]
        match self._expected, character:
            case (("first key" | "key"), '"'):
                if len(self._stack) == 1:
                    self._key = self._kept = []
                    self._mark = position
                self._expected, self._step = "colon", self._string
            case "colon", ":":
                self._expected = "value"
            case (("value" | "first value" | "object"), ("{" | "[" | '"')):
                self._begin_value(character, position)
            case (("value" | "first value"), _) if character in _SCALARS[""]:
                self._keep_member(position)
                self._scalar_state, self._step = "", self._scalar
                return position
            case "after", ",":
                self._expected = "key" if self._stack[-1][0] == "{" else "value"
            case ("first key", "}") | ("first value", "]") | ("after", "}" | "]"):
                self._close(text, character, position)
            case _:
                self.is_broken = True
        return position if self.is_broken else position + 1

    def _begin_value(self, character: str, position: int) -> None:
        if (self._expected == "object" and character != "{") or len(self._stack) == MAX_JSON_DEPTH:
            self.is_broken = True
            return
        self._keep_member(position)
        if character == '"':
            self._expected, self._step = "after", self._string
            return
        self._stack.append((character, self.length + position - self._start))
        self._expected = "first key" if character == "{" else "first value"

    def _keep_member(self, position: int) -> None:
        if len(self._stack) == 1 and self._member is not None:
            self._kept, self._mark = self._member.chunks, position

    def _close(self, text: str, character: str, position: int) -> None:
        if self._stack[-1][0] != _CLOSES[character]:
            self.is_broken = True
            return
        self._stack.pop()
        self._value_ended(text, position + 1)

    def _value_ended(self, text: str, position: int) -> None:
        self._expected, self._step = "after", self._between
        self.is_whole = not self._stack
        if len(self._stack) == 1 and self._member is not None:
            self._keep(text, position)
            self._member.is_whole = True
            self._kept = self._member = None

    def _string(self, text: str, position: int) -> int:
        plain = _PLAIN.match(text, position)
        assert plain is not None
        position = plain.end()
        if position == len(text):
            return position
        if text[position] == "\\":
            self._step = self._escape
        elif self._expected == "colon":
            self._key_ended(text, position + 1)
        else:
            self._value_ended(text, position + 1)
        return position + 1

    def _key_ended(self, text: str, position: int) -> None:
        self._step = self._between
        if self._key is None:
            return
        self._keep(text, position)
        key = _string("".join(self._key))
        self._key = self._kept = None
        self._member = Member(key, len(self.members))
        self.members.setdefault(key, self._member)

    def _escape(self, text: str, position: int) -> int:
        if text[position] == "u":
            self._digits_missing, self._step = 4, self._unicode
        elif text[position] in _ESCAPES:
            self._step = self._string
        else:
            self.is_broken = True
            return position
        return position + 1

    def _unicode(self, text: str, position: int) -> int:
        if text[position] not in _HEXADECIMAL:
            self.is_broken = True
            return position
        self._digits_missing -= 1
        if not self._digits_missing:
            self._step = self._string
        return position + 1

    def _scalar(self, text: str, position: int) -> int:
        while position < len(text):
            following = _SCALARS[self._scalar_state].get(text[position])
            if following is None:
                self.is_broken = self._scalar_state not in _COMPLETE
                if not self.is_broken:
                    self._value_ended(text, position)
                break
            self._scalar_state = following
            position += 1
        return position

    def _keep(self, text: str, position: int) -> None:
        if self._kept is not None and position > self._mark:
            self._kept.append(text[self._mark : position])
        self._mark = position


def parse_lenient_json(text: str) -> Any:
    """Parses a JSON text with the leniency of `JsonObject`.

    Raises `ValueError` where JSON has no such value: ``1e999``, a number of 5,000 digits.
    """
    return json.loads(text, strict=False, parse_float=_finite, parse_constant=_no_json)


def _finite(written: str) -> float:
    value = float(written)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{written:.40} is out of range")
    return value


def _no_json(written: str) -> NoReturn:
    raise ValueError(f"{written} is no JSON")


def _string(source: str) -> str:
    return well_formed(json.loads(source, strict=False))
