"""The open text at the end of a growing text: a paragraph or heading, at any depth, or the last cell of a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from markdown_it.common.utils import MD_TRIM_CHARS, escapeHtml, mdTrim
from markdown_it.token import Token

from toolcall_nb.render.markdown.blocks import FORMULA, OpenEnd, is_blank, may_define
from toolcall_nb.render.markdown.flavor import has_too_many_marks, marks_in, parser
from toolcall_nb.render.markdown.link_definitions import Definitions, parse_inline, render_tokens
from toolcall_nb.render.markdown.open_marks import closes, live_marks, may_close

__all__ = ["TEXT_LINE", "OpenText"]

TEXT_LINE = re.compile(
    r"""[^\W\d_]|[^\x00-\x7f\s]                 # a letter, an emoji, a line of a box
    |\d+[^\d.)]|\d+[.)][^ \t]|\d{10}          # a date, a decimal number: no marker of an item
    |\*{1,3}[^\W_]|_{1,3}[^\W_]|`{1,2}[^`\s]|~~?[^~\W_]
    |["'(),;./%@!?^&{}<\]]
    |\[[^\[\]\\]*(?:\][^:]|\[                # a link or a linked picture, not the label of a definition
        |\]:[ \t]*[^\s<]\S*[ \t]+[^\s"'(])     # a footnote, whose text is no title
    |-[^-\s|:]|-{2,}[ \t]*[^-\s|:]|\+[^\s]|\#{1,6}[^\#\s]|=+[ ]*[^=\s]|:[^-:|\s]""",
    re.VERBOSE,
)
"""A line that starts like this is text, whatever follows on it. It begins no list, fence, rule or definition."""

_MOST_PIECES = 64  # of sealed HTML, or held parts; beyond that, some become one

_MOST_COPIED = 2_000  # characters of the content that each piece copies
_LEAST_HELD = 160  # characters
_LATELY = 80
"""A mark that was opened within so many characters is not held yet: it may be closed soon."""

# Characters that mean nothing to the inline parser, and ends of lines without blanks, which it leaves as they are. The
# second set holds only while no link, autolink or entity can be open.
_INERT = re.compile(r"(?:[0-9A-Za-z]|[^\x00-\x7f\s]|[ ,.:?!/%@+={}^|#-]|(?<=[^ \n])\n(?=[^ \n]))+")
_INERT_IN_TEXT = re.compile(r"(?:[0-9A-Za-z]|[^\x00-\x7f\s]|[ ,.:?!/%@+={}^|#\"'();>-]|(?<=[^ \n])\n(?=[^ \n]))+")
_JSON_START = re.compile(r" {0,3}(?:[A-Za-z][A-Za-z ]{0,40}:[ \t]*+)?[{\[]")
# At the end of the content, blanks and these may mean something with such characters behind them.
_UNCERTAIN_ENDS = frozenset("\\*_~`$")
_OPENS_A_WORD = re.compile(r"[<&]")


class _Held(NamedTuple):
    """A part of the content in which something is open."""

    content: str
    html: str
    open_marks: set[str]


class OpenText(OpenEnd):
    """Inline content that the text ends in.

    The last line starts as text, so the rest of the line does not change the structure, with three exceptions: the
    closing mark of a formula at its end may end a block of lines; a quote or bracket may end a definition of several
    lines, which was text until then; and in the last row of a table a pipe ends the cell. The end of the line changes
    nothing either, and blank lines behind it change no more. A paragraph that is in no other block goes on with the
    next line if that starts as text, or if a parse of this line alone, with the line before it, says so.

    Characters that mean nothing to the inline parser (inert ones) are added to the HTML as they are if they follow such
    characters; behind a mark they may decide about it. Other characters make the inline content be parsed again, but
    only from the last word on before which nothing is open that they could close. The inline parser goes from left
    to right, and a delimiter depends only on the characters beside it, so the HTML before that word stays as it is.

    Where something is open (an asterisk, a backtick, a bracket), the text behind it is held, in parts: a part is parsed
    again only when a mark comes that may close what is open in it, with the parts behind it. Until then, what comes is
    parsed by itself. Marks that belong together find each other there before they look at a part before it, and leave
    nothing for it.
    """

    def __init__(
        self,
        group: list[Token],
        leaf: int,
        html: str,
        lines: list[str],
        definitions: Definitions,
        *,
        ends_with_line: bool = False,
    ) -> None:
        inline, closers = _inline_and_closers(group, leaf, html)
        super().__init__(group, ends_with_line=ends_with_line)
        self._token = group[leaf]
        self._definitions = definitions
        self._is_heading = group[leaf - 1].type == "heading_open"
        self._is_cell = group[leaf - 1].type == "td_open"
        self._has_next_lines = group[0].type == "paragraph_open"
        above, is_first_whole, _ = self._token.content.partition("\n")
        self._may_be_json = group[0].type == "paragraph_open" and _JSON_START.fullmatch(above) is not None
        self._is_first_line = not is_first_whole
        self._has_formula = any(map(FORMULA.match, _behind_blank(lines)))
        self._sealed: list[str] = []  # the source that is not parsed again
        self._sealed_html: list[str] = []
        self._held: list[_Held] = []  # the parts behind that, in which something is open
        self._marks = 0  # how many marks are in both
        self._own_marks = 0  # how many are in the content behind them
        self._head = html[: len(html) - len(inline) - len(closers)]  # the HTML before it
        self._blanks = lines[-1][len(lines[-1].rstrip(MD_TRIM_CHARS)) :]
        self._content = self._token.content + self._blanks  # the source behind it
        self._inline = inline  # the HTML of that, without the blanks at its end
        self._closers = closers
        self._is_text = has_too_many_marks(self._token.content)  # whether the parser leaves all marks as they are
        self._live: set[str] = set()  # what marks in the content may be closed later
        self._is_paragraph = group[leaf - 1].type == "paragraph_open"
        # The line before the last one, if the last one may turn out to be no text.
        self._before = lines[-2] if self._has_next_lines and "\n" in self._token.content else ""
        self._line = lines[-1]
        self._gap = ""  # the blanks at the end of the text, from the end of a line on, are not in the content yet
        self._examine(self._token)

    @classmethod
    def of(
        cls, group: list[Token], html: str, lines: list[str], definitions: Definitions, *, ends_with_line: bool
    ) -> OpenText | None:
        """Returns the open text if the group's last inline token continues where the last line ends."""
        leaf = _last_text(group, lines)
        return None if leaf is None else cls(group, leaf, html, lines, definitions, ends_with_line=ends_with_line)

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None if only a parse can tell."""
        if not self._gap and "\n" not in text:
            if not self._is_same_line(text):
                return None
            self._extend_line(text)
            self._line += text
        elif not self._extend_lines(text):
            return None
        held = [part.html for part in self._held]
        return "".join([self._head, *self._sealed_html, *held, self._inline, self._closers])

    @property
    def is_in_paragraph(self) -> bool:
        """Whether the last line, which has not ended, is text of a paragraph."""
        return self._is_paragraph and not self._gap

    def _is_same_line(self, text: str) -> bool:
        """Whether the last line stays text of this block with ``text`` added."""
        line = self._line + text
        return not self._may_restructure(text, line) and (not self._before or _continues(self._before, line))

    def _extend_line(self, text: str) -> None:
        if not self._is_text and has_too_many_marks(text, self._marks + self._own_marks):
            self._become_text(text)
        before = " " if self._content.endswith(" ") else "."
        if not self._is_text and (self._inert is None or not self._inert.fullmatch(before + text)):
            self._parse(text)
            return
        if len(self._content) > _MOST_COPIED:
            self._set_aside()
        if "\n" in text or "!" in text:  # the only marks that are inert
            self._own_marks += marks_in(text)
        shown = text.rstrip(MD_TRIM_CHARS)
        self._inline += escapeHtml(self._blanks + shown) if shown else ""
        self._blanks = text[len(shown) :] if shown else self._blanks + text
        self._content += text

    def _become_text(self, text: str) -> None:
        """Shows the content as it is if it has, with ``text``, more marks than the parser reads."""
        content = self._source()
        if has_too_many_marks(mdTrim(content + text)):
            bare = mdTrim(content)
            self._content, self._inline, self._blanks = content, escapeHtml(bare), content[len(bare) :]
            self._own_marks += self._marks
            self._marks, self._is_text, self._live = 0, True, set()
            self._sealed, self._sealed_html, self._held = [], [], []

    def _extend_lines(self, text: str) -> bool:
        """Adds ``text``, which begins behind the end of a line or holds one."""
        added = self._gap + text
        bare = added.rstrip(" \t\n")
        if bare:
            if self._gap.count("\n") > 1 or not self._are_lines(text):
                return False
            ends = "\n" in added[len(bare) :]
            self._extend_line(bare if ends else added)
            self._gap = added[len(bare) :] if ends else ""
        else:
            self._gap = added
        lines = (self._line + text).split("\n")
        if len(lines) > 1:
            self._before = lines[-2]
        self._line = lines[-1]
        return True

    def _are_lines(self, text: str) -> bool:
        """Whether ``text`` adds lines of text to this block, perhaps with blank lines behind them."""
        lines = (self._line + text).rstrip(" \t\n").split("\n")
        if not self._has_next_lines and (self._gap or len(lines) > 1):
            return False
        if not self._gap and not self._is_same_line(lines[0][len(self._line) :]):
            return False
        before = self._before if self._gap else lines[0]
        for line in lines if self._gap else lines[1:]:
            if not before.strip(" \t") or is_blank(line) or not _continues(before, line):
                return False
            if self._is_first_line:
                self._may_be_json, self._is_first_line = _JSON_START.fullmatch(before) is not None, False
            if self._may_restructure(line, line):
                return False
            before = line
        return True

    def _source(self) -> str:
        return "".join([*self._sealed, *(part.content for part in self._held), self._content])

    def _may_restructure(self, text: str, line: str) -> bool:
        """Whether ``text``, which makes the last line ``line``, may change the structure of blocks."""
        if self._is_cell:
            return "|" in text
        if self._may_be_json and line.strip() in ("}", "]"):
            return True
        # A heading drops the hashes at its end; a formula's end may make a block of this line and those before it.
        if self._is_heading and "#" in text:
            return True
        if "|" in text:  # the next line may make a heading the head of a table
            self.ends_with_line = False
        self._has_formula = self._has_formula or FORMULA.match(line) is not None
        return self._has_formula and line.rstrip().endswith(("$$", "\\]"))

    def _parse(self, text: str) -> None:
        """Parses the content that is not set aside again, with ``text``."""
        self._set_aside()
        self._content += text
        self._blanks = self._content[len(self._content.rstrip(MD_TRIM_CHARS)) :]
        held = len(self._held)
        while True:
            while self._takes_back(closes, held):
                pass
            token = self._parsed(self._content)
            if not self._takes_back(partial(may_close, _texts_of(token)), held):
                break
        self._inline = render_tokens([token])
        self._examine(token)
        if held and not self._held and self._live:
            self._seal_before_live()

    def _takes_back(self, closed: Callable[[str, set[str]], set[str]], held: int) -> bool:
        """Takes back into the content what is held, from the last mark on that it closes; False if it closes none.

        Of the ``held`` parts, it takes at least as many as were taken before, which bounds how often all is parsed.
        """
        marks = closed(self._content, set().union(*(part.open_marks for part in self._held)))
        if not marks:
            return False
        last = max(at for at, part in enumerate(self._held) if not marks.isdisjoint(part.open_marks))
        start = max(0, min(last, 2 * len(self._held) - held))
        content = "".join([part.content for part in self._held[start:]])
        del self._held[start:]
        self._marks -= marks_in(content)
        self._content = content + self._content
        return True

    def _parsed(self, content: str) -> Token:
        token = Token("inline", "", 0, content=mdTrim(content))
        parse_inline([token], self._definitions)
        return token

    def _examine(self, parsed: Token) -> None:
        """Finds out which characters are inert behind the content, and which marks in it later text may close."""
        self._own_marks = marks_in(self._content)
        self._inert: re.Pattern[str] | None = None
        self._live = live_marks(_texts_of(parsed), self._content)
        behind_blanks = max(self._content.rfind(" "), self._content.rfind("\n")) + 1
        self._has_whole_words = not _OPENS_A_WORD.search(self._content, behind_blanks)
        end = self._content.rstrip(" ")[-1:]
        if end and end not in _UNCERTAIN_ENDS and not end.isspace():
            is_in_brackets = "[" in self._content or any("[" in part.open_marks for part in self._held)
            self._inert = _INERT_IN_TEXT if self._has_whole_words and not is_in_brackets else _INERT

    def _set_aside(self) -> None:
        """Sets aside the content before the last word, if that is text: sealed if nothing is open, else held.

        Most marks are closed soon, so content in which one is open is held only when it has become long.
        """
        if not self._has_whole_words or (self._live and len(self._content) < _LEAST_HELD):
            return
        bare = self._content.rstrip(" ")
        late = [at for at in map(bare.rfind, self._live) if at > len(bare) - _LATELY]
        for end in (min(late), len(bare)) if late else (len(bare),):
            start = max(bare.rfind(" ", 0, end), bare.rfind("\n", 0, end)) + 1
            rest = bare[start:]
            html = escapeHtml(rest)
            if start and rest and not rest[0].isspace() and self._inline.endswith((" " + html, "\n" + html)):
                if self._held or self._live:
                    self._hold(start, len(self._inline) - len(html), late)
                else:
                    self._seal(start, len(self._inline) - len(html))
                return

    def _hold(self, content: int, inline: int, late: list[int]) -> None:
        """Holds so much of the content, and of its HTML. ``late`` are the places of marks that are live lately."""
        held, rest = self._content[:content], self._content[content:]
        marks = live_marks(_texts_of(self._parsed(held)), held, rest) if late else self._live
        if not late:
            self._live = set()
        self._held.append(_Held(held, self._inline[:inline], marks))
        if len(self._held) > _MOST_PIECES:
            early = self._held[: _MOST_PIECES // 2]
            self._held[: len(early)] = [_joined(early)]
        self._inline = self._inline[inline:]
        self._move(held)

    def _seal(self, content: int, inline: int) -> None:
        """Seals so much of the content, and of its HTML."""
        self._sealed_html.append(self._inline[:inline])
        if len(self._sealed_html) > _MOST_PIECES:
            self._sealed_html = ["".join(self._sealed_html)]
        self._sealed.append(self._content[:content])
        self._inline = self._inline[inline:]
        self._move(self._sealed[-1])

    def _move(self, part: str) -> None:
        """Removes the part that was set aside from the content, and its marks from the count of the content."""
        marks = marks_in(part)
        self._marks += marks
        self._own_marks -= marks
        self._content = self._content[len(part) :]

    def _seal_before_live(self) -> None:
        """Seals the content before the last mark that is live, if nothing is open there.

        A backtick does not depend on the character before it; before other marks, the whole word stays.
        """
        last = max(map(self._content.rfind, self._live))
        start = len(self._content[: last + 1].rstrip("`"))
        if start > last:
            start = max(self._content.rfind(" ", 0, last), self._content.rfind("\n", 0, last)) + 1
        before = self._content[:start]
        word = before[max(before.rfind(" "), before.rfind("\n")) + 1 :]
        blank = before[len(before.rstrip()) :]
        if (
            not before
            or len(blank) > 1
            or self._content[start].isspace()
            or word.endswith("\\")
            or _OPENS_A_WORD.search(word)
        ):
            return
        token = self._parsed(before)
        html = render_tokens([token]) + blank
        if self._inline.startswith(html) and not live_marks(_texts_of(token), before, self._content[start:]):
            self._seal(start, len(html))
            self._examine(self._parsed(self._content))


def _joined(parts: list[_Held]) -> _Held:
    contents, htmls, marks = zip(*parts, strict=True)
    return _Held("".join(contents), "".join(htmls), set().union(*marks))


def _inline_and_closers(group: list[Token], leaf: int, html: str) -> tuple[str, str]:
    """Returns the HTML of the inline token and of what is behind it in the block, whose HTML is ``html``."""
    start, end = f"<{group[0].tag}>", f"</{group[0].tag}>\n"
    if len(group) == 3 and html.startswith(start) and html.endswith(end):
        return html[len(start) : -len(end)], end
    return render_tokens([group[leaf]]), render_tokens(group[leaf + 1 :])


def _texts_of(parsed: Token) -> list[str]:
    """Returns what the inline parser left as text."""
    texts: list[str] = parsed.meta.get("texts", [])
    return texts


def _behind_blank(lines: list[str]) -> list[str]:
    """Returns the lines behind the last blank one."""
    start = next((at + 1 for at in range(len(lines) - 1, -1, -1) if is_blank(lines[at])), 0)
    return lines[start:]


def _continues(before: str, line: str) -> bool:
    """Whether ``line`` goes on with a paragraph that is in no other block and whose last line is ``before``."""
    bare = line.lstrip(" \t")
    if not bare or bare[0] == "[" or TEXT_LINE.match(bare):
        return True
    tokens: list[Token] = []
    md = parser()
    md.block.parse(f"x\n{before}\n{line}", md, {"references": {}, "level": 1}, tokens)
    return len(tokens) == 3 and tokens[1].map == [0, 3] and tokens[0].type == "paragraph_open"


def _last_text(group: list[Token], lines: list[str]) -> int | None:
    """Returns the inline token of a paragraph or heading that continues where the last line ends."""
    leaf = len(group) - 1
    while leaf and group[leaf].nesting < 0:
        leaf -= 1
    token = group[leaf]
    if token.type != "inline" or group[leaf - 1].type not in ("paragraph_open", "heading_open"):
        return None
    above, _, line = token.content.rpartition("\n")
    start, end = token.map or [0, 0]
    if end != len(lines) or not lines[-1].rstrip(MD_TRIM_CHARS).endswith(line) or may_define(lines[: start + 1]):
        return None
    is_text = TEXT_LINE.match(line) or (above and group[0].type == "paragraph_open")
    return leaf if is_text else None
