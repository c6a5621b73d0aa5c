"""The open list that a growing text ends in: only its last item is parsed again.

`find_open_end` returns the open end of any last block, after a parse.
"""

from __future__ import annotations

import re

from markdown_it.token import Token

from toolcall_nb.incremental_markdown.blocks import (
    OpenEnd,
    OuterBlocks,
    check_alone,
    first_line,
    is_blank,
    split_blocks,
)
from toolcall_nb.incremental_markdown.flavor import is_deep, parser
from toolcall_nb.incremental_markdown.link_definitions import Definitions, parse_tail, render_tokens
from toolcall_nb.incremental_markdown.open_container import LEAST_CONTENTS, OpenItem, OpenQuote
from toolcall_nb.incremental_markdown.open_fence import find_open_leaf
from toolcall_nb.incremental_markdown.open_paragraph import TEXT_LINE, OpenText, parse_line
from toolcall_nb.incremental_markdown.open_table import OpenTable

# A line that starts like this is an item of the list, if the line before it is not blank, or if the list is loose.
_START = rf"(?=(?:[-+*]|\d{{1,9}}[.)]) {{1,4}}(?x:{TEXT_LINE.pattern}))"
_ITEM = re.compile(rf"[^ \t\n][ \t]*\n{_START}")
_ITEM_OF_LOOSE = re.compile(rf"[^ \t\n][ \t]*\n(?:[ \t]*\n)*{_START}")
# An item that begins with text, and is no task.
_ITEM_OF_TEXT = re.compile(rf"([-+*]|\d{{1,9}}[.)]) {{1,4}}(?!\[[ xX]?\])(?=(?x:{TEXT_LINE.pattern}))")


def find_open_end(group: list[Token], html: str, lines: list[str], outer: OuterBlocks) -> OpenEnd | None:
    """Returns the open end of ``group``, the last block of ``lines``; None if more text needs a parse.

    ``html`` is that of the block.
    """
    if group[0].type == "table_open":
        return OpenTable.of(group, html, lines, outer)
    leaf = find_open_leaf(group, html, lines, outer)
    if group[0].type.endswith("list_open"):
        return _OpenList.of(group, html, lines, outer, leaf) or leaf
    return OpenQuote.of(group, html, lines, outer, leaf)


