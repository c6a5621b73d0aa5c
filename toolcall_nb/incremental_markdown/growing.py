"""The blocks of a text that grows: of a whole document, or of one container (a quote, a list item) in it.

`GrowingBlocks` finds what is certain and keeps the open end, as `toolcall_nb.incremental_markdown` explains;
`ContainerBlocks` are those of a container, without the marks that the container puts before each line.
"""

from __future__ import annotations

import re
from collections import ChainMap
from typing import TYPE_CHECKING

from toolcall_nb.incremental_markdown.blocks import (
    FORMULA,
    NotAlone,
    OpenEnd,
    OuterBlocks,
    check_alone,
    first_line,
    is_blank,
    is_over,
    may_define,
    split_blocks,
)
from toolcall_nb.incremental_markdown.flavor import is_closed, is_deep
from toolcall_nb.incremental_markdown.link_definitions import (
    Awaiting,
    Definitions,
    may_refer,
    parse_tail,
    render_tokens,
)
from toolcall_nb.incremental_markdown.open_list import find_open_end
from toolcall_nb.incremental_markdown.open_paragraph import parse_one_line

if TYPE_CHECKING:
    from markdown_it.token import Token

# The beginning of a number behind a blank line.
_BEGUN_NUMBER = re.compile(r"(?<![ \t\n])[ \t]*+\n[ \t]*+\n[ \t\n]*+(?<=\n)(\d{1,9})\Z")
_DIGITS = re.compile(r"\d{1,9}")
_DIGIT = frozenset("0123456789")
_BLANKS = ("", " ", "\t", "\n")
_CLOSERS = {"$$": "$$", "\\[": "\\]"}


