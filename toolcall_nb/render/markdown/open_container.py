"""The open quote or list item at the end of a growing text: its contents are growing blocks of their own.

`OpenQuote` is a quote or alert. `OpenItem` is the last item of a list. Both hand on what follows the container's marks
on each line, so that only the last block inside is parsed again, at any depth.
"""

from __future__ import annotations

import re

from markdown_it.token import Token

from toolcall_nb.render.markdown.blocks import Contents, NotAlone, OpenEnd, OuterBlocks, first_line
from toolcall_nb.render.markdown.link_definitions import render_tokens

__all__ = ["LEAST_CONTENTS", "OpenItem", "OpenQuote"]

LEAST_CONTENTS = 200
"""How many characters a container must have before it is taken apart; a smaller one is parsed as quickly."""

_QUOTED = re.compile(r"> ?")
_MARKER = re.compile(r"((?:[-+*]|\d{1,9}[.)]) {1,4})(\[[ xX]\] )?(?=[^ \t])")
# How far a tab reaches depends on the marks before it, which the contents do not have.
_TAB = re.compile(r"[ >+*\d.)-]*\t")


class _Container:
    """The contents of a container, and the marks that lead to them."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self._line = ""  # the last line so far
        self._is_spent = False

    def inside(self, line: str) -> str | None:
        """Returns what follows the container's marks on ``line``; None if the line is not certainly one of it."""
        raise NotImplementedError

    def feed(self, text: str) -> bool:
        """Adds text; False if a line is not certainly one of the container, or if its contents are of no more use."""
        lines = (self._line + text).split("\n")
        found = [inner for line in lines if (inner := self.inside(line)) is not None]
        if self._is_spent or len(found) < len(lines):
            return False
        known = len(self.inside(self._line) or "")
        has_tab = "\t" in "".join(lines) and any(map(_TAB.match, found))
        if has_tab and not self.contents.is_verbatim:
            return False
        try:
            if has_tab:
                self._feed_lines(found, known)
            else:
                self.contents.feed("\n".join(found)[known:])
        except NotAlone:
            self._is_spent = True
        self._line = lines[-1]
        return not self._is_spent

    def _feed_lines(self, lines: list[str], known: int) -> None:
        """Adds the lines one by one. Code must take those with such a tab: a parse would read them differently."""
        for number, line in enumerate(lines):
            parses, is_code = self.contents.parses, self.contents.is_verbatim
            self.contents.feed(line[known:] if number == 0 else f"\n{line}")
            if _TAB.match(line) and (not is_code or self.contents.parses != parses):
                raise NotAlone


class _Quote(_Container):
    def inside(self, line: str) -> str | None:
        mark = _QUOTED.match(line)
        return line[mark.end() :] if mark is not None else None if line else ""


class _Item(_Container):
    def __init__(self, contents: Contents, width: int) -> None:
        super().__init__(contents)
        self._indent = " " * width

    def inside(self, line: str) -> str | None:
        if line.startswith(self._indent):
            return line[len(self._indent) :]
        return None if line.strip(" ") else ""


