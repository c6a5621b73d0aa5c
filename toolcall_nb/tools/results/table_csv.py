"""Writes tables as CSV of bounded length that counts what it leaves out: `table_csv`.

A table that fits is written whole. Of any other, long cells are shortened first; then columns are left out of the
middle, and then rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from toolcall_nb.tools.results.value_tables import Row, ValueTable

_PART = 100
"""Rows that are read at once."""
_SAMPLE = 2
"""Rows of either end that have room beside every column that is kept."""
_SHORT_CELL = 40
"""Characters that are kept of each cell, at least."""
_NOTES = 200
"""Characters that are reserved for the notes on what is left out."""
_CELL_NOTE = 30
"""Characters of the note in a cell that is cut, about; what is not longer is not cut off."""
_QUOTED = re.compile(r'[",\r\n]|\A(?:null|NaN)?\Z')
"""Texts that are quoted: those that CSV demands, and those that look like a missing value."""


class _Line(NamedTuple):
    """A row as CSV, and the number of characters that are left out of its cells."""

    text: str
    hidden: int


def table_csv(table: ValueTable, limit: int, expression: str, write_cell: Callable[[Any], str]) -> str:
    """Writes the table as CSV in ``limit`` characters; the last line counts the rows, columns and characters left out.

    The kernel has the whole value as ``expression``. ``write_cell`` writes a cell that is a container.
    """
    if 2 * max(len(table.names), table.size) <= limit:
        lines: list[str] = []
        room = limit
        for line in _Writer(table, range(len(table.names)), limit, write_cell).lines():
            lines.append(line.text)
            room -= len(line.text) + 1
            if room < 0 or line.hidden:
                break
        else:
            return "\n".join(lines)
    return _shortened(table, max(limit - _NOTES - len(expression), limit // 2), expression, write_cell)


def cell_text(value: Any, write_cell: Callable[[Any], str]) -> str:
    """Returns a cell as text: missing values as null and NaN, numbers with all their digits."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, float):
        return "NaN" if value != value else repr(float(value))
    return write_cell(value)


def left_out_note(counts: Sequence[tuple[int, str, int]], expression: str) -> str:
    """Formats numbers of things that are left out, each with its name and how many there are (0: unknown)."""
    listed = [
        f"{hidden:,}{f' of {number:,}' if number else ''} {what}" for hidden, what, number in counts if hidden > 0
    ]
    return f"left out: {', '.join(listed)}{f'; all in {expression}' if expression else ''}"


class _Writer:
    """Writes the rows of a table with the columns that are kept, and of each cell the first ``limit`` characters."""

    def __init__(self, table: ValueTable, columns: Sequence[int], limit: int, write_cell: Callable[[Any], str]) -> None:
        self._table, self._columns, self._limit, self._write_cell = table, columns, limit, write_cell
        self._gap = next((at for at, column in enumerate(columns) if column != at), len(columns))
        self._hidden = len(table.names) - len(columns)

    def lines(self) -> Iterator[_Line]:
        """Yields the header and every row."""
        names = [self._table.names[column] for column in self._columns]
        yield self._line([*self._table.labels, *names], f"… {self._hidden:,} columns left out …")
        for start in range(0, self._table.size, _PART):
            yield from map(self._line, self._read(start, start + _PART))

    def lines_from_end(self, first: int) -> Iterator[_Line]:
        """Yields the rows from the last one back to number ``first``."""
        for stop in range(self._table.size, first, -_PART):
            yield from map(self._line, reversed(self._read(max(first, stop - _PART), stop)))

    def widths(self, numbers: Sequence[int]) -> list[int]:
        """Returns the characters that each label and column takes in the header and in these rows."""
        rows: list[Row] = [[*self._table.labels, *(self._table.names[column] for column in self._columns)]]
        rows += [row for number in numbers for row in self._read(number, number + 1)]
        cells = [[len(self._cell(value)[0]) + 1 for value in row] for row in rows]
        return [sum(column) for column in zip(*cells, strict=True)]

    def _read(self, start: int, stop: int) -> Sequence[Row]:
        return self._table.read(start, min(stop, self._table.size), self._columns)

    def _line(self, row: Row, gap: str = "…") -> _Line:
        cells = [self._cell(value) for value in row]
        texts = [text for text, _ in cells]
        if self._hidden:
            texts.insert(len(self._table.labels) + self._gap, gap)
        return _Line(",".join(texts), sum(hidden for _, hidden in cells))

    def _cell(self, value: Any) -> tuple[str, int]:
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else cell_text(value, self._write_cell)
        hidden = len(text) - self._limit
        if hidden > _CELL_NOTE:
            text = f"{text[: self._limit]}… {hidden:,} characters left out"
        is_quoted = (isinstance(value, str | tuple) and _QUOTED.search(text)) or any(mark in text for mark in ',"\r\n')
        return ('"' + text.replace('"', '""') + '"' if is_quoted else text), hidden if hidden > _CELL_NOTE else 0


def _shortened(table: ValueTable, room: int, expression: str, write_cell: Callable[[Any], str]) -> str:
    width = len(table.names)
    longest = max(_SHORT_CELL, room // (2 * _SAMPLE + 1) // (width + len(table.labels) or 1) - _CELL_NOTE)
    columns = _kept_columns(table, room, longest, write_cell)
    writer = _Writer(table, columns, longest, write_cell)
    lines = writer.lines()
    head, tail = [next(lines)], list[_Line]()
    room -= len(head[0].text) + 1
    half = room // 2
    for line in lines:
        if len(line.text) >= room - half and len(head) > 1:
            break
        head.append(line)
        room -= len(line.text) + 1
    for line in writer.lines_from_end(len(head) - 1):
        if len(line.text) >= room:
            break
        tail.append(line)
        room -= len(line.text) + 1
    hidden_rows = table.size - (len(head) - 1) - len(tail)
    hidden_characters = sum(line.hidden for line in chain(head, tail))
    counts = (
        (hidden_rows, "rows", table.size),
        (width - len(columns), "columns", width),
        (hidden_characters, "characters of cells", 0),
    )
    note = left_out_note(counts, expression)
    gap = [f"… {hidden_rows:,} rows left out …"] if hidden_rows else []
    return "\n".join([*(line.text for line in head), *gap, *(line.text for line in reversed(tail)), f"… {note} …"])


def _kept_columns(table: ValueTable, room: int, longest: int, write_cell: Callable[[Any], str]) -> Sequence[int]:
    """Returns the first and last columns that have room together with some rows: all of them, if they have."""
    width = len(table.names)
    most = room // (2 * _SAMPLE + 1) // 2
    columns = range(width) if width <= most else [*range(most // 2), *range(width - most // 2, width)]
    ends = sorted({*range(min(_SAMPLE, table.size)), *range(max(0, table.size - _SAMPLE), table.size)})
    widths = _Writer(table, columns, longest, write_cell).widths(ends)
    label_widths, widths = widths[: len(table.labels)], widths[len(table.labels) :]
    room = max(0, room - sum(label_widths))
    if len(columns) == width and sum(widths) <= room:
        return columns
    kept: list[int] = []
    for order, share in ((1, room // 2), (-1, room - room // 2)):
        for column, size in list(zip(columns, widths, strict=True))[::order]:
            share -= size
            if share < 0 or column in kept:
                break
            kept.append(column)
    return sorted(kept) or columns[:1]