class GrowingBlocks:
    """Takes text piece by piece, and parses only the tail: the blocks that are not settled.

    A subclass keeps the HTML of the blocks, which it gets by number from ``_show``.
    """

    _level = 0  # how many blocks are around these
    _is_in_item = False
    _is_tight = False  # whether paragraphs are shown without their element, as in a tight list

    def __init__(self, definitions: Definitions) -> None:
        self._count = 0  # of the blocks
        self._settled = 0  # how many of the blocks are settled
        self._tail: list[str] = []  # the text of the others, in pieces
        self._gap = ""  # stands for the blanks and line ends at the end of the text
        self._groups: list[list[Token]] = []  # the tokens of the tail's blocks, from the last parse
        self._lines_before = 0  # how many lines of that parse are before the tail
        self._open: OpenEnd | None = None
        # The digits behind the open end, a list, that are a paragraph until they become the number of its next item.
        self._digits = ""
        self._definitions = definitions
        self._awaiting = Awaiting(self._level)
        self._before_tail: Token | None = None  # the last token before the tail
        self._is_loose_before = False  # whether a blank line stands between blocks before the tail
        self.parses = 0
        """The number of times that the tail was parsed."""
        self.is_loose = False
        """Whether a blank line stands between two of the blocks."""

    def _show(self, block: int, html: str) -> None:
        """Sets the HTML of a block; its number may be that of the next new block."""
        raise NotImplementedError

    def _truncate(self, count: int) -> None:
        """Removes the blocks from number ``count`` on."""
        raise NotImplementedError

    def _redefine(self, definitions: Definitions) -> list[str]:
        """Takes the definitions of the tail; returns the labels whose definition has changed."""
        labels = definitions.differing(self._definitions)
        self._definitions = definitions
        self._define_again(labels)
        return labels

    def _define_again(self, labels: list[str]) -> None:
        """Parses again the settled blocks that refer to labels whose definition has changed."""
        for block in self._awaiting.referring(labels):
            self._show(block, self._awaiting.render(block, self._definitions))

    def _redefine_inside(self, labels: list[str], definitions: Definitions) -> None:
        """Takes the definitions of ``labels`` from the container that the tail ends in."""
        if len(self._groups) > 1:
            raise NotAlone
        self._definitions.take(labels, definitions)
        self._define_again(labels)

    def _settle_blocks(self, count: int, line: int | None) -> None:
        """Settles the next ``count`` blocks and the definitions before ``line`` of the tail (None: all of them)."""
        if self._definitions.asked and not self._is_in_item:
            self._watch(count)
        self._settled += count
        self._awaiting.forget(self._definitions.settle_before(line))

    def _watch(self, count: int) -> None:
        """Watches those of the next ``count`` blocks that refer to labels which are not settled."""
        lines = "".join(self._tail).split("\n")
        starts = [first_line(group) - self._lines_before for group in self._groups]
        for number, (start, end) in enumerate(zip(starts[:count], [*starts[1:], len(lines)], strict=False)):
            source = "\n".join(lines[start:end])
            if may_refer(source):
                block = self._settled + number
                self._awaiting.watch(block, source, self._definitions.asked)
                if len(starts) > 1:  # only some of the labels are this block's
                    self._awaiting.render(block, self._definitions)

    def _shown_source(self, source: str) -> str:
        return source

    def _read(self, source: str) -> tuple[list[list[Token]], list[str], Definitions]:
        """Parses and renders the tail."""
        definitions = self._definitions.for_parse()
        line = parse_one_line(source, definitions) if "\n" not in source and not is_deep(self._level) else None
        if line is not None:
            return [line], self._render([line]), definitions
        groups = split_blocks(parse_tail(source, definitions, self._level))
        if self._is_in_item:
            check_alone(groups, source.split("\n"))
        return groups, self._render(groups), definitions

    def _render(self, groups: list[list[Token]]) -> list[str]:
        if not self._is_tight:
            return [render_tokens(group) for group in groups]
        for group in groups:
            if group[0].type == "paragraph_open":
                group[0].hidden = group[-1].hidden = True
        before = [self._before_tail, *[group[-1] for group in groups]]
        # A block behind a paragraph without an element begins on a line of its own.
        return [
            render_tokens([last, *group] if last is not None and last.hidden else group)
            for last, group in zip(before, groups, strict=False)
        ]

    @property
    def is_verbatim(self) -> bool:
        """Whether the text ends in code, where a tab is shown as it is."""
        return not self._digits and self._open is not None and self._open.is_verbatim

    @property
    def is_in_paragraph(self) -> bool:
        """Whether the last line, which has not ended, is certainly text of a paragraph."""
        if self._digits or "\n" in self._gap:
            return False
        return self._open is not None and self._open.is_in_paragraph

    def _add(self, text: str) -> None:
        """Adds ``text``: the open end takes what continues the last block, and only a block that begins is parsed."""
        if not text.strip(" \t\n") and (not self._count or self._has_ended()):
            self._append(text)
            return
        may_be_over = self._open is not None and ("\n" in text or "\n" in self._gap)
        start = self._open.next_block(self._gap, text) if self._open and may_be_over else None
        if start is not None and self._extend(text[:start]):
            self._settle_all()
            self._tail = [text[start:]]
            self._parse()
        elif not (text[-1] in _DIGIT and self._add_digits(text)) and not self._extend(text):
            self._tail.append(text)
            self._parse()

    def _has_ended(self) -> bool:
        """Whether a line end stands behind the last block, and more blank lines add nothing to it."""
        if self._open is not None or "\n" not in self._gap or not self._groups:
            return False
        group = self._groups[-1]
        last = next(token for token in reversed(group) if token.nesting >= 0)
        return last.type == "inline" or (len(group) == 1 and last.type == "fence" and is_closed(last))

    def _add_digits(self, text: str) -> bool:
        """Adds ``text`` if it ends in digits that a list may go on with, and shows them as a paragraph."""
        if self._digits:
            start = 0
        else:
            match = _BEGUN_NUMBER.search(self._gap + text)
            if match is None or not self._may_have_digits():
                return False
            start = len(text) - len(match[1])
            if start and not self._extend(text[:start]):
                return False
        digits = self._digits + text[start:]
        if not _DIGITS.fullmatch(digits):
            return False
        self._show(self._count - bool(self._digits), f"<p>{digits}</p>\n")
        self._digits = digits
        self._append(text[start:])
        return True

    def _may_have_digits(self) -> bool:
        """Whether the open end is a list by numbers, and a paragraph is shown here as anywhere."""
        return (
            self._open is not None
            and self._open.group[0].type == "ordered_list_open"
            and not self._open.is_verbatim
            and not self._is_tight
            and not is_deep(self._level)
        )

    def _extend(self, text: str) -> bool:
        """Adds ``text`` without a parse of the tail; False if the last block is not all that differs."""
        html = self._open.extend(self._digits + text) if self._open is not None else None
        if html is None:
            return False
        if self._digits:
            self._truncate(self._count - 1)
            self._digits = ""
        self._show(self._count - 1, html)
        self._append(text)
        return True

    def _append(self, text: str) -> None:
        """Adds ``text`` to the tail, and the blanks at its end to the gap."""
        self._tail.append(text)
        if text[-1:] not in _BLANKS:
            self._gap = ""
            return
        bare = text.rstrip(" \t\n")
        gap = text[len(bare) :] if bare else self._gap + text
        # As few blanks as tell the same: whether a line is blank, and whether another has begun.
        self._gap = "\n" * min(gap.count("\n"), 2) + (" " if gap and gap[-1] != "\n" else "")

    def _parse(self) -> None:
        """Parses the tail again, and settles the blocks that have become certain."""
        self.parses += 1
        source = "".join(self._tail)
        source_as_shown = self._shown_source(source)
        groups, blocks, definitions = self._read(source_as_shown)
        self._redefine(definitions)
        for at, html in enumerate(blocks, self._settled):
            self._show(at, html)
        self._truncate(self._settled + len(blocks))
        lines = source_as_shown.split("\n")
        self._tail, self._gap, self._digits = [], "", ""
        self._append(source)
        self._groups, self._lines_before = groups, 0
        certain = last_certain(groups, lines, definitions)
        self._open = self._find_open_end(blocks, lines, certain) if source_as_shown is source else None
        loose = [number for number in range(1, len(groups)) if is_blank(lines[first_line(groups[number]) - 1])]
        self.is_loose = self._is_loose_before or bool(loose)
        if certain is not None:
            self._is_loose_before = self._is_loose_before or bool(loose and loose[0] <= certain[0])
            self._settle(*certain, lines)

    def _find_open_end(self, blocks: list[str], lines: list[str], certain: tuple[int, int] | None) -> OpenEnd | None:
        if not self._groups or (certain is not None and certain[0] == len(self._groups)):
            return None
        group = self._groups[-1]
        start, end = group[0].map or [0, 0]
        if self._definitions.lines and self._definitions.lines[-1][0] >= end:  # its title may follow
            return None
        is_certain = start in (0, certain and certain[1]) or is_blank(lines[start - 1])
        outer = OuterBlocks(self._definitions, self._level, self._is_in_item, is_certain, self._container)
        return find_open_end(group, blocks[-1], lines, outer)

    def _container(self, level: int, is_tight: bool) -> ContainerBlocks:
        return ContainerBlocks(self, level, is_tight)

    def _settle(self, at: int, line: int, lines: list[str]) -> None:
        """Settles the first ``at`` blocks of the tail, which now begins at its ``line``."""
        if at:
            self._before_tail = self._groups[at - 1][-1]
        self._settle_blocks(at, line)
        self._groups, self._lines_before = self._groups[at:], line
        source = "".join(self._tail)
        self._tail = [source[sum(len(text) + 1 for text in lines[:line]) :]]

    def _settle_all(self) -> None:
        """Settles all blocks: another one begins at the end of the text."""
        self._before_tail = self._groups[-1][-1]
        self._settle_blocks(len(self._groups), None)
        self._groups = []
        self._is_loose_before = self._is_loose_before or self._gap.count("\n") > 1


