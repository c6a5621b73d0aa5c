"""JSON values in short: in one line (`one_line`), as a table (`table_of`), and an input that is being written.

`toolcall_nb.render.value_lines` draws a value in lines.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import jiter

from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.result_text import count_items
from toolcall_nb.render.value_lines import MAX_CHARACTERS, MAX_ROWS, format_constant, is_block

_CELL = 200
_KEY = 200
_COLUMNS = 16
_SUMMARY = 160
_BLANKS = re.compile(r"[ \t\r\n]+")  # other spaces are written out


class PartialInput(NamedTuple):
    """The text of a tool call's input while it is being written: the beginning that is drawn, and its whole length."""

    head: str = ""
    length: int = 0

    def add(self, delta: str) -> PartialInput:
        """Returns it with ``delta`` added; the cost does not depend on the text before."""
        room = MAX_CHARACTERS - len(self.head)
        return PartialInput(self.head + delta[:room] if room > 0 else self.head, self.length + len(delta))

    def parse(self) -> Json:
        """Returns the value so far if the text is JSON, else the text; MISSING if it is blank."""
        if not self.head.strip():
            return MISSING
        if self.head.lstrip()[0] in "{[":
            try:
                return jiter.from_json(self.head.encode(), partial_mode="trailing-strings") or MISSING
            except ValueError:  # not JSON
                return self.head
        return self.head


# One line -----------------------------------------------------------------------------------------------------


def one_line(value: Json) -> str:
    """Returns the value in at most about 160 characters, for the summary of a card: ``city: Lyon, days: 7``."""
    if not isinstance(value, dict):
        return _cut(_brief(value), _SUMMARY)
    pieces: list[str] = []
    length = 0
    for key, item in value.items():
        pieces.append(f"{_short_key(str(key)[:_KEY])}: {_brief(item)}")
        length += len(pieces[-1]) + 2
        if length > _SUMMARY:
            break
    return _cut(", ".join(pieces), _SUMMARY)


def _brief(value: Json) -> str:
    if isinstance(value, str):
        return _cut(_flat(value[: 2 * _SUMMARY]), 80)
    if isinstance(value, list) and value and not is_block(value):
        return "[" + ", ".join([_brief(item) for item in value]) + "]"
    return format_constant(value)


@lru_cache(maxsize=512)  # the same keys come again and again
def _short_key(key: str) -> str:
    return _cut(_flat(key), 40)


def _flat(text: str) -> str:
    if "  " not in text and text.isprintable():  # most texts
        return text.strip(" ")
    return _BLANKS.sub(" ", text).strip(" ")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# Tables -------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A list of flat objects. ``hidden`` is the number of rows that are left out; ``is_whole`` if nothing is cut."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    hidden: int
    is_whole: bool = True


def table_of(value: Json) -> Table | None:
    """Returns the value as a table if it is a list of flat objects that mostly share their keys."""
    if not isinstance(value, list) or not value:
        return None
    records = value[:MAX_ROWS]
    if not all(isinstance(record, dict) and record and _is_flat(record) for record in records):
        return None
    columns = tuple(dict.fromkeys(key for record in records for key in record))
    if len(columns) > _COLUMNS or sum(map(len, records)) * 2 < len(columns) * len(records):
        return None
    rows: list[tuple[str, ...]] = []
    characters_left = MAX_CHARACTERS
    for record in records:
        rows.append(tuple(_cell(record[key]) if key in record else "" for key in columns))
        characters_left -= sum(map(len, rows[-1]))
        if characters_left <= 0:
            break
    hidden = count_items(value, len(rows))
    texts = [item for record in records for item in record.values() if isinstance(item, str)]
    is_whole = not hidden and all(len(text) <= _CELL for text in texts)
    return Table(tuple(_cut(str(key), 60) for key in columns), tuple(rows), hidden, is_whole)


def _is_flat(record: dict[str, Json]) -> bool:
    return len(record) <= _COLUMNS and not any(isinstance(item, (dict, list)) for item in record.values())


def _cell(value: Json) -> str:
    return _cut(value[: _CELL + 1], _CELL) if isinstance(value, str) else format_constant(value)
