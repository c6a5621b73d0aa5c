"""Top-level blocks of Markdown: their tokens, the line they start on, and where one certainly ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from markdown_it.token import Token

if TYPE_CHECKING:
    from toolcall_nb.incremental_markdown.link_definitions import Definitions

_MARKERS = frozenset("-+*0123456789")
_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]")
_CONTAINERS = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t>]+)*(?:\[[ xX]\][ \t]+)?")
FORMULA = re.compile(rf"{_CONTAINERS.pattern}(\$\$|\\\[)")
"""A line that begins a formula of several lines, perhaps within containers."""
# The pattern begins only where blanks begin, and gives none of them back: a text of line ends alone is read once.
_BEHIND_BLANK = re.compile(r"(?<![ \t\n])[ \t]*+\n[ \t]*+\n[ \t\n]*+(?<=\n)([^ \t\n])")
_BEHIND_LINE = re.compile(r"(?<![ \t\n])[ \t]*+\n[ \t\n]*+(?<=\n)([^ \t\n])")
# Brackets of a task, an alert, a link or a footnote, which are not the label of a definition.
_BRACKETS = re.compile(r"""\[[^\[\]\\]*(?:\](?!:)|\[|\]:[ \t]*[^\s<]\S*[ \t]+[^\s"'(])""")


class NotAlone(Exception):
    """Raised if the contents of a container can't be parsed alone, since they depend on what is around them."""


class OpenEnd:
    """The last block of a text that grows, where more text can be added without parsing all of it again."""

    def __init__(self, group: list[Token], *, ends_with_line: bool = False) -> None:
        self.group = group
        self.ends_with_line = ends_with_line
        """Whether its line, which is its only one, ends it: whatever follows is another block."""

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None, with nothing changed, if only a parse can tell."""
        raise NotImplementedError

    @property
    def is_verbatim(self) -> bool:
        """Whether the text ends in code, where a tab is shown as it is."""
        return False

    @property
    def is_in_paragraph(self) -> bool:
        """Whether the last line, which has not ended, is certainly text of a paragraph."""
        return False

    def next_block(self, gap: str, text: str) -> int | None:
        """Returns where in ``text`` this block is over and another begins, if that is certain.

        ``gap`` stands for the blanks and line ends before ``text``.
        """
        text = gap + text
        if self.ends_with_line:
            match = _BEHIND_LINE.search(text)
            if match is not None and "|" not in text[: match.start(1)]:
                return match.start(1) - len(gap)
        start = behind_blank(text)
        return start - len(gap) if start is not None and is_over(self.group, text[start]) else None


class Contents(Protocol):
    """The growing blocks of a container, as `toolcall_nb.incremental_markdown.growing` makes them."""

    is_loose: bool
    """Whether a blank line stands between two of the blocks."""
    parses: int
    """The number of times that the text was parsed, other than by the open end."""
    begins_with_text: bool
    """Whether the first block is a paragraph without an element."""

    @property
    def html(self) -> str:
        """The HTML of the blocks."""

    @property
    def is_verbatim(self) -> bool:
        """Whether the text ends in code, where a tab is shown as it is."""

    @property
    def is_in_paragraph(self) -> bool:
        """Whether the last line, which has not ended, is certainly text of a paragraph."""

    def feed(self, text: str) -> None:
        """Adds text; raises `NotAlone`, and then the contents are of no more use."""


@dataclass(frozen=True)
class OuterBlocks:
    """The surroundings of the last block of a text that grows."""

    definitions: Definitions
    """The definitions that it was parsed with."""
    level: int
    """The number of blocks around it."""
    is_in_item: bool
    """Whether a list item is around it."""
    is_certain: bool
    """Whether no later text changes where it starts."""
    container: Callable[[int, bool], Contents]
    """Makes the contents of a container: how many blocks it is, and whether paragraphs have no element in it."""


def split_blocks(tokens: Iterable[Token]) -> list[list[Token]]:
    """Returns the tokens of each top-level block."""
    groups: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            groups.append([])
        groups[-1].append(token)
        depth += token.nesting
    return groups


def check_alone(groups: list[list[Token]], lines: list[str]) -> None:
    """Raises `NotAlone` if the blocks, which stand in a list item, hold a quote with a line that is not marked.

    The parser leaves the indentation of such a line in its text, which is then more than these lines show.
    """
    quotes = [token for group in groups for token in group if token.type in ("blockquote_open", "alert_open")]
    for start, end in [token.map or [0, 0] for token in quotes]:
        if not all(line.lstrip(" ").startswith(">") for line in lines[start + 1 : end]):
            raise NotAlone


def first_line(group: list[Token]) -> int:
    """Returns the number of the line that the block starts on."""
    return (group[0].map or [0])[0]


def is_blank(line: str) -> bool:
    """Whether CommonMark sees the line as blank."""
    return not line.strip(" \t")


def behind_blank(text: str, start: int = 0) -> int | None:
    """Returns where in ``text`` the first line begins that is behind a blank one, and is not indented."""
    match = _BEHIND_BLANK.search(text, start)
    return match.start(1) if match is not None else None


def is_over(group: list[Token], character: str) -> bool:
    """Whether a line that begins with ``character``, after a blank one, starts another block, whatever follows on it.

    The block must not be an open fence. After a blank line, a block other than a list continues, if at all, with a
    line that is indented; a list continues with such a line or with a marker (CommonMark, sections 4 and 5).
    """
    if character in " \t\n":
        return False
    return character not in _MARKERS or not group[0].type.endswith("list_open")


def may_define(lines: list[str]) -> bool:
    """Whether the last line may become part of a link definition that began behind the last blank line.

    While a definition is open, its label or title may include lines that are a heading. A list marker at the start
    of a line ends it.
    """
    for line in reversed(lines):
        if is_blank(line):
            return False
        containers = _CONTAINERS.match(line)
        if containers and line.startswith("[", containers.end()) and not _BRACKETS.match(line, containers.end()):
            return True
        if _MARKER.match(line):
            return False
    return False
