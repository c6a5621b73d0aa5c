"""Text that the tail ends in: a paragraph or heading, at any depth of lists and quotes, or the last cell of a table."""

from __future__ import annotations

import re

from markdown_it.common.utils import escapeHtml, mdTrim
from markdown_it.token import Token

from toolcall_nb.render.markdown.blocks import is_blank, is_over
from toolcall_nb.render.markdown.definitions import Definitions, inline_again, rendered
from toolcall_nb.render.markdown.flavor import has_too_many_marks, marks_in

__all__ = ["TEXT_LINE", "OpenText"]

TEXT_LINE = re.compile(r"[^\W\d_]|\d+[^\W\d_]|\*{1,3}[^\W_]|_{1,3}[^\W_]|`{1,2}[^`\s]|~~[^\W_]")
"""A line that starts like this is text whatever follows on it: no marker of a list, a fence, a rule, a definition."""

_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]")
_CONTAINERS = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t>]+)*")
# Brackets that are no label of a definition: of a task, an alert, a link.
_BRACKETS = re.compile(r"\[[^\[\]\\]*\](?!:)")
# Characters that mean nothing to the inline parser, unless in a link or a definition that is open: the second set.
_INERT = re.compile(r"(?:[^\W_]|[ ,.:?/%@+=-])+")
_INERT_WITHOUT_BRACKETS = re.compile(r"(?:[^\W_]|[ ,.:?/%@+=\"'()-])+")
_WORD_END = re.compile(r"[^\W_]\Z")
# What later text may give a meaning to, in what the inline parser left as text. A delimiter run with a blank behind
# it, or an underscore behind a word, opens nothing; an entity or an autolink holds no blank (CommonMark, section 6).
_LIVE = re.compile(r"[\[`$]|\*(?![* \n])|~(?![~ \n])|(?<![^\W_])_(?![_ \n])")
_OPENS_A_WORD = re.compile(r"[<&]")
_LAST_WORD = re.compile(r"(?<= )\S[^ \n]*(?= *\Z)")


