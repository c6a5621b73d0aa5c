"""JSON values drawn as a person reads them: lines that look like YAML, in pieces with a kind, and bounded.

HTML, plain text and the terminal turn the same pieces into their own. What is stored is whole: only what is
drawn is cut, and each cut says how much it hides, since a `<pre>` of megabytes costs a second for each layout.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from toolcall_nb.core.events import Json
from toolcall_nb.core.invisible_characters import written_out
from toolcall_nb.core.text import join_surrogates
from toolcall_nb.render.escaping import line_ends

__all__ = [
    "BOUNDED",
    "CHARACTERS",
    "ROWS",
    "Bounds",
    "Drawing",
    "Entry",
    "Token",
    "constant",
    "counted",
    "draw_value",
    "is_block",
    "more",
]

CHARACTERS = 20_000
"""About how many characters of one value are drawn."""
ROWS = 200
"""How many items of one list, keys of one object, or rows of one table are drawn."""
_FLOW_ITEMS = 12
_FLOW_WIDTH = 60
_WIDTH = 80


class Bounds(NamedTuple):
    """How much of a value is drawn: characters in all, members of one list or object, levels, and of a key."""

    characters: int
    rows: int
    depth: int
    key: int


BOUNDED = Bounds(CHARACTERS, ROWS, depth=24, key=200)

Token: TypeAlias = tuple[str, str]
"""A kind (``k`` key, ``s`` string, ``n`` number and other constants, ``c`` a remark of ours, or ``""``) and text."""

_NOT_PLAIN = re.compile(
    r"""^[\s\-?:,\[\]{}#&*!|>'"%@`] | \s$ | :[ ] | :$ | [ ]\# | [\x00-\x1f\x7f]
    | ^(?:null|true|false|~)$ | ^[-+.]?\d[\w.:+-]*$""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_FLOW = re.compile(r"[,\[\]{}]")


class Entry:
    """One or more lines, without a newline at the end, in which all that cannot be seen is written out.

    ``height`` is about how many lines there are on a screen; ``html`` is for the face that makes HTML of it to keep.
    """

    __slots__ = ("height", "html", "tokens")

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._take((kind, written_out(join_surrogates(text))) for kind, text in tokens)

    @classmethod
    def of_written(cls, tokens: Iterable[Token]) -> Entry:
        """An entry of what is written out already."""
        entry = cls.__new__(cls)
        entry._take(tokens)
        return entry

    def _take(self, tokens: Iterable[Token]) -> None:
        self.tokens: Sequence[Token] = tuple(tokens)
        self.height = 1 + sum(text.count("\n") + len(text) // _WIDTH for _, text in self.tokens)
        self.html: str | None = None


class _Pen:
    """How many characters may still be drawn."""

    __slots__ = ("bounds", "left")

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.left = bounds.characters

    def write(self, kind: str, text: str) -> Token:
        self.left -= len(text)
        return kind, text


def draw_value(value: Json, bounds: Bounds = BOUNDED) -> list[Entry]:
    """The value as entries: one for each key or item at the top, and for each one in what these hold; else one.

    Keys and strings look as in YAML; where a string could be read as something else it is quoted.
    """
    pen = _Pen(bounds)
    return [Entry(_draw(piece, pen)) for piece in _pieces(value, pen)]


class Drawing:
    """Draws a value again and again while it grows; an entry that is as before is the same object, not drawn anew."""

    def __init__(self) -> None:
        self._known: list[tuple[bytes, Entry, int]] = []

    def draw(self, value: Json) -> list[Entry]:
        """What `draw_value` gives, at the cost of what differs from the last time. The value is plain JSON."""
        pen = _Pen(BOUNDED)
        known = iter(self._known)
        drawn: list[tuple[bytes, Entry, int]] = []
        for piece in _pieces(value, pen):
            mark = marshal.dumps(piece, 2)  # compared as bytes, since 1, 1.0 and True are equal in Python
            last = next(known, None)
            if last is not None and last[0] == mark:
                pen.left = last[2]
                drawn.append(last)
            else:
                known = iter(())  # what comes later is drawn with another pen
                entry = Entry(_draw(piece, pen))
                drawn.append((mark, entry, pen.left))
        self._known = drawn
        return [entry for _, entry, _ in drawn]


# Pieces: what becomes one entry ------------------------------------------------------------------------------


_Kind: TypeAlias = Literal["pair", "head", "item", "more", "whole"]
_Piece: TypeAlias = tuple[_Kind, str, str, Json]
"""What it is, its indentation, its key, and its value; of ``more``, what is hidden and how much of it."""


def _pieces(value: Json, pen: _Pen) -> Iterator[_Piece]:
    if is_block(value):
        yield from _level(value, "", pen, split=True)
    else:
        yield "whole", "", "", value


def _level(value: Json, indent: str, pen: _Pen, *, split: bool = False) -> Iterator[_Piece]:
    """The pieces of an object or a list, until there are too many or the pen is dry."""
    members = value.items() if isinstance(value, dict) else (("", item) for item in value)
    kind: _Kind = "pair" if isinstance(value, dict) else "item"
    for number, (key, item) in enumerate(members):
        if number == pen.bounds.rows or pen.left <= 0:
            yield "more", indent, "keys" if kind == "pair" else "items", len(value) - number
            return
        if split and kind == "pair" and is_block(item):
            yield "head", indent, str(key), None
            yield from _level(item, indent + "  ", pen)
        else:
            yield kind, indent, str(key), item


def is_block(value: Json) -> bool:
    """Whether the value takes lines of its own: an object or a list, unless it is empty or short."""
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and not _is_flow(value)))


