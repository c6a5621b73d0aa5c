"""The inline content at the end of a growing text: `OpenInline` parses what comes, and not again what is settled."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from markdown_it.common.utils import MD_TRIM_CHARS, escapeHtml, mdTrim
from markdown_it.token import Token

from toolcall_nb.incremental_markdown.flavor import has_too_many_marks, marks_in
from toolcall_nb.incremental_markdown.link_definitions import Definitions, parse_inline, render_tokens
from toolcall_nb.incremental_markdown.open_marks import closes, live_marks, may_close

_MOST_PIECES = 64  # of sealed HTML, or held parts; beyond that, some become one

_MOST_COPIED = 2_000  # characters of the content that each piece copies
_LEAST_HELD = 160  # characters
_LATELY = 80
"""A mark that was opened within so many characters is not held yet: it may be closed soon."""

# Characters that mean nothing to the inline parser, and ends of lines without blanks, which it leaves as they are. The
# second set holds only while no link, autolink or entity can be open.
_INERT = re.compile(r"(?:[0-9A-Za-z ,.:?!/%@+={}^|#-]++|[^\x00-\x7f\s]++|(?<=[^ \n])\n(?=[^ \n]))+")
_INERT_IN_TEXT = re.compile(r"(?:[0-9A-Za-z ,.:?!/%@+={}^|#\"'();>-]++|[^\x00-\x7f\s]++|(?<=[^ \n])\n(?=[^ \n]))+")
# At the end of the content, blanks and these may mean something with such characters behind them.
_UNCERTAIN_ENDS = frozenset("\\*_~`$")
_OPENS_A_WORD = re.compile(r"[<&]")


class _Held(NamedTuple):
    """A part of the content in which something is open."""

    content: str
    html: str
    open_marks: set[str]


class OpenInline:
    """Inline content that grows. Its HTML is that of a parse of all of it, without the blanks at its end.

    Characters that mean nothing to the inline parser (inert ones) are added to the HTML as they are if they follow such
    characters; behind a mark they may decide about it. Other characters make the content be parsed again, but only from
    the last word on before which nothing is open that they could close. The inline parser goes from left to right, and
    a delimiter depends only on the characters beside it, so the HTML before that word stays as it is.

    Where something is open (an asterisk, a backtick, a bracket), the text behind it is held, in parts: a part is parsed
    again only when a mark comes that may close what is open in it, with the parts behind it. Until then, what comes is
    parsed by itself. Marks that belong together find each other there before they look at a part before it, and leave
    nothing for it.
    """

    def __init__(self, parsed: Token, html: str, blanks: str, definitions: Definitions) -> None:
        """``parsed`` is the content so far, without the ``blanks`` at its end, and ``html`` is its HTML."""
        self._definitions = definitions
        self._sealed: list[str] = []  # the source that is not parsed again
        self._sealed_html: list[str] = []
        self._held: list[_Held] = []  # the parts behind that, in which something is open
        self._marks = 0  # how many marks are in both
        self._own_marks = 0  # how many are in the content behind them
        self._content = parsed.content + blanks  # the source behind them
        self._content_html = html  # the HTML of that, without the blanks at its end
        self._blanks = blanks
        self._is_text = has_too_many_marks(parsed.content)  # whether the parser leaves all marks as they are
        self._live: set[str] = set()  # what marks in the content may be closed later
        self._examine(parsed)

    def add(self, text: str) -> str:
        """Adds text, with line ends only where the content goes on behind them; returns the HTML of all of it."""
        if not self._is_text and has_too_many_marks(text, self._marks + self._own_marks):
            self._become_text(text)
        before = " " if self._content.endswith(" ") else "."
        if self._is_text or (self._inert is not None and self._inert.fullmatch(before + text)):
            if len(self._content) > _MOST_COPIED:
                self._set_aside()
            if "\n" in text or "!" in text:  # the only marks that are inert
                self._own_marks += marks_in(text)
            bare = text.rstrip(MD_TRIM_CHARS)
            self._content_html += escapeHtml(self._blanks + bare) if bare else ""
            self._blanks = text[len(bare) :] if bare else self._blanks + text
            self._content += text
        else:
            self._parse(text)
        held = [part.html for part in self._held]
        return "".join([*self._sealed_html, *held, self._content_html])

    def _become_text(self, text: str) -> None:
        """Shows the content as it is if it has, with ``text``, more marks than the parser reads."""
        content = "".join([*self._sealed, *(part.content for part in self._held), self._content])
        if has_too_many_marks(mdTrim(content + text)):
            bare = mdTrim(content)
            self._content, self._content_html, self._blanks = content, escapeHtml(bare), content[len(bare) :]
            self._own_marks += self._marks
            self._marks, self._is_text, self._live = 0, True, set()
            self._sealed, self._sealed_html, self._held = [], [], []

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
        self._content_html = render_tokens([token])
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
        bare = self._content.rstrip(" ")
        end = bare[-1:]
        # Behind a label, a bracket alone begins no link, but with an address behind it the label may be one.
        if end and end not in _UNCERTAIN_ENDS and not end.isspace() and not bare.endswith("]("):
            is_in_brackets = "[" in self._content or any(not part.open_marks.isdisjoint("[(") for part in self._held)
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
            last_word = bare[start:]
            html = escapeHtml(last_word)
            if (
                start
                and last_word
                and not last_word[0].isspace()
                and self._content_html.endswith((" " + html, "\n" + html))
            ):
                if self._held or self._live:
                    self._hold(start, len(self._content_html) - len(html), late)
                else:
                    self._seal(start, len(self._content_html) - len(html))
                return

    def _hold(self, content: int, inline: int, late: list[int]) -> None:
        """Holds so much of the content, and of its HTML. ``late`` are the places of marks that are live lately."""
        held, remaining = self._content[:content], self._content[content:]
        marks = live_marks(_texts_of(self._parsed(held)), held, remaining) if late else self._live
        if not late:
            self._live = set()
        self._held.append(_Held(held, self._content_html[:inline], marks))
        if len(self._held) > _MOST_PIECES:
            early = self._held[: _MOST_PIECES // 2]
            self._held[: len(early)] = [_joined(early)]
        self._content_html = self._content_html[inline:]
        self._move(held)

    def _seal(self, content: int, inline: int) -> None:
        """Seals so much of the content, and of its HTML."""
        self._sealed_html.append(self._content_html[:inline])
        if len(self._sealed_html) > _MOST_PIECES:
            self._sealed_html = ["".join(self._sealed_html)]
        self._sealed.append(self._content[:content])
        self._content_html = self._content_html[inline:]
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
        if self._content_html.startswith(html) and not live_marks(_texts_of(token), before, self._content[start:]):
            self._seal(start, len(html))
            self._examine(self._parsed(self._content))


def _joined(parts: list[_Held]) -> _Held:
    contents, htmls, marks = zip(*parts, strict=True)
    return _Held("".join(contents), "".join(htmls), set().union(*marks))


def _texts_of(parsed: Token) -> list[str]:
    """Returns what the inline parser left as text."""
    texts: list[str] = parsed.meta.get("texts", [])
    return texts
