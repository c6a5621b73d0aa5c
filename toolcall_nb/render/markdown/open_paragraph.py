"""The open text at the end of a growing text: a paragraph or heading, at any depth, or the last cell of a table."""

from __future__ import annotations

import re

from markdown_it.common.utils import escapeHtml, mdTrim
from markdown_it.token import Token

from toolcall_nb.render.markdown.blocks import OpenEnd, is_blank
from toolcall_nb.render.markdown.flavor import has_too_many_marks, marks_in
from toolcall_nb.render.markdown.link_definitions import Definitions, parse_inline, render_tokens

__all__ = ["TEXT_LINE", "OpenText"]

TEXT_LINE = re.compile(r"[^\W\d_]|\d+[^\W\d_]|\*{1,3}[^\W_]|_{1,3}[^\W_]|`{1,2}[^`\s]|~~[^\W_]")
"""A line that starts like this is text, whatever follows on it. It begins no list, fence, rule or definition."""

_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]")
_CONTAINERS = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t>]+)*")
# Brackets of a task, an alert or a link, which are not the label of a definition.
_BRACKETS = re.compile(r"\[[^\[\]\\]*\](?!:)")
# Characters that mean nothing to the inline parser. The second set holds only while no link can be open.
_INERT = re.compile(r"(?:[^\W_]|[ ,.:?/%@+=-])+")
_INERT_WITHOUT_BRACKETS = re.compile(r"(?:[^\W_]|[ ,.:?/%@+=\"'()-])+")
_WORD_END = re.compile(r"[^\W_] *\Z")
# Characters that the inline parser left as text and that later text may give a meaning. A delimiter run before a
# blank, or an underscore behind a word, opens nothing; an entity or autolink holds no blank (CommonMark, section 6).
_LIVE = re.compile(r"[\[`$]|\*(?![* \n])|~(?![~ \n])|(?<![^\W_])_(?![_ \n])")
_OPENS_A_WORD = re.compile(r"[<&]")
_LAST_WORD = re.compile(r"(?<= )\S[^ \n]*(?= *\Z)")


class OpenText(OpenEnd):
    """Inline content that the text ends in.

    The last line starts as text, so the rest of the line does not change the structure, with three exceptions: the
    closing mark of a formula at its end may end a block of lines; a quote or bracket may end a definition of several
    lines, which was text until then; and in the last row of a table a pipe ends the cell. The end of the line changes
    nothing either, and blank lines behind it change no more.

    Characters that mean nothing to the inline parser (inert ones) are added to the HTML as they are if they follow a
    word; elsewhere they may decide about a delimiter. Other characters make the inline content be parsed again, but
    only from the last word on before which nothing is open that they could close. The inline parser goes from left
    to right, and a delimiter depends only on the characters beside it, so the HTML before that word stays as it is.
    """

    def __init__(self, group: list[Token], leaf: int, blanks: str, html: str, definitions: Definitions) -> None:
        inline, closers = render_tokens([group[leaf]]), render_tokens(group[leaf + 1 :])
        super().__init__(group)
        self._token = group[leaf]
        self._definitions = definitions
        self._is_heading = group[leaf - 1].type == "heading_open"
        self._is_cell = group[leaf - 1].type == "td_open"
        self._sealed: list[str] = []  # the source that is not parsed again
        self._marks = 0  # how many marks are in that
        self._head = html[: len(html) - len(inline) - len(closers)]  # the HTML up to there
        self._content = self._token.content + blanks  # the source behind it
        self._inline = inline  # the HTML of that, without the blanks at its end
        self._closers = closers
        self._blanks = blanks
        self._line_ended = False
        self._examine(self._token)

    @classmethod
    def of(cls, group: list[Token], html: str, lines: list[str], definitions: Definitions) -> OpenText | None:
        """Returns the open text if the group's last inline token continues where the last line ends."""
        leaf = _last_cell(group, lines) if group[0].type == "table_open" else _last_text(group, lines)
        blanks = lines[-1][len(lines[-1].rstrip(" ")) :]
        return None if leaf is None else cls(group, leaf, blanks, html, definitions)

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None if only a parse can tell."""
        line, ending, behind = text.partition("\n")
        if behind.strip(" \t\n") or (self._line_ended and line.strip(" \t")):
            return None
        if line and not self._line_ended:
            if not self._may_restructure(line) if self._is_text else self._inert and self._inert.fullmatch(line):
                shown = line.rstrip(" ")
                self._inline += escapeHtml(self._blanks + shown) if shown else ""
                self._blanks = line[len(shown) :] if shown else self._blanks + line
                self._content += line
            elif not self._parse(line):
                return None
        self._line_ended = self._line_ended or bool(ending)
        return self._head + self._inline + self._closers

    def tokens(self) -> list[Token]:
        """Returns the block's tokens."""
        content = mdTrim("".join([*self._sealed, self._content]))
        if content != self._token.content:
            self._token.content, self._token.children = content, None
        return self.group

    def _may_restructure(self, text: str) -> bool:
        """Whether ``text`` may change the structure of blocks."""
        if self._is_cell:
            return "|" in text
        # A heading drops the hashes at its end; a formula's end may make a block of this line and those before it.
        return (self._is_heading and "#" in text) or (self._content + text).rstrip().endswith(("$$", "\\]"))

    def _parse(self, text: str) -> bool:
        """Parses the content that is not sealed again, with ``text``; False if the structure may change."""
        if self._may_restructure(text) or has_too_many_marks(self._content + text, self._marks):
            return False
        self._seal()
        self._content += text
        self._blanks = self._content[len(self._content.rstrip(" ")) :]
        token = Token("inline", "", 0, content=mdTrim(self._content))
        parse_inline([token], self._definitions)
        self._inline = render_tokens([token])
        self._examine(token)
        return True

    def _examine(self, parsed: Token) -> None:
        """Finds out which characters are inert behind the content, and whether later text may change its meaning."""
        self._is_text = has_too_many_marks(self._content)
        self._inert: re.Pattern[str] | None = None
        if _WORD_END.search(self._content):
            self._inert = _INERT if "[" in self._content else _INERT_WITHOUT_BRACKETS
        texts = [child.content for child in parsed.children or () if child.type == "text"]
        # What a backslash escapes now may open a formula later.
        self._is_closed = "\\" not in self._content and not any(map(_is_live, texts))

    def _seal(self) -> None:
        """Sets aside the content before the last word, if that is text and nothing before it is open."""
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
    """Returns the inline token of a paragraph or heading that continues where the last line ends."""
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
    """Returns the inline token of the cell that continues where the last line, a row of the table, ends."""
    line, row = lines[-1], [len(lines) - 1, len(lines)]
    cells = [at for at, token in enumerate(group) if token.type == "inline" and token.map == row]
    number = line.removeprefix("|").count("|")
    if number >= len(cells) or not (line.startswith("|") or TEXT_LINE.match(line)):
        return None
    leaf = cells[number]
    content = group[leaf].content
    return leaf if content and group[leaf - 1].type == "td_open" and line.rstrip(" ").endswith(content) else None


def _may_define(lines: list[str]) -> bool:
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
