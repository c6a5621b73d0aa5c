"""The grammar of a callout, line by line: `HeaderGrammar` for its first line, `body_line` for the others.

Every reader of callouts in this package uses it.

A callout is a top-level blockquote whose first line is a header (seed 000; design.md, "Callouts"):

    > [!tool search call_1]- All about cats
    > input:
    >   query: cats

Header: up to three spaces, ``>``, at most one space, ``[!``, the kind as a whole word in any case, values,
``]``; then, as in Obsidian, ``+`` (open) or ``-`` (folded), and a title. Values are separated by blanks and
quoted as in a shell; ``key=value`` is an assignment, anything else is positional.

Body: the lines after it that begin with ``>``, up to the next header. There is no lazy continuation.

Lines end with LF, CRLF or CR, as in CommonMark. `toolcall_nb.markdown.plugin` (in a parse) and
`toolcall_nb.markdown.scanner` (in a stream) decide whether a header is at the top level of its document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct, field

MAX_HEADER = 4096
"""The longest header line, in characters. A longer line is text, so that a stream never withholds more."""

_TOKEN = r"""(?:[^\s\]"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+"""
_VALUES = re.compile(rf"(?P<values>(?:[ \t]+{_TOKEN})*)[ \t]*\](?P<fold>[+-]?)(?:[ \t]+(?P<title>\S.*?))?[ \t]*")
_QUOTED = re.compile(r"""\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'""")
_ASSIGNMENT = re.compile(r"([A-Za-z_][\w-]*)=(.*)", re.DOTALL)
_BODY = re.compile(r" {0,3}>[ \t]?")
_SIMPLE_VALUE = re.compile(r"[^\s\]\"'\\=]+")


class Header(Struct, frozen=True):
    """The values of a callout's first line. ``assigned`` has lower-case keys; of equal keys, it holds the first."""

    kind: str
    positional: tuple[str, ...] = ()
    assigned: dict[str, str] = field(default_factory=dict)
    open: bool | None = None
    title: str | None = None


class HeaderGrammar:
    """Reads headers of the given kinds."""

    def __init__(self, kinds: Iterable[str]) -> None:
        words = sorted(kinds, key=len, reverse=True)
        self._start = re.compile(rf" {{0,3}}> ?\[!({'|'.join(map(re.escape, words))})(?=[ \t\]])", re.IGNORECASE)
        self._begun = re.compile(rf" {{0,3}}(?:> ?(?:{'|'.join(map(_prefixes, words))})?)?", re.IGNORECASE)

    def starts(self, line: str) -> re.Match[str] | None:
        """Matches the beginning of a header line, including its kind; the rest may still be unreadable."""
        return self._start.match(line)

    def may_start(self, line: str) -> bool:
        """Whether ``line``, which is not complete, may still become a header."""
        if len(line) > MAX_HEADER:
            return False
        return self._begun.fullmatch(line) is not None or self._start.match(line) is not None

    def read(self, line: str) -> Header | None:
        """Reads the header in ``line`` (without its line ending); None if it is not a header."""
        start = self._start.match(line)
        if start is None or len(line) > MAX_HEADER:
            return None
        values = _VALUES.fullmatch(line, start.end())
        if values is None:
            return None
        positional: list[str] = []
        assigned: dict[str, str] = {}
        for token in re.findall(_TOKEN, values["values"]):
            assignment = _ASSIGNMENT.fullmatch(token)
            value = _QUOTED.sub(_unquote, assignment[2] if assignment else token)
            if not assignment:
                positional.append(value)
            elif value.strip():
                assigned.setdefault(assignment[1].lower(), value)
        is_open = {"+": True, "-": False}.get(values["fold"])
        return Header(start[1].lower(), tuple(positional), assigned, is_open, values["title"])


def body_line(line: str) -> str | None:
    """Returns a body line without its marker; None if the line ends the callout."""
    marker = _BODY.match(line)
    return None if marker is None else line[marker.end() :]


def quote_value(value: str) -> str | None:
    """Writes ``value`` as a positional header value; returns None if a header cannot hold it."""
    if not value.isprintable() or not value.strip() or len(value) > MAX_HEADER // 8:
        return None
    if _SIMPLE_VALUE.fullmatch(value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def _unquote(match: re.Match[str]) -> str:
    escaped, double, single = match.groups()
    if double is not None:
        return re.sub(r"\\(.)", r"\1", double)
    return single if single is not None else escaped


@lru_cache
def _prefixes(word: str) -> str:
    """Returns a pattern for every beginning of ``[!word``."""
    pattern = ""
    for character in reversed(f"[!{word}"):
        pattern = rf"(?:{re.escape(character)}{pattern})?"
    return pattern
