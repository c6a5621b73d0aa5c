"""The open table that a growing text ends in: only the cells that change are parsed again."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it.common.utils import mdTrim
from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token

from toolcall_nb.incremental_markdown.blocks import OpenEnd, OuterBlocks, is_blank
from toolcall_nb.incremental_markdown.flavor import parser
from toolcall_nb.incremental_markdown.link_definitions import Definitions, parse_inline, render_tokens
from toolcall_nb.incremental_markdown.open_paragraph import TEXT_LINE

# The parser stops completing short rows of a table at 65,536 cells.
_MOST_CELLS = 30_000

_ROW_OPEN = Token("tr_open", "tr", 1, block=True)
_ROW_CLOSE = Token("tr_close", "tr", -1, block=True)
_CELL_CLOSE = Token("td_close", "td", -1, block=True)


class OpenTable(OpenEnd):
    """A table. Each line behind its head is a row, up to a blank line or a line that begins another block.

    A line that begins with a pipe, or as text, begins no other block; of other lines, a parse tells. The parser's own
    function takes a row apart. Each cell is parsed by itself, since it is inline content of its own.

    The table must start where it does for good, so that no formula before it can include its lines.
    """

    def __init__(self, group: list[Token], html: str, lines: list[str], definitions: Definitions) -> None:
        super().__init__(group)
        self._definitions = definitions
        self._columns = [
            Token("td_open", "td", 1, attrs=token.attrs, block=True) for token in group if token.type == "th_open"
        ]
        self._head, _, body = html.removesuffix("</table>\n").partition("<tbody>\n")
        self._rows = body.removesuffix("</tbody>\n")  # the HTML of the rows before the last line
        start, end = group[0].map or [0, 0]
        self._count = end - start - 2  # of the rows
        is_head = len(lines) == start + 2
        self._line = None if is_head else lines[-1]  # the last line so far; None in the second line of the head
        self._is_over = len(lines) > end + 1  # whether a blank line has ended the table
        self._row = self._blank = _Row(self._columns, ())
        if end == len(lines) and not is_head:
            cells = [token for token in group if token.type == "inline"][-len(self._columns) :]
            self._row = _Row(self._columns, cells)
            self._rows = self._rows.removesuffix(self._row.html)

    @classmethod
    def of(cls, group: list[Token], html: str, lines: list[str], outer: OuterBlocks) -> OpenTable | None:
        """Returns the open table, which is the last one of ``lines``."""
        return cls(group, html, lines, outer.definitions) if outer.is_certain else None

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None if a line may not be a row."""
        if self._line is None:
            return self._extend("", text[1:]) if text.startswith("\n") else None
        return self._extend(self._line, text)

    def _extend(self, line: str, text: str) -> str | None:
        if self._is_over and text.strip(" \t\n"):
            return None
        lines = (line + text).split("\n")
        end = next((at for at, each in enumerate(lines) if is_blank(each)), len(lines))
        if not all(map(is_blank, lines[end:])) or not all(map(_is_row, lines[:end])):
            return None
        if (self._count + end) * len(self._columns) > _MOST_CELLS:
            return None
        rows = [self._row]
        for number, each in enumerate(lines[:end]):
            row = self._read(each, rows[0].cells if number == 0 else ())
            rows[number:] = [row]
        if end < len(lines):
            rows.append(self._blank)
        self._rows += "".join([row.html for row in rows[:-1]])
        self._count += len(rows) - 1
        self._row, self._line = rows[-1], lines[-1]
        self._is_over = self._is_over or end + 1 < len(lines)
        rows_html = self._rows + self._row.html
        body = f"<tbody>\n{rows_html}</tbody>\n" if rows_html else ""
        return f"{self._head}{body}</table>\n"

    def _read(self, line: str, former: Sequence[Token]) -> _Row:
        """Reads a row. The cells that are in ``former`` in the same place are not parsed again."""
        contents = _contents(line)[: len(self._columns)]
        contents += [""] * (len(self._columns) - len(contents))
        cells = [
            former[at] if former and former[at].content == content else Token("inline", "", 0, content=content)
            for at, content in enumerate(contents)
        ]
        parse_inline([cell for cell in cells if cell.content and cell.children is None], self._definitions)
        return _Row(self._columns, cells)


class _Row:
    """A row of a table; a blank line is one without cells."""

    def __init__(self, columns: Sequence[Token], cells: Sequence[Token]) -> None:
        self.cells = cells
        tokens = [_ROW_OPEN]
        for column, cell in zip(columns, cells, strict=False):
            tokens += [column, cell, _CELL_CLOSE]
        self.html = render_tokens([*tokens, _ROW_CLOSE]) if cells else ""


def _contents(line: str) -> list[str]:
    """Returns the contents of a row's cells."""
    row = mdTrim(line)
    cells = escapedSplit(row) if "\\" in row else row.split("|")
    if cells and cells[0] == "":
        cells = cells[1:]
    if cells and cells[-1] == "":
        cells = cells[:-1]
    return [mdTrim(cell) for cell in cells]


def _is_row(line: str) -> bool:
    """Whether ``line``, which is not blank and follows a row, is one."""
    if line.startswith("|") or TEXT_LINE.match(line):
        return True
    tokens: list[Token] = []
    md = parser()
    md.block.parse(f"|a|\n|-|\n{line}", md, {"references": {}, "level": 1}, tokens)
    return tokens[0].map == [0, 3]
