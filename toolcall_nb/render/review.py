"""Arguments as a person reads them before a call runs: all of them, in lines that can be counted as seen.

`review` serves the card and the terminal. It folds nothing: what is not drawn is said in `Review.hidden`, and then the
call cannot be approved as one that was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from toolcall_nb.core.events import Json
from toolcall_nb.core.text import MAX_LEVELS
from toolcall_nb.render.yaml_like import Bounds, Entry, Token, counted, draw_value, more

__all__ = ["LINE", "Review", "review"]

LINE = 160
"""How many characters a line of a review has at most: so it fits into a small window, and can be seen whole."""
LINES = 5_000
CHARACTERS = 200_000
_BLANK_LINES = 2
"""More blank lines than these are counted instead of drawn."""
_MANY_BLANKS = re.compile(r"[ \t]{80,}")  # they could fill a line


class Review(NamedTuple):
    """All that there is to be seen of arguments.

    Each entry is a line with its end, or a part of a long line; what cannot be seen is written out in it. ``hidden``
    says how much is not drawn, and is empty where all is.
    """

    entries: tuple[Entry, ...]
    hidden: str


def review(value: Json, lines: int = LINES, characters: int = CHARACTERS) -> Review:
    """The value, drawn as in a card. Many blanks, and many blank lines, are counted instead of drawn."""
    bounds = Bounds(characters, rows=lines, depth=2 * MAX_LEVELS, key=characters)
    drawn = draw_value(value, bounds) if value != {} else []
    hidden = [text.strip() for entry in drawn for kind, text in entry.tokens if kind == "c"]
    parts = [part for line in _compacted(_lines(drawn)) for part in _parts(line)]
    if len(parts) > lines:
        hidden.insert(0, more(len(parts) - lines, "lines"))
        parts = [*parts[:lines], [("c", hidden[0])]]
    return Review(tuple(map(Entry.of_written, parts)), ", ".join(words.removeprefix("… ") for words in hidden))


def _lines(entries: Iterable[Entry]) -> Iterator[list[Token]]:
    """The tokens of each line, without its end."""
    for entry in entries:
        line: list[Token] = []
        for kind, text in entry.tokens:
            first, *rest = text.split("\n")
            line.append((kind, first))
            for piece in rest:
                yield line
                line = [(kind, piece)]
        yield line


def _compacted(lines: Iterable[list[Token]]) -> Iterator[list[Token]]:
    """The lines, and a remark for blank ones where many follow each other."""
    blank: list[list[Token]] = []
    for line in lines:
        if not any(text.strip(" \t") for _, text in line):
            blank.append(line)
            continue
        yield from _blank(blank)
        blank = []
        yield line
    yield from _blank(blank)


def _blank(lines: list[list[Token]]) -> Iterator[list[Token]]:
    if len(lines) > _BLANK_LINES:
        yield [("c", f"… {counted(len(lines), 'blank lines')} …")]
    else:
        yield from ([] for _ in lines)


def _parts(line: Iterable[Token]) -> Iterator[list[Token]]:
    """The line in parts of at most `LINE` characters; its end is in the last one."""
    part: list[Token] = []
    room = LINE
    for kind, text in _without_blanks(line):
        while len(text) > room:
            part.append((kind, text[:room]))
            yield part
            part, text, room = [], text[room:], LINE
        part.append((kind, text))
        room -= len(text)
    yield [*part, ("", "\n")]


def _without_blanks(line: Iterable[Token]) -> Iterator[Token]:
    """The tokens, with a remark for blanks where many follow each other."""
    for kind, text in line:
        place = 0
        for found in _MANY_BLANKS.finditer(text):
            yield kind, text[place : found.start()]
            yield "c", f"… {counted(len(found[0]), 'blanks')} …"
            place = found.end()
        yield kind, text[place:]
