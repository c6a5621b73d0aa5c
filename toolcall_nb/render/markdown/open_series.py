"""A list or table that the text ends in: only its last item or row is parsed again."""

from __future__ import annotations

import re

from markdown_it.token import Token

from toolcall_nb.render.markdown.blocks import OpenEnd, first_line, is_blank, is_over, top_level
from toolcall_nb.render.markdown.definitions import Definitions, rendered
from toolcall_nb.render.markdown.flavor import parser
from toolcall_nb.render.markdown.open_leaf import open_leaf
from toolcall_nb.render.markdown.open_text import TEXT_LINE

__all__ = ["open_end"]

# The parser stops filling up short rows of a table at 65,536 cells.
_MOST_CELLS = 30_000

# A line that starts like this is an item of the list, or a row of the table: behind a line of it that is not blank, or
# of a list that is loose.
_START = rf"(?=(?:[-+*]|\d{{1,9}}[.)]) {{1,4}}(?:{TEXT_LINE.pattern}))"
_ITEM = re.compile(rf"[^ \t\n][ \t]*\n{_START}")
_ITEM_OF_LOOSE = re.compile(rf"[^ \t\n][ \t]*\n(?:[ \t]*\n)*{_START}")
_ROW = re.compile(r"[^ \t\n][ \t]*\n(?=\|)")


def open_end(group: list[Token], html: str, lines: list[str], definitions: Definitions) -> OpenEnd | None:
    """How more text can be taken up behind ``group``, the last top-level block of ``lines``, without parsing it all.

    ``html`` is the block's, ``definitions`` those that it was parsed with.
    """
    leaf = open_leaf(group, html, lines, definitions)
    return _OpenSeries.of(group, html, lines, definitions, leaf) or leaf


