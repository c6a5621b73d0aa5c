"""JSON values as a person reads them: YAML-like lines, one-line summaries, tables; each bounded.

Everything here makes pieces of text with a kind (`Token`); HTML, plain text and the terminal turn the same
pieces into their own. What is stored is whole: only what is drawn is cut, and each cut says how much it hides,
since a `<pre>` of megabytes costs a second for each layout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from toolcall_nb.events import Json
from toolcall_nb.render.escaping import visible, without_ansi

__all__ = [
    "CHARACTERS",
    "ROWS",
    "Table",
    "Token",
    "counted",
    "draw_text",
    "draw_value",
    "more",
    "one_line",
    "table_of",
]

CHARACTERS = 20_000
"""About how many characters of one value are drawn."""
ROWS = 200
"""How many items of one list, keys of one object, or rows of one table are drawn."""
_DEPTH = 24
_CELL = 200
_KEY = 200
_COLUMNS = 16
_SUMMARY = 160
_FLOW_ITEMS = 12
_FLOW_WIDTH = 60

Token: TypeAlias = tuple[str, str]
"""A kind (``k`` key, ``s`` string, ``n`` number and other constants, ``c`` a remark of ours, or ``""``) and text."""

_NOT_PLAIN = re.compile(
    r"""^[\s\-?:,\[\]{}#&*!|>'"%@`] | \s$ | :[ ] | :$ | [ ]\# | [\x00-\x1f\x7f]
    | ^(?:null|true|false|~)$ | ^[-+.]?\d[\w.:+-]*$""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_FLOW = re.compile(r"[,\[\]{}]")


def more(count: int, what: str) -> str:
    """The remark that stands for what is not drawn."""
    return f"… {count:,} more {what.removesuffix('s') if count == 1 else what}"


def counted(count: int, what: str) -> str:
    """``3 keys``, ``1 key``."""
    return f"{count:,} {what.removesuffix('s') if count == 1 else what}"


# YAML-like ----------------------------------------------------------------------------------------------------


class _Pen:
    """How many characters may still be drawn."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = CHARACTERS

    def write(self, kind: str, text: str) -> Token:
        self.left -= len(text)
        return kind, text


def draw_value(value: Json) -> list[list[Token]]:
    """The value as entries of one or more lines each: one for each key or item at the top, else one.

    An entry has no newline at its end. Keys and strings look as in YAML; where a string could be read as
    something else it is quoted.
    """
    pen = _Pen()
    if isinstance(value, dict) and value:
        return _entries(value.items(), len(value), "keys", _pairs("", 0, pen), pen)
    if isinstance(value, list) and value and not _is_flow(value):
        return _entries(value, len(value), "items", _items("", 0, pen), pen)
    if isinstance(value, str) and "\n" in value:
        return [list(_lines(value, "", pen))]
    return [list(_after("", value, "", 0, pen))]


def draw_text(text: str) -> list[list[Token]]:
    """Text as it stands, without the colour sequences of terminals, as one entry."""
    head = without_ansi(text[:CHARACTERS])
    hidden = len(text) - CHARACTERS
    return [[("", head), ("c", "\n" + more(hidden, "characters"))] if hidden > 0 else [("", head)]]


def _entries(
    items: Iterable[Json], count: int, what: str, draw: Callable[[Json], Iterator[Token]], pen: _Pen
) -> list[list[Token]]:
    """One list of tokens for each item, and one that says how many are hidden."""
    drawn: list[list[Token]] = []
    for item in islice(items, ROWS):
        if pen.left <= 0:
            break
        drawn.append(list(draw(item)))
    if len(drawn) < count:
        drawn.append([("c", more(count - len(drawn), what))])
    return drawn


def _pair(key: object, value: Json, indent: str, depth: int, pen: _Pen) -> Iterator[Token]:
    yield pen.write("k", _quoted(str(key)[:_KEY]))
    yield _mark(indent, ":", pen)
    yield from _after(" ", value, indent, depth, pen)


def _item(value: Json, indent: str, depth: int, pen: _Pen) -> Iterator[Token]:
    yield _mark(indent, "-", pen)
    inner = indent + "  "
    if isinstance(value, dict) and value and depth < _DEPTH:
        yield "", " "
        yield from _joined(_entries(value.items(), len(value), "keys", _pairs(inner, depth, pen), pen), inner)
    elif isinstance(value, list) and value and depth < _DEPTH and not _is_flow(value):
        yield "", " "
        yield from _joined(_entries(value, len(value), "items", _items(inner, depth, pen), pen), inner)
    else:
        yield from _after(" ", value, indent, depth, pen)


def _pairs(indent: str, depth: int, pen: _Pen) -> Callable[[tuple[str, Json]], Iterator[Token]]:
    return lambda item: _pair(item[0], item[1], indent, depth + 1, pen)


def _items(indent: str, depth: int, pen: _Pen) -> Callable[[Json], Iterator[Token]]:
    return lambda item: _item(item, indent, depth + 1, pen)


def _mark(indent: str, mark: str, pen: _Pen) -> Token:
    """A dash or a colon; with it counts the indentation of its line, which is drawn too."""
    pen.left -= len(indent) + len(mark)
    return "", mark


def _joined(entries: Sequence[list[Token]], indent: str) -> Iterator[Token]:
    for number, entry in enumerate(entries):
        if number:
            yield "", "\n" + indent
        yield from entry


def _after(space: str, value: Json, indent: str, depth: int, pen: _Pen) -> Iterator[Token]:
    """What comes after a key or a dash: a scalar on the same line, anything else on lines of its own."""
    inner = indent + "  "
    if isinstance(value, str):
        yield from _string(space, value, inner, pen)
    elif isinstance(value, dict) and value and depth < _DEPTH:
        yield pen.write("", "\n" + inner)
        yield from _joined(_entries(value.items(), len(value), "keys", _pairs(inner, depth, pen), pen), inner)
    elif isinstance(value, list) and value and depth < _DEPTH and not _is_flow(value):
        yield pen.write("", "\n" + inner)
        yield from _joined(_entries(value, len(value), "items", _items(inner, depth, pen), pen), inner)
    else:
        yield "", space
        yield from _inline(value, pen)


def _inline(value: Json, pen: _Pen) -> Iterator[Token]:
    """Anything that stays on the line: a constant, a short list of constants, and what is too deep."""
    if not isinstance(value, list) or not value or not _is_flow(value):
        yield pen.write("n" if not isinstance(value, (dict, list)) else "", _constant(value))
        return
    yield "", "["
    for number, item in enumerate(value):
        if number:
            yield "", ", "
        if isinstance(item, str):
            yield pen.write("s", json.dumps(item, ensure_ascii=False) if _NOT_FLOW.search(item) else _quoted(item))
        else:
            yield pen.write("n", _constant(item))
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
    limit = max(pen.left, 0)
    shown = text[:limit]
    while indent and shown and len(shown) + shown.count("\n") * len(indent) > limit:
        shown = shown[: min(len(shown) - 1, limit * len(shown) // (len(shown) + shown.count("\n") * len(indent)))]
    drawn = visible(shown).replace("\n", "\n" + indent)
    pen.left -= len(drawn)
    yield "s", space + drawn
    if len(shown) < len(text):
        yield "c", f"\n{indent}{more(len(text) - len(shown), 'characters')}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if not text or _NOT_PLAIN.search(text) else text


def _constant(value: Json) -> str:
    """A value that is no string on one line; of an object or a list only its size."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict):
        return f"{{{counted(len(value), 'keys')}}}" if value else "{}"
    if isinstance(value, list):
        return f"[{counted(len(value), 'items')}]" if value else "[]"
    if isinstance(value, int) and value.bit_length() > 10_000:  # Python refuses to write these as decimals
        return f"(an integer of {value.bit_length():,} bits)"
    return str(value) if isinstance(value, (int, float)) else f"({type(value).__name__})"


# One line -----------------------------------------------------------------------------------------------------


def one_line(value: Json) -> str:
    """The value in at most about 160 characters, for the summary of a card: ``city: Lyon, days: 7``."""
    if not isinstance(value, dict):
        return _cut(_brief(value), _SUMMARY)
    pieces: list[str] = []
    length = 0
    for key, item in value.items():
        pieces.append(f"{_cut(_flat(str(key)[:_KEY]), 40)}: {_brief(item)}")
        length += len(pieces[-1]) + 2
        if length > _SUMMARY:
            break
    return _cut(", ".join(pieces), _SUMMARY)


def _brief(value: Json) -> str:
    if isinstance(value, str):
        return _cut(_flat(value[: 2 * _SUMMARY]), 80)
    if isinstance(value, list) and value and _is_flow(value):
        return "[" + ", ".join(_brief(item) for item in value) + "]"
    return _constant(value)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# Tables -------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A list of flat objects. ``hidden`` is how many rows there are beyond those."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    hidden: int


def table_of(value: Json) -> Table | None:
    """The value as a table, if it is a list of flat objects that mostly share their keys."""
    if not isinstance(value, list) or not value:
        return None
    records = value[:ROWS]
    if not all(isinstance(record, dict) and record and _is_flat(record) for record in records):
        return None
    columns = tuple(dict.fromkeys(key for record in records for key in record))
    if len(columns) > _COLUMNS or sum(map(len, records)) * 2 < len(columns) * len(records):
        return None
    rows: list[tuple[str, ...]] = []
    left = CHARACTERS
    for record in records:
        rows.append(tuple(_cell(record[key]) if key in record else "" for key in columns))
        left -= sum(map(len, rows[-1]))
        if left <= 0:
            break
    return Table(tuple(_cut(str(key), 60) for key in columns), tuple(rows), len(value) - len(rows))


def _is_flat(record: dict[str, Json]) -> bool:
    return len(record) <= _COLUMNS and not any(isinstance(item, (dict, list)) for item in record.values())


def _cell(value: Json) -> str:
    return _cut(value[: _CELL + 1], _CELL) if isinstance(value, str) else _constant(value)
