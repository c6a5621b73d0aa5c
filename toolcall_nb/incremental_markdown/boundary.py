"""Finds where the tail of a growing text begins: the last line where a block, or a definition, certainly starts."""

from __future__ import annotations

from markdown_it.token import Token

from toolcall_nb.incremental_markdown.blocks import FORMULA, first_line, is_blank, is_over, may_define
from toolcall_nb.incremental_markdown.link_definitions import Definitions

_CLOSERS = {"$$": "$$", "\\[": "\\]"}


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
    openers = {at: found for at in range(start, len(lines)) if (found := FORMULA.match(lines[at]))}
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