class ContainerBlocks(GrowingBlocks):
    """The blocks of a quote or list item that grows, ``level`` blocks deep in ``outer``.

    What a quote defines holds for the blocks around it too, which are told of each change. An item defines nothing:
    with a definition in it, the whole list is parsed.
    """

    def __init__(self, outer: GrowingBlocks, level: int, is_tight: bool) -> None:
        self._level = outer._level + level
        super().__init__(Definitions(ChainMap({}, outer._definitions.settled), outer._definitions))
        self._outer = outer
        self._is_in_item = outer._is_in_item or level > 1
        self._is_tight = is_tight
        self._blocks: list[str] = []
        self.begins_with_text = False
        """Whether the first block is a paragraph without an element."""

    @property
    def html(self) -> str:
        """The HTML of the blocks."""
        return "".join(self._blocks)

    def feed(self, text: str) -> None:
        """Adds text; raises `NotAlone`, and then these blocks are of no more use."""
        if text:
            self._add(text)
        if not self._settled and self._groups:
            self.begins_with_text = self._groups[0][0].hidden

    def _show(self, block: int, html: str) -> None:
        self._blocks[block : block + 1] = [html]
        self._count = len(self._blocks)

    def _truncate(self, count: int) -> None:
        del self._blocks[count:]
        self._count = count

    def _redefine(self, definitions: Definitions) -> list[str]:
        if self._is_in_item and definitions:
            raise NotAlone
        labels = super()._redefine(definitions)
        if labels:
            self._outer._redefine_inside(labels, definitions)
        return labels

    def _redefine_inside(self, labels: list[str], definitions: Definitions) -> None:
        super()._redefine_inside(labels, definitions)
        self._outer._redefine_inside(labels, definitions)

    def _settle_blocks(self, count: int, line: int | None) -> None:
        if count and not self._settled:
            self.begins_with_text = self._groups[0][0].hidden
        super()._settle_blocks(count, line)