class _OpenList(OpenEnd):
    """An open list. Only its last item is parsed again.

    The last one is the last whose first line is whole, or begins as no other block does. It starts there for good,
    so those before it are certain. A later item may change those before it: it makes the list loose, or a list of
    tasks. The parse of the later items alone shows that, and then, or if there is a definition, the whole list is
    parsed again.

    The list must start where it does for good, so that no formula before it can include its lines. A long last item
    becomes an `OpenItem`, whose contents are parsed apart from the list.
    """

    def __init__(
        self,
        items: _Items,
        html: str,
        lines: list[str],
        is_loose: bool,
        outer: OuterBlocks,
        leaf: OpenEnd | None,
    ) -> None:
        super().__init__(items.group)
        opening, self._closing = items.around()
        self._opening = "\n" + opening if html.startswith("\n") else opening
        self._kind = items.kind
        self._is_loose = is_loose  # because of the items before the last, and so for good
        self._is_shown_loose = items.is_loose
        self._outer = outer
        self._item: OpenItem | None = None
        self._leaf = leaf
        self._html = html
        self._certain = ""
        self._keep(items, lines)

    @classmethod
    def of(
        cls, group: list[Token], html: str, lines: list[str], outer: OuterBlocks, leaf: OpenEnd | None
    ) -> _OpenList | None:
        """Returns the open list if the block is one, and the tail has no definitions."""
        if outer.definitions or not outer.is_certain:
            return None
        items = _Items.of(group, lines)
        is_loose = None if items is None else items.is_loose_for_good(lines)
        return None if items is None or is_loose is None else cls(items, html, lines, is_loose, outer, leaf)

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None if all has to be parsed."""
        if self._take(text):
            return self._html
        cut = self._next_part(text)
        if cut is not None:
            return self._parse_next(cut, text)
        if self._take_apart() and self._take(text):
            return self._html
        return self._parse(self._text + text)

    @property
    def is_verbatim(self) -> bool:
        """Whether the last item ends in code."""
        return self._leaf is not None and self._leaf.is_verbatim

    @property
    def is_in_paragraph(self) -> bool:
        """Whether the last line is certainly text of a paragraph."""
        return self._leaf is not None and self._leaf.is_in_paragraph

    def _take(self, text: str) -> bool:
        html = self._leaf.extend(text) if self._leaf is not None else None
        if html is not None:
            self._text += text
            self._html = html
        return html is not None

    def _take_apart(self) -> bool:
        """Makes the last item the leaf, if it is long and its first lines are whole."""
        opening = self._last_opening
        if self._item is not None or len(self._text) - self._last < LEAST_CONTENTS:
            return False
        source = self._text[self._last :]
        before = "".join([self._opening, self._certain, *self._parts[:-1]])
        looseness = (self._is_loose, self._is_shown_loose)
        if source.count("\n") > 1:
            self._item = OpenItem.of(opening, source, (before, self._closing), looseness, self._outer)
        if self._item is None or self._item.html != self._html:
            self._item = None
            return False
        self._leaf = self._item
        return True

    def _next_part(self, text: str) -> int | None:
        """Returns where, in the text from the last part on, a part begins that can be parsed alone."""
        # The parts before the next one must make the list loose if it is.
        if self._is_shown_loose != (self._is_loose or (self._item is not None and self._item.is_loose)):
            return None
        line = self._text.rfind("\n") + 1
        bare = len(self._text[:line].rstrip(" \t\n"))
        pattern = _ITEM_OF_LOOSE if self._is_shown_loose else _ITEM
        match = pattern.search(self._text + text, max(0, bare - 1))
        return None if match is None else match.end()

    def _parse_next(self, cut: int, text: str) -> str | None:
        begun = cut - len(self._text)  # below 0 if its first characters are there already
        if begun >= 0:
            html = self._leaf.extend(text[:begun]) if self._leaf is not None else None
            if html is None:
                return self._parse(self._text + text)
            self._certain = html[len(self._opening) : len(html) - len(self._closing)]
            self._is_loose = self._is_loose or (self._item is not None and self._item.is_loose)
        elif cut == self._last:
            self._certain += "".join(self._parts[:-1])
        else:
            return self._parse(self._text + text)
        source = (self._text + text)[cut:]
        return self._begin_item(source) or self._parse(source)

    def _begin_item(self, source: str) -> str | None:
        """Begins an item that is one line of text, which needs no parse of its structure; None if it is not one."""
        marker = _ITEM_OF_TEXT.match(source)
        if (
            marker is None
            or "\n" in source
            or self._kind[1:] != (marker[1][-1], None)
            or is_deep(self._outer.level + 2)
        ):
            return None
        opening = Token("list_item_open", "li", 1, map=[0, 1], info=marker[1][:-1], markup=marker[1][-1], block=True)
        paragraph = parse_line(source[marker.end() :], self._outer.definitions)
        paragraph[0].hidden = paragraph[-1].hidden = not self._is_loose
        item = [opening, *paragraph, Token("list_item_close", "li", -1, block=True)]
        self._parts, self._text, self._last, self._last_opening = [render_tokens(item)], source, 0, opening
        self._item = None
        self._html = "".join([self._opening, self._certain, *self._parts, self._closing])
        self._leaf = OpenText([*item, self.group[-1]], 2, self._html, [source], self._outer.definitions)
        self._is_shown_loose = self._is_loose
        return self._html

    def _parse(self, text: str) -> str | None:
        definitions = Definitions(self._outer.definitions.settled, self._outer.definitions)
        groups = split_blocks(parse_tail(text, definitions, self._outer.level))
        lines = text.split("\n")
        if self._outer.is_in_item:
            check_alone(groups, lines)
        items = _Items.of(groups[0], lines) if len(groups) == 1 and not definitions else None
        if items is None or items.kind != self._kind or not items.loosen(self._is_loose):
            return None
        if self._certain and self._is_shown_loose != self._is_loose:
            return None  # the items before are shown otherwise
        self._keep(items, lines)
        self._html = "".join([self._opening, self._certain, *self._parts, self._closing])
        self._leaf = find_open_leaf(items.group, self._html, lines, self._outer)
        self._is_shown_loose = self._is_loose
        return self._html

    def _keep(self, items: _Items, lines: list[str]) -> None:
        """Keeps the parsed parts: those before the last whole one are certain."""
        parts, last = [render_tokens(part) for part in items.parts], items.last_whole(lines)
        self._certain += "".join(parts[:last])
        self._parts = parts[last:]
        start, end = first_line(items.parts[last]), first_line(items.parts[-1])
        self._text = "\n".join(lines[start:])  # from the last whole part on
        self._last = sum(len(line) + 1 for line in lines[start:end])  # where in it the last part begins
        self._last_opening = items.parts[-1][0]
        self._item = None


class _Items:
    """A list taken apart: its items, and the tokens around them."""

    def __init__(self, group: list[Token], parts: list[list[Token]], lines: list[str]) -> None:
        self.group = group
        self.parts = parts
        self.kind = (group[0].type, group[0].markup, group[0].attrs.get("class"))
        self._paragraphs = [token for token in group if token.level == 2 and token.type.startswith("paragraph_")]
        if self._paragraphs:
            self.is_loose = not all(token.hidden for token in self._paragraphs)
        else:
            self.is_loose = self._has_blank(lines)

    @classmethod
    def of(cls, group: list[Token], lines: list[str]) -> _Items | None:
        """Returns the items if the block is a list."""
        starts = [at for at, token in enumerate(group) if token.type == "list_item_open" and token.level == 1]
        ends = [at + 1 for at, token in enumerate(group) if token.type == "list_item_close" and token.level == 1]
        parts = [group[start:end] for start, end in zip(starts, ends, strict=True)]
        return cls(group, parts, lines) if parts else None

    def _has_blank(self, lines: list[str]) -> bool:
        """Whether a blank line stands between items, or between blocks of one item: a list of both is loose."""
        starts = [first_line(part) for part in self.parts[1:]]
        for part in self.parts:
            blocks = [token for token in part if token.level == 2 and token.map is not None and token.nesting >= 0]
            starts += [first_line([token]) for token in blocks[1:]]
        return any(is_blank(lines[start - 1]) for start in starts)

    def around(self) -> tuple[str, str]:
        """Returns the HTML before the parts and behind them."""
        first = next(at for at, token in enumerate(self.group) if token is self.parts[0][0])
        return render_tokens(self.group[:first]), render_tokens(self.group[first + sum(map(len, self.parts)) :])

    def last_whole(self, lines: list[str]) -> int:
        """Returns the number of the last part whose first line is whole, or of the first part."""
        whole = [at for at, part in enumerate(self.parts) if first_line(part) + 1 < len(lines)]
        return whole[-1] if whole else 0

    def is_loose_for_good(self, lines: list[str]) -> bool | None:
        """Whether the parts before the last whole one make the list loose; None if that does not show."""
        last = self.last_whole(lines)
        if not self.is_loose or last == 0:
            return False
        certain = lines[first_line(self.group) : first_line(self.parts[last]) + 1]
        groups = split_blocks(parser().parse("\n".join([*certain, ""]), {"references": Definitions({})}))
        items = _Items.of(groups[0], certain)
        return None if items is None else items.is_loose

    def loosen(self, is_loose: bool) -> bool:
        """Makes the list loose if the items before it are; False if it is loose by itself and they are not."""
        if is_loose:
            for token in self._paragraphs:
                token.hidden = False
        return is_loose or not self.is_loose