# Tokens: what an entry is made of -----------------------------------------------------------------------------


def _draw(piece: _Piece, pen: _Pen) -> Iterator[Token]:
    indent = piece[1]
    if indent:
        yield "", indent
    yield from _line(piece, 0, pen)


def _line(piece: _Piece, depth: int, pen: _Pen) -> Iterator[Token]:
    """A piece from where its line begins, behind the indentation."""
    kind, indent, key, value = piece
    match kind:
        case "pair" | "head":
            yield pen.write("k", _quoted(key[: pen.bounds.key]))
            if len(key) > pen.bounds.key:
                yield "c", "…"
            yield _mark(indent, ":", pen)
            if kind == "pair":
                yield from _after(" ", value, indent, depth, pen)
        case "item":
            yield _mark(indent, "-", pen)
            if is_block(value) and depth < pen.bounds.depth:
                yield "", " "
                yield from _block(value, indent + "  ", depth + 1, pen)
            else:
                yield from _after(" ", value, indent, depth, pen)
        case "more":
            yield "c", more(value, key)
        case "whole" if isinstance(value, str) and "\n" in value:
            yield from _lines(value, "", pen)
        case "whole":
            yield from _after("", value, "", depth, pen)


def _mark(indent: str, mark: str, pen: _Pen) -> Token:
    """A dash or a colon; with it counts the indentation of its line, which is drawn too."""
    pen.left -= len(indent) + len(mark)
    return "", mark


def _after(space: str, value: Json, indent: str, depth: int, pen: _Pen) -> Iterator[Token]:
    """What comes after a key or a dash: a scalar on the same line, anything else on lines of its own."""
    inner = indent + "  "
    if isinstance(value, str):
        yield from _string(space, value, inner, pen)
    elif is_block(value) and depth < pen.bounds.depth:
        yield "", "\n" + inner
        yield from _block(value, inner, depth + 1, pen)
    else:
        yield "", space
        yield from _inline(value, pen)


def _block(value: Json, indent: str, depth: int, pen: _Pen) -> Iterator[Token]:
    """The members of an object or a list, each on lines of its own."""
    for number, piece in enumerate(_level(value, indent, pen)):
        if number:
            yield "", "\n" + indent
        yield from _line(piece, depth, pen)


def _inline(value: Json, pen: _Pen) -> Iterator[Token]:
    """Anything that stays on the line: a constant, a short list of constants, and what is too deep."""
    if not isinstance(value, list) or not value or is_block(value):
        kind = "c" if is_block(value) else "" if isinstance(value, (dict, list)) else "n"
        yield pen.write(kind, constant(value))
        return
    yield "", "["
    for number, item in enumerate(value):
        if number:
            yield "", ", "
        if isinstance(item, str):
            yield pen.write("s", json.dumps(item, ensure_ascii=False) if _NOT_FLOW.search(item) else _quoted(item))
        else:
            yield pen.write("n", constant(item))
    yield "", "]"


def _is_flow(value: list[Json]) -> bool:
    """Whether the list is short enough for one line: constants and short strings."""
    if len(value) > _FLOW_ITEMS or any(isinstance(item, (dict, list)) for item in value):
        return False
    return sum(len(item) + 4 if isinstance(item, str) else 8 for item in value) <= _FLOW_WIDTH and not any(
        isinstance(item, str) and "\n" in item for item in value
    )


def _string(space: str, text: str, indent: str, pen: _Pen) -> Iterator[Token]:
    if "\n" in text:
        yield "s", space + "|\n" + indent
        yield from _lines(text, indent, pen)
    elif len(text) > pen.left:
        yield from _lines(text, indent, pen, space)
    else:
        yield "", space
        yield pen.write("s", _quoted(text))


def _lines(text: str, indent: str, pen: _Pen, space: str = "") -> Iterator[Token]:
    """The lines of a text, cut where the pen runs dry. Indentation counts: it is drawn too."""
    text = line_ends(text)
    limit = max(pen.left, 0)
    shown = text[:limit]
    while indent and shown and len(shown) + shown.count("\n") * len(indent) > limit:
        shown = shown[: min(len(shown) - 1, limit * len(shown) // (len(shown) + shown.count("\n") * len(indent)))]
    drawn = shown.replace("\n", "\n" + indent)
    pen.left -= len(drawn)
    yield "s", space + drawn
    if len(shown) < len(text):
        yield "c", f"\n{indent}{more(len(text) - len(shown), 'characters')}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if not text or _NOT_PLAIN.search(text) else text


def constant(value: Json) -> str:
    """A value that is no string on one line; of an object or a list only its size."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict):
        return f"{{{counted(len(value), 'keys')}}}" if value else "{}"
    if isinstance(value, list):
        return f"[{counted(len(value), 'items')}]" if value else "[]"
    if isinstance(value, int) and value.bit_length() > 14_000:  # Python refuses to write these as decimals
        return f"(an integer of {value.bit_length():,} bits)"
    return str(value) if isinstance(value, (int, float)) else f"({type(value).__name__})"


def more(count: int, what: str) -> str:
    """The remark that stands for what is not drawn."""
    return f"… {count:,} more {what.removesuffix('s') if count == 1 else what}"


def counted(count: int, what: str) -> str:
    """``3 keys``, ``1 key``."""
    return f"{count:,} {what.removesuffix('s') if count == 1 else what}"
