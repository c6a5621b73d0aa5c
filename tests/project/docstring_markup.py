"""Turns the package's docstrings, which are plain text, into reStructuredText: `to_markup`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

_MARKED = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
_ITEM = re.compile(r"- |\d\. ")
_COLUMNS = re.compile(r"\S+(?: \S+)* {2,}\S")


def to_markup(lines: Sequence[str]) -> list[str]:
    """Returns the lines of a docstring as reStructuredText.

    ``code`` and `names` become code, tables and aligned columns keep their form, and any other character stands for
    itself.
    """
    paragraphs = (list(group) for is_text, group in groupby(lines, lambda line: bool(line.strip())) if is_text)
    return [line for paragraph in paragraphs for line in [*_paragraph(paragraph), ""]]


def _paragraph(lines: list[str]) -> Iterator[str]:
    if lines[0].startswith((" ", "|")) or all(_COLUMNS.match(line) for line in lines):
        indent = min(len(line) - len(line.lstrip()) for line in lines)
        yield from (".. code-block:: text", "", *(f"   {line[indent:]}" for line in lines))
        return
    for number, line in enumerate(_escaped("\n".join(lines)).split("\n")):
        if number and _ITEM.match(line):
            yield ""
        yield re.sub(r"::$", ":", line)


def _escaped(text: str) -> str:
    """Returns the text with marks as code, and without a meaning of other characters."""
    pieces = _MARKED.split(text)
    return "".join(
        _code(piece) if number % 2 else re.sub(r"([\\*_|`])", r"\\\1", piece) for number, piece in enumerate(pieces)
    )


def _code(marked: str) -> str:
    return f"``{marked.strip('`')}``\\ "
