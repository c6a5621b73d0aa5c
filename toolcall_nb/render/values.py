"""Values in other forms than lines: text, a summary in one line, a table; each bounded."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeGuard

from toolcall_nb.core.events import Json
from toolcall_nb.render.escaping import line_ends, without_ansi
from toolcall_nb.render.yaml_like import CHARACTERS, ROWS, Entry, constant, is_block, more

__all__ = ["Table", "draw_text", "one_line", "table_of"]

_CELL = 200
_KEY = 200
_COLUMNS = 16
_SUMMARY = 160
_BLANKS = re.compile(r"[ \t\r\n]+")  # spaces of another kind are to be written out


def draw_text(text: str, limit: int = CHARACTERS) -> Entry:
    """Text as it stands, without the colour sequences of terminals."""
    head = ("", line_ends(without_ansi(text[:limit])))
    hidden = len(text) - limit
    return Entry([head, ("c", "\n" + more(hidden, "characters"))] if hidden > 0 else [head])


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
    if isinstance(value, list) and value and not is_block(value):
        return "[" + ", ".join(_brief(item) for item in value) + "]"
    return constant(value)


def _flat(text: str) -> str:
    return _BLANKS.sub(" ", text).strip(" ")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# Tables -------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A list of flat objects. ``hidden`` is how many rows there are beyond those; ``is_whole``: nothing is cut."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    hidden: int
    is_whole: bool = True


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
    hidden = len(value) - len(rows)
    is_whole = not hidden and all(
        len(item) <= _CELL for record in records for item in record.values() if _is_text(item)
    )
    return Table(tuple(_cut(str(key), 60) for key in columns), tuple(rows), hidden, is_whole)


def _is_text(value: Json) -> TypeGuard[str]:
    return isinstance(value, str)


def _is_flat(record: dict[str, Json]) -> bool:
    return len(record) <= _COLUMNS and not any(isinstance(item, (dict, list)) for item in record.values())


def _cell(value: Json) -> str:
    return _cut(value[: _CELL + 1], _CELL) if isinstance(value, str) else constant(value)
