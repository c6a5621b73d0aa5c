"""The end of a text that grows, where more of it can be taken up without parsing the whole tail.

Each class stands for one way that the last top-level block may be open. `open_end` says which holds, after a parse;
``extended`` then takes more text and returns the block's HTML, or None where only a parse of the tail can tell. A
class says in its docstring why the result is that of the parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from markdown_it.common.utils import escapeHtml, mdTrim
from markdown_it.token import Token

from toolcall_nb.markdown.definitions import Definitions, inline_again, rendered
from toolcall_nb.markdown.flavor import is_closed, parser

__all__ = ["OpenEnd", "first_line", "open_end", "top_level"]

# The parser stops filling up short rows of a table at 65,536 cells.
_MOST_CELLS = 30_000

_FENCE_END = "</code></pre>\n"

# A line that starts like this is text whatever follows on it: no marker of a list, a fence, a rule, a definition.
_TEXT_LINE = re.compile(r"[^\W\d_]|\d+[^\W\d_]|\*{1,3}[^\W_]|_{1,3}[^\W_]|`{1,2}[^`\s]|~~[^\W_]")
_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]")
_CONTAINERS = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t>]+)*")
# Brackets that are no label of a definition: of a task, an alert, a link.
_BRACKETS = re.compile(r"\[[^\[\]\\]*\](?!:)")
# Characters that mean nothing to the inline parser, unless in a link or a definition that is open: the second set.
_INERT = re.compile(r"(?:[^\W_]|[ ,.:?/%@+=-])+")
_INERT_WITHOUT_BRACKETS = re.compile(r"(?:[^\W_]|[ ,.:?/%@+=\"'()-])+")
_WORD_END = re.compile(r"[^\W_]\Z")


class OpenEnd(Protocol):
    """A last block that takes up more text."""

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None, and nothing is changed, where only a parse can tell."""
        ...


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


def open_end(group: list[Token], html: str, lines: list[str], definitions: Definitions) -> OpenEnd | None:
    """How more text can be taken up behind ``group``, the last top-level block of ``lines``, without parsing it all.

    ``html`` is the block's, ``definitions`` those that it was parsed with.
    """
    leaf = _open_leaf(group, html, lines, definitions)
    return _OpenSeries.of(group, lines, definitions, leaf) or leaf


def first_line(group: list[Token]) -> int:
    """The number of the line that the block starts on."""
    return (group[0].map or [0])[0]


def _open_leaf(group: list[Token], html: str, lines: list[str], definitions: Definitions) -> OpenEnd | None:
    last = len(group) - 1
    while last and group[last].nesting < 0:
        last -= 1
    token = group[last]
    if token.type == "fence" and last == 0:
        return _OpenFence.of(token, html, lines)
    if token.type != "inline":
        return None
    if len(lines) > 2 and _is_blank(lines[-1]) and _is_blank(lines[-2]):
        return _OpenGap(html)
    return _OpenText.of(group, last, html, lines, definitions)


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")


class _OpenGap:
    """A blank line behind text: more blank space adds nothing. (Behind code it may be part of the code.)"""

    def __init__(self, html: str) -> None:
        self._html = html

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where only a parse can tell."""
        return None if text.strip(" \t\n") else self._html


class _OpenText:
    """A paragraph or heading that the text ends in, at any depth of lists and quotes.

    Its last line starts as text, so nothing on that line changes the structure, save that a formula's closer at its
    end may end a block of lines, and a quote or bracket a definition of several lines, which until then was text.

    Characters that are inert to the inline parser go to the HTML as they are, once they follow a word: before, they
    may decide over a delimiter. Other characters have the paragraph's inline content parsed, and nothing else.
    """

    def __init__(self, head: str, inline: str, closers: str, content: str, definitions: Definitions) -> None:
        self._head = head
        self._inline = inline  # HTML of the content, without the blanks at its end
        self._closers = closers
        self._content = content
        self._definitions = definitions
        self._blanks = ""
        self._inert = _inert_behind(content)

    @classmethod
    def of(
        cls, group: list[Token], leaf: int, html: str, lines: list[str], definitions: Definitions
    ) -> _OpenText | None:
        """The open text, if the content of the token at ``leaf`` goes on where the last line ends."""
        token = group[leaf]
        line = token.content.rpartition("\n")[2]
        is_last = (token.map or [0, 0])[1] == len(lines) and lines[-1].endswith(line)
        is_text = group[leaf - 1].type in ("paragraph_open", "heading_open") and _TEXT_LINE.match(line)
        if not is_last or not is_text or _may_define(lines):
            return None
        inline, closers = rendered([token]), rendered(group[leaf + 1 :])
        return cls(html[: len(html) - len(inline) - len(closers)], inline, closers, token.content, definitions)

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where only a parse can tell."""
        content = self._content + text
        if self._inert is not None and self._inert.fullmatch(text):
            self._append(self._blanks + text)
        # A heading gives up the hashes at its end, a formula's closer may make a block of this line and those before.
        elif "\n" in text or self._closers.startswith("</h") or content.rstrip().endswith(("$$", "\\]")):
            return None
        else:
            self._parse(content)
        self._content = content
        return self._head + self._inline + self._closers

    def _append(self, text: str) -> None:
        """Takes up inert text; blanks at the end show only when something follows."""
        shown = text.rstrip(" ")
        self._inline += escapeHtml(shown)
        self._blanks = text[len(shown) :]

    def _parse(self, content: str) -> None:
        token = Token("inline", "", 0, content=mdTrim(content))
        inline_again([token], self._definitions)
        self._inline = rendered([token])
        self._blanks = ""
        self._inert = _inert_behind(content)


