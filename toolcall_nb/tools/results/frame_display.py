"""Counts what a data frame's own HTML leaves out: `with_note` adds the counts to it.

Packages cut long tables by their own display options, and write an ellipsis where they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from typing import Any

from toolcall_nb.core.escaping import escape
from toolcall_nb.tools.results.table_csv import cell_text, left_out_note
from toolcall_nb.tools.results.value_tables import ValueTable

_ELLIPSES = ("...", "…")
_COMPARED = 100
"""Rows of either end, and columns, whose cells are compared with those in the HTML."""


def with_note(html: str, table: ValueTable, expression: str, write_cell: Callable[[Any], str]) -> str:
    """Returns the HTML of a frame with a note that counts the rows, columns and ends of cells that it leaves out."""
    parser = _Cells()
    parser.feed(html)
    width = max(map(len, parser.rows), default=0)
    if not width:
        return html
    rows = [row for row in parser.rows if len(row) == width]
    if len(rows) != table.size:
        rows = [row for row in rows if not set(row) <= set(_ELLIPSES)]
    gaps = {column for column in range(width) if width != len(table.names) and _is_gap(rows, column)}
    cells = [cell for row in rows for column, cell in enumerate(row) if column not in gaps]
    hidden_rows, hidden_columns = table.size - len(rows), len(table.names) - width + len(gaps)
    counts = (
        (hidden_rows, "rows", table.size),
        (hidden_columns, "columns", len(table.names)),
        (_count_cut(cells, table, write_cell), "ends of cells", 0),
    )
    is_whole = all(number <= 0 for number, _, _ in counts)
    return html if is_whole else f"{html}<p>{escape(f'Of this table are {left_out_note(counts, expression)}')}</p>"


class _Cells(HTMLParser):
    """Collects the texts of the ``<td>`` cells in the body of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._is_body = self._is_cell = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "tbody":
            self._is_body = True
        elif tag == "tr" and self._is_body:
            self.rows.append([])
        elif tag == "td" and self._is_body and self.rows:
            self._is_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._is_cell = False
        elif tag == "tbody":
            self._is_body = False

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.rows[-1][-1] += data


def _is_gap(rows: Sequence[Sequence[str]], column: int) -> bool:
    return all(row[column] in _ELLIPSES for row in rows)


def _count_cut(cells: Sequence[str], table: ValueTable, write_cell: Callable[[Any], str]) -> int:
    """Returns how many cells end with an ellipsis that is not their own."""
    cut = [cell for cell in cells if cell.endswith(_ELLIPSES)]
    if not cut:
        return 0
    width, size = len(table.names), table.size
    columns = sorted({*range(min(width, _COMPARED)), *range(max(0, width - _COMPARED), width)})
    parts = [(0, min(_COMPARED, size)), (max(_COMPARED, size - _COMPARED), size)]
    rows = [row for start, stop in parts if start < stop for row in table.read(start, stop, columns)]
    whole = {cell_text(value, write_cell) for row in rows for value in row[len(table.labels) :]}
    return sum(cell not in whole for cell in cut)