class _OpenSeries:
    """A top-level list or table that the text ends in: of its items or rows, only those from the last on are parsed.

    The last is the last one whose first line is whole, or begins as no other block does: it starts there for good,
    so those before it are certain. For a row, the head of the table is parsed with it. What a later item changes in
    those before is told by the parse of the later ones alone: it makes the list loose, or one of tasks; then, and
    where a definition comes in, all is parsed again.

    The series must start behind a blank line: there is no formula before it, of which its lines may become a part.
    """

    def __init__(
        self,
        series: _Series,
        html: str,
        lines: list[str],
        is_loose: bool,
        definitions: Definitions,
        leaf: OpenEnd | None,
    ) -> None:
        start = first_line(series.group)
        self._opening, self._closing = series.around()
        self._kind = series.kind
        self._group = series.group
        self._is_loose = is_loose  # by the items before the last, and so for good
        self._is_settled = is_loose == series.is_loose
        self._next = _ROW if series.head else _ITEM_OF_LOOSE if is_loose else _ITEM
        self._head = "".join(f"{line}\n" for line in lines[start : start + series.head])
        self._definitions = definitions
        self._leaf = leaf
        self._html = html
        self._certain = ""
        self._size = 0  # so many parts are certain
        self._keep(series, lines)

    @classmethod
    def of(
        cls, group: list[Token], html: str, lines: list[str], definitions: Definitions, leaf: OpenEnd | None
    ) -> _OpenSeries | None:
        """The open series, if the block is one, and nothing in the tail is defined."""
        start = first_line(group)
        if definitions or (start and not is_blank(lines[start - 1])):
            return None
        series = _Series.of(group)
        is_loose = None if series is None else series.is_loose_for_good(lines)
        return None if series is None or is_loose is None else cls(series, html, lines, is_loose, definitions, leaf)

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where all has to be parsed."""
        html = self._leaf.extended(text) if self._leaf is not None else None
        if html is not None:
            self._text += text
            self._html = html
            return html
        cut = self._next_part(text)
        return self._parse(self._text + text) if cut is None else self._parse_next(cut, text)

    def tokens(self) -> list[Token] | None:
        """Not kept."""
        return None

    def is_over(self, character: str) -> bool:
        """Whether a line that begins with ``character``, behind a blank one, starts another block."""
        return is_over(self._group, character)

    def _next_part(self, text: str) -> int | None:
        """Where in the text from the last part on a part begins that nothing before it needs to be parsed with."""
        line = self._text.rfind("\n") + 1
        bare = len(self._text[:line].rstrip(" \t\n"))
        found = self._next.search(self._text + text, max(0, bare - 1)) if self._is_settled else None
        return None if found is None else found.end()

    def _parse_next(self, cut: int, text: str) -> str | None:
        begun = cut - len(self._text)  # below 0: its first characters are there already
        if begun >= 0:
            html = self._leaf.extended(text[:begun]) if self._leaf is not None else None
            if html is None:
                return self._parse(self._text + text)
            self._certain = html[len(self._opening) : len(html) - len(self._closing)]
        elif cut == self._last:
            self._certain += "".join(self._parts[:-1])
        else:
            return self._parse(self._text + text)
        self._size += 1
        return self._parse((self._text + text)[cut:])

    def _parse(self, text: str) -> str | None:
        source = self._head + text
        definitions = Definitions(self._definitions.settled)
        groups = top_level(parser().parse(source, {"references": definitions}))
        series = _Series.of(groups[0]) if len(groups) == 1 and not definitions else None
        if series is None or series.kind != self._kind or self._size * series.width > _MOST_CELLS:
            return None
        if not series.loosen(self._is_loose):
            return None
        lines = source.split("\n")
        self._keep(series, lines)
        self._html = "".join([self._opening, self._certain, *self._parts, self._closing])
        self._leaf = open_leaf(series.group, self._html, lines, definitions)
        return self._html

    def _keep(self, series: _Series, lines: list[str]) -> None:
        """Takes the parts as they were parsed: those before the last whole one are certain."""
        parts, last = [rendered(part) for part in series.parts], series.last_whole(lines)
        self._certain += "".join(parts[:last])
        self._size += last
        self._parts = parts[last:]
        start, end = first_line(series.parts[last]), first_line(series.parts[-1])
        self._text = "\n".join(lines[start:])  # from the last whole part on
        self._last = sum(len(line) + 1 for line in lines[start:end])  # where in it the last part begins


class _Series:
    """A list or table, apart: what opens it, its items or rows, what closes it."""

    def __init__(self, group: list[Token], parts: list[list[Token]], *, head: int) -> None:
        self.group = group
        self.parts = parts
        self.head = head  # so many lines are no part, but without them there is no series
        self.width = sum(token.type == "td_open" for token in parts[0])
        self.kind = (group[0].type, group[0].markup, group[0].attrs.get("class"))
        self._paragraphs = [token for token in group if token.level == 2 and token.type.startswith("paragraph_")]
        self.is_loose = not all(token.hidden for token in self._paragraphs)

    @classmethod
    def of(cls, group: list[Token]) -> _Series | None:
        """The series, if the block is one. A list without paragraphs is left out: it does not show if it is loose."""
        if group[0].type == "table_open":
            rows = _parts(group, "tr_open", 2)[1:]
            return cls(group, rows, head=2) if rows else None
        series = cls(group, items, head=0) if (items := _parts(group, "list_item_open", 1)) else None
        return series if series is not None and series._paragraphs else None

    def around(self) -> tuple[str, str]:
        """The HTML before the parts and behind them."""
        first = next(at for at, token in enumerate(self.group) if token is self.parts[0][0])
        return rendered(self.group[:first]), rendered(self.group[first + sum(map(len, self.parts)) :])

    def last_whole(self, lines: list[str]) -> int:
        """The last part whose first line is whole, or the first part."""
        whole = [at for at, part in enumerate(self.parts) if first_line(part) + 1 < len(lines)]
        return whole[-1] if whole else 0

    def is_loose_for_good(self, lines: list[str]) -> bool | None:
        """Whether the parts before the last whole one make the list loose; None where that does not show."""
        last = self.last_whole(lines)
        if not self.is_loose or last == 0:
            return False
        certain = lines[first_line(self.group) : first_line(self.parts[last]) + 1]
        groups = top_level(parser().parse("\n".join([*certain, ""]), {"references": Definitions({})}))
        series = _Series.of(groups[0])
        return None if series is None else series.is_loose

    def loosen(self, is_loose: bool) -> bool:
        """Makes the list loose as the items before it are; False where it is loose by itself, and they are not."""
        if is_loose:
            for token in self._paragraphs:
                token.hidden = False
        return is_loose or not self.is_loose


def _parts(group: list[Token], opening: str, level: int) -> list[list[Token]]:
    starts = [at for at, token in enumerate(group) if token.type == opening and token.level == level]
    closing = opening.replace("_open", "_close")
    ends = [at + 1 for at, token in enumerate(group) if token.type == closing and token.level == level]
    return [group[start:end] for start, end in zip(starts, ends, strict=True)]