class OpenQuote(OpenEnd):
    """A quote or alert, each of whose lines begins with its mark.

    Without the marks, its lines are parsed as they are within it. A blank line ends it, and a line without the mark may
    continue a paragraph in it, which only a parse of the whole tells.
    """

    def __init__(
        self, group: list[Token], html: str, lines: list[str], place: OuterBlocks, leaf: OpenEnd | None
    ) -> None:
        super().__init__(group)
        self._html = html
        self._lines = lines
        self._place = place
        self._leaf = leaf  # takes text until the quote is taken apart
        self._added: list[str] = []
        self._quote: _Quote | None = None
        self._before = self._behind = ""
        self._is_line_whole = False
        self._gap = ""  # the blanks behind the end of the last line

    @classmethod
    def of(
        cls, group: list[Token], html: str, lines: list[str], place: OuterBlocks, leaf: OpenEnd | None
    ) -> OpenEnd | None:
        """Returns the open quote if each line is marked; ``leaf`` if the block is not such a quote."""
        own = lines[first_line(group) :]
        is_marked = all(line.startswith(">") for line in (own if own[-1] else own[:-1]))
        if group[0].type not in ("blockquote_open", "alert_open") or not is_marked or not place.is_certain:
            return leaf
        return leaf if place.definitions or len(own) < 3 else cls(group, html, own, place, leaf)

    @property
    def is_verbatim(self) -> bool:
        """Whether it ends in code."""
        return self._quote is not None and self._quote.contents.is_verbatim

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None if only a parse of all of it can tell."""
        if self._quote is None:
            html = self._leaf.extend(text) if self._leaf is not None else None
            if html is not None:
                self._added.append(text)
                self._html = html
                return html
            if not self._take_apart():
                return None
        return self._html if self._feed(text) else None

    def _take_apart(self) -> bool:
        source = "\n".join(self._lines) + "".join(self._added)
        if len(source) < LEAST_CONTENTS:
            return False
        is_alert = self.group[0].type == "alert_open"
        head = self.group[:4] if is_alert else self.group[:1]
        self._before = ("\n" if self._html.startswith("\n") else "") + render_tokens(head)
        self._behind = render_tokens(self.group[-1:])
        self._quote, html = _Quote(self._place.container(1, False)), self._html
        is_same = self._feed(source.partition("\n")[2] if is_alert else source) and self._html == html
        if not is_same:
            self._quote = None
        return is_same

    def _feed(self, text: str) -> bool:
        assert self._quote is not None
        text = self._gap + text
        bare = text.rstrip(" \t\n")
        if self._is_line_whole and not text.partition("\n")[0].strip(" \t"):
            # No line follows, or a blank one, which ends the quote.
            self._gap = text
            return not bare
        end = text.find("\n", len(bare))
        fed = text if end < 0 else text[: end + 1]
        if "\n\n" in fed or not self._quote.feed(fed):
            return False
        self._is_line_whole = end >= 0
        self._gap = text[len(fed) :]
        self._html = f"{self._before}{self._quote.contents.html}{self._behind}"
        return True


class OpenItem(OpenEnd):
    """The last item of a list, each of whose lines is blank or indented as its text is.

    Without the indentation, its lines are parsed as they are within it. Whether its paragraphs have an element depends
    on the whole list, which has to be parsed when that changes.
    """

    def __init__(self, item: _Item, opening: str, before: str, behind: str, is_loose: tuple[bool, bool]) -> None:
        super().__init__([])
        self._item = item
        self._opening = opening
        self._before = before
        self._behind = behind
        self._is_loose_before, self._is_loose = is_loose

    @classmethod
    def of(
        cls, opening: Token, source: str, around: tuple[str, str], is_loose: tuple[bool, bool], place: OuterBlocks
    ) -> OpenItem | None:
        """Returns the open item whose text is ``source``; None if it does not begin with text behind its marker.

        ``around`` is the HTML before it and behind it. ``is_loose`` says whether the items before it make the list
        loose, and whether the list is.
        """
        marker = _MARKER.match(source)
        if marker is None or bool(marker[2]) != ("checked" in opening.meta):
            return None
        width = len(marker[1])
        item = _Item(place.container(2, not is_loose[1]), width)
        text = Token("paragraph_open", "p", 1, hidden=True)
        found = cls(item, render_tokens([opening, text]), around[0], f"</li>\n{around[1]}", is_loose)
        return found if found.extend(" " * width + source[marker.end() :]) is not None else None

    @property
    def is_verbatim(self) -> bool:
        """Whether it ends in code."""
        return self._item.contents.is_verbatim

    @property
    def is_loose(self) -> bool:
        """Whether a blank line stands between two blocks of the item."""
        return self._item.contents.is_loose

    @property
    def html(self) -> str:
        """The HTML of the item, with that around it."""
        contents = self._item.contents
        opening = self._opening if contents.begins_with_text else self._opening.replace(">", ">\n", 1)
        return f"{self._before}{opening}{contents.html}{self._behind}"

    def extend(self, text: str) -> str | None:
        """Returns the HTML with ``text`` added; None if only a parse of the list can tell."""
        if not self._item.feed(text) or (self._is_loose_before or self.is_loose) != self._is_loose:
            return None
        return self.html