def _may_define(lines: list[str]) -> bool:
    """Whether the last line may come to belong to a link definition: one that began behind the last blank line.

    A definition's label or title may run over lines that are a heading as long as it is open. A list marker at the
    start of a line ends it.
    """
    for line in reversed(lines):
        if _is_blank(line):
            return False
        containers = _CONTAINERS.match(line)
        if containers and line.startswith("[", containers.end()) and not _BRACKETS.match(line, containers.end()):
            return True
        if _MARKER.match(line):
            return False
    return False


def _inert_behind(content: str) -> re.Pattern[str] | None:
    """What is inert behind ``content``: nothing, where it does not end in a word."""
    if not _WORD_END.search(content):
        return None
    return _INERT if "[" in content else _INERT_WITHOUT_BRACKETS


class _OpenFence:
    """A top-level fence, not indented, that the text ends in: its lines are shown as they are until one closes it.

    The parser leaves out a last line of blanks that no line end follows, so these wait for what follows.
    """

    def __init__(self, head: str, markup: str, line: str) -> None:
        self._head = head
        self._markup = markup
        self._line = line  # so far
        self._blanks = "" if line.strip(" \t") else line

    @classmethod
    def of(cls, token: Token, html: str, lines: list[str]) -> _OpenFence | None:
        """The open fence, if its first line is whole, and it is neither closed nor takes blanks from its lines."""
        start = (token.map or [0])[0]
        if start + 1 >= len(lines) or not lines[start].startswith(token.markup) or is_closed(token):
            return None
        if "|" in token.info:  # the next line may make it the head of a table
            return None
        return cls(html.removesuffix(_FENCE_END), token.markup, lines[-1])

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where a line may close the fence."""
        *lines, last = (self._line + text).split("\n")
        if any(self._may_close(line) for line in (*lines, last)):
            return None
        shown = self._blanks + text
        self._line = last
        self._blanks = "" if last.strip(" \t") else last
        self._head += escapeHtml(shown[: len(shown) - len(self._blanks)])
        return self._head + _FENCE_END

    def _may_close(self, line: str) -> bool:
        line = line.strip(" \t")
        return line.startswith(self._markup) and not line.strip(self._markup[0])


class _OpenSeries:
    """A top-level list or table that the text ends in: of its items or rows, only those from the last on are parsed.

    The last is the last one whose first line is whole: it starts there for good, so those before it are certain. For
    a row, the head of the table is parsed with it. What a later item changes in those before is told by the parse of
    the later ones alone: it makes the list loose, or one of tasks; then, and where a definition comes in, all is
    parsed again.

    The series must start behind a blank line: there is no formula before it, of which its lines may become a part.
    """

    def __init__(
        self, series: _Series, lines: list[str], is_loose: bool, definitions: Definitions, leaf: OpenEnd | None
    ) -> None:
        start, last = first_line(series.group), series.last_whole(lines)
        self._opening, self._closing = series.around()
        self._kind = series.kind
        self._is_loose = is_loose  # by the items before the last, and so for good
        self._head = "".join(f"{line}\n" for line in lines[start : start + series.head])
        self._certain = "".join(rendered(part) for part in series.parts[:last])
        self._size = last
        self._text = "\n".join(lines[first_line(series.parts[last]) :])  # from the last item or row on
        self._definitions = definitions
        self._leaf = leaf

    @classmethod
    def of(
        cls, group: list[Token], lines: list[str], definitions: Definitions, leaf: OpenEnd | None
    ) -> _OpenSeries | None:
        """The open series, if the block is one, and nothing in the tail is defined."""
        start = first_line(group)
        if definitions or (start and not _is_blank(lines[start - 1])):
            return None
        series = _Series.of(group)
        is_loose = None if series is None else series.is_loose_for_good(lines)
        return None if series is None or is_loose is None else cls(series, lines, is_loose, definitions, leaf)

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where all has to be parsed."""
        html = self._leaf.extended(text) if self._leaf is not None else None
        if html is not None:
            self._text += text
            return html
        return self._parse(self._text + text)

    def _parse(self, text: str) -> str | None:
        source = self._head + text
        definitions = Definitions(self._definitions.settled)
        groups = top_level(parser().parse(source, {"references": definitions}))
        series = _Series.of(groups[0]) if len(groups) == 1 and not definitions else None
        if series is None or series.kind != self._kind or self._size * series.width > _MOST_CELLS:
            return None
        if not series.loosen(self._is_loose):
            return None
        parts = [rendered(part) for part in series.parts]
        html = "".join([self._opening, self._certain, *parts, self._closing])
        lines = source.split("\n")
        self._leaf = _open_leaf(series.group, html, lines, definitions)
        last = series.last_whole(lines)
        self._certain += "".join(parts[:last])
        self._size += last
        self._text = "\n".join(lines[first_line(series.parts[last]) :])
        return html


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