def last_certain(groups: list[list[Token]], lines: list[str], definitions: Definitions) -> tuple[int, int] | None:
    """Returns how many blocks are before the last line where one certainly starts, or a definition, and that line.

    None if that is the first line. Behind a blank line, its first line must be whole. Behind another line, so must be
    the next (which may make the first one the head of a table), and no definition or formula may be open there.
    """
    defined = _last_definition(groups, lines, definitions)
    for at in range(len(groups) - 1, -1, -1):
        line = first_line(groups[at])
        if line <= defined:
            return (at + 1, defined) if defined else None
        if is_blank(lines[line - 1]):
            if line + 1 < len(lines) or (at and is_over(groups[at - 1], lines[line][:1])):
                return at, line
        elif groups[at][0].type == "tc_math_block" and (groups[at][0].map or [0, 0])[1] >= len(lines):
            continue  # text behind its end makes it a part of the paragraph before it
        elif line + 2 < len(lines) and not may_define(lines[:line]) and not _has_open_formula(groups, lines[:line]):
            return at, line
    return (0, defined) if defined else None


def _last_definition(groups: list[list[Token]], lines: list[str], definitions: Definitions) -> int:
    """Returns the last line where a definition starts for good; 0 if there is none.

    It has the bracket at its very beginning, so it is in no other block. It follows a blank line and is whole, or it
    follows another definition: a bracket continues neither a definition that is whole nor a table. The first of those
    that follow each other must start for good as well.
    """
    starts = [(start, end) for start, end in definitions.lines if lines[start].startswith("[")]
    for last in range(len(starts) - 1, -1, -1):
        first = last
        while first > 0 and starts[first - 1][1] == starts[first][0]:
            first -= 1
        line = starts[first][0]
        if line and is_blank(lines[line - 1]):
            is_certain = first < last or line + 1 < len(lines)
        else:
            is_certain = first < last and not (may_define(lines[:line]) or _has_open_formula(groups, lines[:line]))
        if is_certain:
            return starts[last][0]
    return 0


def _has_open_formula(groups: list[list[Token]], lines: list[str]) -> bool:
    """Whether a later line may make a formula of the last lines, which are whole. ``groups`` are all blocks."""
    start = next((at + 1 for at in range(len(lines) - 1, -1, -1) if is_blank(lines[at])), 0)
    openers = {at: match for at in range(start, len(lines)) if (match := FORMULA.match(lines[at]))}
    if not openers:
        return False
    # The last line of a formula has the same mark as the first, and opens no other one.
    ends = {token.map[1] - 1 for group in groups for token in group if token.type == "tc_math_block" and token.map}
    closers: set[str] = set()
    for at in range(min(openers), len(lines)):
        closers = {closer for closer in closers if closer not in lines[at]}
        opener = openers.get(at)
        if opener is not None and at not in ends and _CLOSERS[opener[1]] not in lines[at][opener.end() :]:
            closers.add(_CLOSERS[opener[1]])
    return bool(closers)
