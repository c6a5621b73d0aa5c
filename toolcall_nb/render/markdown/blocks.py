"""Top-level blocks of Markdown: their tokens, the line they start on, and where one certainly ends."""

from __future__ import annotations

from collections.abc import Iterable

from markdown_it.token import Token

__all__ = ["OpenEnd", "first_line", "is_blank", "is_over", "split_blocks"]

_MARKERS = frozenset("-+*0123456789")


class OpenEnd:
    """The last block of a text that grows, where more text can be added without parsing all of it again."""

    def __init__(self, group: list[Token]) -> None:
        self.group = group

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None, with nothing changed, if only a parse can tell."""
        raise NotImplementedError

    def tokens(self) -> list[Token] | None:
        """Returns the block's tokens, with the whole inline content; None if they are not kept."""
        return None

    def is_over(self, character: str) -> bool:
        """Whether a line that begins with ``character``, after a blank one, certainly starts another block."""
        return is_over(self.group, character)


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


def first_line(group: list[Token]) -> int:
    """Returns the number of the line that the block starts on."""
    return (group[0].map or [0])[0]


def is_blank(line: str) -> bool:
    """Whether CommonMark sees the line as blank."""
    return not line.strip(" \t")


def is_over(group: list[Token], character: str) -> bool:
    """Whether a line that begins with ``character``, after a blank one, starts another block, whatever follows on it.

    The block must not be an open fence. After a blank line, a block other than a list continues, if at all, with a
    line that is indented; a list continues with such a line or with a marker (CommonMark, sections 4 and 5).
    """
    if character in " \t\n":
        return False
    return character not in _MARKERS or not group[0].type.endswith("list_open")