class OpenText:
    """Inline content that the text ends in.

    Its last line starts as text, so nothing on that line changes the structure, save that a formula's closer at its
    end may end a block of lines, and a quote or bracket a definition of several lines, which until then was text. In
    a table's last row it is a pipe that does. What ends the line changes nothing either, and no more than a blank
    line does, behind it.

    Characters that are inert to the inline parser go to the HTML as they are, once they follow a word: before, they
    may decide over a delimiter. Other characters have the inline content parsed, and nothing else: from the last
    word on before which nothing is open that they could close. The inline parser goes from left to right, and a
    delimiter looks at the characters beside it alone: so what it made of what lies before stays as it is.
    """

    def __init__(self, group: list[Token], leaf: int, blanks: str, html: str, definitions: Definitions) -> None:
        inline, closers = rendered([group[leaf]]), rendered(group[leaf + 1 :])
        self._group = group
        self._token = group[leaf]
        self._definitions = definitions
        self._is_heading = group[leaf - 1].type == "heading_open"
        self._is_cell = group[leaf - 1].type == "td_open"
        self._sealed: list[str] = []  # the source of what stays as it is
        self._marks = 0  # in that
        self._head = html[: len(html) - len(inline) - len(closers)]  # the HTML up to there
        self._content = self._token.content + blanks  # the source behind it
        self._inline = inline  # its HTML, without the blanks at its end
        self._closers = closers
        self._blanks = blanks
        self._line_ended = False
        self._look(self._token)

    @classmethod
    def of(cls, group: list[Token], html: str, lines: list[str], definitions: Definitions) -> OpenText | None:
        """The open text, if the content of the group's last inline token goes on where the last line ends."""
        leaf = _last_cell(group, lines) if group[0].type == "table_open" else _last_text(group, lines)
        blanks = lines[-1][len(lines[-1].rstrip(" ")) :]
        return None if leaf is None else cls(group, leaf, blanks, html, definitions)

    def extended(self, text: str) -> str | None:
        """The HTML with ``text`` added, or None where only a parse can tell."""
        line, ending, behind = text.partition("\n")
        if behind.strip(" \t\n") or (self._line_ended and line.strip(" \t")):
            return None
        if not self._line_ended:
            if line and not self._take(line):
                return None
            self._line_ended = bool(ending)
        return self._head + self._inline + self._closers

    def tokens(self) -> list[Token] | None:
        """The block's tokens."""
        content = mdTrim("".join([*self._sealed, self._content]))
        if content != self._token.content:
            self._token.content, self._token.children = content, None
        return self._group

    def is_over(self, character: str) -> bool:
        """Whether a line that begins with ``character``, behind a blank one, starts another block."""
        return is_over(self._group, character)

    def _take(self, text: str) -> bool:
        if self._means_nothing(text):
            shown = text.rstrip(" ")
            self._inline += escapeHtml(self._blanks + shown) if shown else ""
            self._blanks = text[len(shown) :] if shown else self._blanks + text
            self._content += text
            return True
        if self._may_restructure(text) or has_too_many_marks(self._content + text, self._marks):
            return False
        self._seal()
        self._parse(self._content + text)
        return True

    def _means_nothing(self, text: str) -> bool:
        """Whether the inline parser would leave ``text`` as it is."""
        if self._is_text:
            return not self._may_restructure(text)
        return self._inert is not None and self._inert.fullmatch(text) is not None

    def _may_restructure(self, text: str) -> bool:
        """Whether the structure may be another with ``text``."""
        if self._is_cell:
            return "|" in text
        # A heading gives up the hashes at its end, a formula's closer may make a block of this line and those before.
        return (self._is_heading and "#" in text) or (self._content + text).rstrip().endswith(("$$", "\\]"))

    def _parse(self, content: str) -> None:
        token = Token("inline", "", 0, content=mdTrim(content))
        inline_again([token], self._definitions)
        self._content = content
        self._inline = rendered([token])
        self._blanks = ""
        self._look(token)

    def _look(self, parsed: Token) -> None:
        """Finds out what is inert behind the content, and whether anything in it may get another meaning."""
        self._is_text = has_too_many_marks(self._content)
        self._inert: re.Pattern[str] | None = None
        if _WORD_END.search(self._content):
            self._inert = _INERT if "[" in self._content else _INERT_WITHOUT_BRACKETS
        texts = [child.content for child in parsed.children or () if child.type == "text"]
        # What a backslash escapes now may open a formula later.
        self._is_closed = "\\" not in self._content and not any(map(_is_live, texts))

    def _seal(self) -> None:
        """Sets aside what stays as it is: all before the last word, if that is text and nothing is open."""
        word = _LAST_WORD.search(self._content) if self._is_closed else None
        html = escapeHtml(word[0]) if word else ""
        if word is None or not self._inline.endswith(" " + html):
            return
        self._head += self._inline[: len(self._inline) - len(html)]
        self._sealed.append(self._content[: word.start()])
        self._marks += marks_in(self._sealed[-1])
        self._content, self._inline = self._content[word.start() :], html


def _is_live(text: str) -> bool:
    behind_blanks = max(text.rfind(" "), text.rfind("\n")) + 1
    return _LIVE.search(text) is not None or _OPENS_A_WORD.search(text, behind_blanks) is not None


def _last_text(group: list[Token], lines: list[str]) -> int | None:
    """The paragraph's or heading's inline token that goes on where the last line ends."""
    leaf = len(group) - 1
    while leaf and group[leaf].nesting < 0:
        leaf -= 1
    token = group[leaf]
    if token.type != "inline" or group[leaf - 1].type not in ("paragraph_open", "heading_open"):
        return None
    line = token.content.rpartition("\n")[2]
    is_last = (token.map or [0, 0])[1] == len(lines) and lines[-1].rstrip(" ").endswith(line)
    return leaf if is_last and TEXT_LINE.match(line) and not _may_define(lines) else None


def _last_cell(group: list[Token], lines: list[str]) -> int | None:
    """The inline token of the cell that goes on where the last line, which is a row of the table, ends."""
    line, row = lines[-1], [len(lines) - 1, len(lines)]
    cells = [at for at, token in enumerate(group) if token.type == "inline" and token.map == row]
    number = line.removeprefix("|").count("|")
    if number >= len(cells) or not (line.startswith("|") or TEXT_LINE.match(line)):
        return None
    leaf = cells[number]
    content = group[leaf].content
    return leaf if content and group[leaf - 1].type == "td_open" and line.rstrip(" ").endswith(content) else None


def _may_define(lines: list[str]) -> bool:
    """Whether the last line may come to belong to a link definition: one that began behind the last blank line.

    A definition's label or title may run over lines that are a heading as long as it is open. A list marker at the
    start of a line ends it.
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
