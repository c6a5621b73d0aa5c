"""Top-level blocks as the parser gives them: their tokens, their lines, and where one is over for good."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from markdown_it.token import Token

__all__ = ["OpenEnd", "first_line", "is_blank", "is_over", "top_level"]

_MARKERS = frozenset("-+*0123456789")


class OpenEnd(Protocol):
    """A last block that takes up more text."""

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None, and nothing is changed, where only a parse can tell."""

    def tokens(self) -> list[Token] | None:
        """The block's tokens, whose inline content is whole; None where they are not kept."""

    def is_over(self, character: str) -> bool:
        """Whether a line that begins with ``character``, behind a blank one, starts another block for good."""


def top_level(tokens: Iterable[Token]) -> list[list[Token]]:
    """The tokens of each top-level block."""
    groups: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            groups.append([])
        groups[-1].append(token)
        depth += token.nesting
    return groups


def first_line(group: list[Token]) -> int:
    """The number of the line that the block starts on."""
    return (group[0].map or [0])[0]


def is_blank(line: str) -> bool:
    """Whether nothing is on the line, as CommonMark sees it."""
    return not line.strip(" \t")


def is_over(group: list[Token], character: str) -> bool:
    """Whether a line that begins with ``character``, behind a blank one, is not of this block, whatever follows on it.

    The block is not a fence that is open. Behind a blank line, other blocks than a list go on, if at all, with
    a line that is indented, and a list goes on with such a line or with a marker (CommonMark, sections 4 and 5).
    """
    if character in " \t\n":
        return False
    return character not in _MARKERS or not group[0].type.endswith("list_open")
