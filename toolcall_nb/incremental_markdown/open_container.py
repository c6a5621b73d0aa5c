"""The open quote or list item at the end of a growing text: its contents are growing blocks of their own.

`OpenQuote` is a quote or alert. `OpenItem` is the last item of a list. Both hand on what follows the container's marks
on each line, so that only the last block inside is parsed again, at any depth.
"""

from __future__ import annotations

import re

from markdown_it.token import Token

from toolcall_nb.incremental_markdown.blocks import Contents, NotAlone, OpenEnd, OuterBlocks, first_line
from toolcall_nb.incremental_markdown.link_definitions import render_tokens
from toolcall_nb.incremental_markdown.open_paragraph import TEXT_LINE

LEAST_CONTENTS = 100
"""How many characters a container must have before it is taken apart; a smaller one is parsed as quickly."""

_QUOTED = re.compile(r" {0,3}> ?")
_MARKER = re.compile(r"((?:[-+*]|\d{1,9}[.)]) {1,4})(\[[ xX]\] )?(?=[^ \t])")
# The tabs and the marker of an item, and what follows one blank and perhaps the box of a task. More tabs may be nested
# too deep, and the parser shows such lines as they are.
_TABBED = re.compile(r"(\t{1,9})(?:([-+*]|\d{1,9}[.)]?)(?: (?:\[[ xX]\][ \t]*)?(.*))?)?\Z")
_NUMBER = re.compile(r"\d{1,9}")
# How far a tab reaches depends on the marks before it, which the contents do not have.
_TAB = re.compile(r"[ >+*\d.)-]*\t")
_BEYOND_MARKS = re.compile(r"[^\s>+*\d.)-]")


class _Container:
    """The contents of a container, and the marks that lead to them.

    Behind text of a paragraph, a line of text without the marks continues it, as one with the marks would: it is lazy.
    The two differ if the line might head a table or be in a formula: then only a parse of the whole tells.
    """

    def __init__(self, contents: Contents, *, may_be_lazy: bool = True) -> None:
        self.contents = contents
        self._may_be_lazy = may_be_lazy
        self._line = ""  # the last line so far
        self._known = 0  # how many of its characters the contents have
        self._is_in_text = False  # whether more of it needs no look at its beginning
        self._has_formula = False  # whether one may be open since the last blank line
        self._is_in_paragraph = False  # whether the last line that has ended is text of a paragraph
        self._is_spent = False

    def unmarked(self, line: str) -> str | None:
        """Returns what follows the container's marks on ``line``; None if the line does not have them."""
        raise NotImplementedError

    def feed(self, text: str) -> bool:
        """Adds text; False if a line is not certainly one of the container: then it is of no more use."""
        try:
            if self._is_in_text and "\n" not in text:
                self.contents.feed(text)
                self._line += text
                self._known += len(text)
            else:
                self._feed_lines((self._line + text).split("\n"))
        except NotAlone:
            self._is_spent = True
        return not self._is_spent

    def _feed_lines(self, lines: list[str]) -> None:
        unmarked = list(map(self.unmarked, lines))
        if any([inner and "\t" in inner and _TAB.match(inner) for inner in unmarked]):
            self._feed_tabs(unmarked)
        else:
            self._feed_unmarked(lines, unmarked)
        last = unmarked[-1]
        self._line, self._known = lines[-1], len(lines[-1].lstrip(" ") if last is None else last)
        self._is_in_text = last is not None and _BEYOND_MARKS.search(last) is not None

    def _feed_unmarked(self, lines: list[str], unmarked: list[str | None]) -> None:
        piece: list[str] = []
        before = ""
        for number, (line, inner) in enumerate(zip(lines, unmarked, strict=True)):
            is_lazy = inner is None
            contents_line = self._lazy(line) if inner is None else inner
            if number:
                self._note_formula(before)
                if is_lazy or (not line.strip(" ") and number == len(lines) - 1):
                    self.contents.feed("\n".join(piece))
                    self._is_in_paragraph = self.contents.is_in_paragraph
                    piece = [""]
            if is_lazy and (number or not self._line.strip(" ")) and (self._has_formula or not self._is_in_paragraph):
                raise NotAlone
            piece.append(contents_line if number else contents_line[self._known :])
            before = contents_line
        self.contents.feed("\n".join(piece))

    def _lazy(self, line: str) -> str:
        """Returns what a line without the marks brings to the contents."""
        text = line.lstrip(" ")
        if not self._may_be_lazy or not _is_lazy(text):
            raise NotAlone
        return text

    def _note_formula(self, inner: str) -> None:
        if not inner.strip(" \t"):
            self._has_formula = False
        self._has_formula = self._has_formula or "$$" in inner or "\\[" in inner

    def _feed_tabs(self, lines: list[str | None]) -> None:
        """Adds the lines one by one. Code must take those with such a tab: a parse would read them differently."""
        for number, line in enumerate(lines):
            parses, is_code = self.contents.parses, self.contents.is_verbatim
            if line is None or (_TAB.match(line) and not is_code):
                raise NotAlone
            self.contents.feed(f"\n{line}" if number else line[self._known :])
            if _TAB.match(line) and self.contents.parses != parses:
                raise NotAlone
            if number:
                self._note_formula(lines[number - 1] or "")
        self._is_in_paragraph = False


class _Quote(_Container):
    """The contents of a quote."""

    def unmarked(self, line: str) -> str | None:
        mark = _QUOTED.match(line)
        return line[mark.end() :] if mark is not None else None if line else ""


class _Item(_Container):
    """The contents of a list item. Each line is blank or indented by spaces, or by tabs if it is an item itself.

    A line of tabs and a marker is an item if it has at most one tab more than the item of one line of text before it:
    it is then never code, and never text of the paragraph, where the tabs might show. So spaces stand for the tabs.
    """

    def __init__(self, contents: Contents, width: int, *, begins_with_text: bool) -> None:
        super().__init__(contents)
        self._indent = " " * width
        # The number of tabs before the item on the line before the last; None if that is no item of one line of text.
        self._tabs: int | None = None
        self._first = 0 if begins_with_text else None

    def unmarked(self, line: str) -> str | None:
        if line.startswith(self._indent):
            return line[len(self._indent) :]
        if not line.startswith("\t"):
            return None if line.strip(" ") else ""
        bare = line.lstrip("\t")
        spaces = 4 * (len(line) - len(bare)) - len(self._indent)
        return None if spaces < 0 else " " * spaces + bare

    def _feed_lines(self, lines: list[str]) -> None:
        for number, line in enumerate(lines):
            is_tabbed = line.startswith("\t")
            if is_tabbed and not _is_item(line, self._tabs):
                raise NotAlone
            if number < len(lines) - 1:
                first, self._first = self._first, None
                self._tabs = first if first is not None else _tabs_of_item(line) if is_tabbed else None
        super()._feed_lines(lines)


def _is_lazy(line: str) -> bool:
    """Whether the line, without the marks of a container, continues a paragraph in it as it would with them."""
    # In a paragraph, a bracket begins no definition, and a number alone no item.
    is_text = line.startswith("[") or TEXT_LINE.match(line) or _NUMBER.fullmatch(line)
    return bool(is_text) and "|" not in line


def _is_item(line: str, before: int | None) -> bool:
    """Whether ``line``, or its beginning, is an item behind one of a line of text that ``before`` tabs indent."""
    item = _TABBED.match(line)
    if item is None or before is None or len(item[1]) > before + 1:
        return False
    # Another number than 1 continues a paragraph.
    return len(item[1]) <= before or item[3] is None or item[2] in {"-", "+", "*", "1.", "1)"}


def _tabs_of_item(line: str) -> int | None:
    item = _TABBED.match(line)
    return len(item[1]) if item is not None and item[3] and TEXT_LINE.match(item[3]) else None


class OpenQuote(OpenEnd):
    """A quote or alert, each of whose lines begins with its mark or is certainly text that continues a paragraph.

    Without the marks, its lines are parsed as they are within it. A blank line ends it. In a list item, each line must
    have the mark: the parser leaves the indentation of others in the text.
    """

    def __init__(
        self, group: list[Token], html: str, lines: list[str], outer: OuterBlocks, leaf: OpenEnd | None
    ) -> None:
        super().__init__(group)
        self._html = html
        self._lines = lines
        self._outer = outer
        self._leaf = leaf  # takes text until the quote is taken apart
        self._added: list[str] = []
        self._quote: _Quote | None = None
        self._before = self._behind = self._empty = ""
        self._is_line_whole = False
        self._gap = ""  # the blanks behind the end of the last line

    @classmethod
    def of(
        cls, group: list[Token], html: str, lines: list[str], outer: OuterBlocks, leaf: OpenEnd | None
    ) -> OpenEnd | None:
        """Returns the open quote if each line is marked or lazy; ``leaf`` if the block is not such a quote."""
        if group[0].type not in ("blockquote_open", "alert_open") or not outer.is_certain:
            return leaf
        quote_lines = lines[first_line(group) :]
        if len(quote_lines) < 3 or any(start < first_line(group) for start, _ in outer.definitions.lines):
            return leaf
        is_marked = all(
            _QUOTED.match(line) or (_is_lazy(line) and not outer.is_in_item)
            for line in (quote_lines if quote_lines[-1] else quote_lines[:-1])
        )
        return cls(group, html, quote_lines, outer, leaf) if is_marked else leaf

    @property
    def is_verbatim(self) -> bool:
        """Whether it ends in code."""
        return self._quote is not None and self._quote.contents.is_verbatim

    @property
    def is_in_paragraph(self) -> bool:
        """Whether the last line is certainly text of a paragraph."""
        if self._quote is not None:
            return "\n" not in self._gap and self._quote.contents.is_in_paragraph
        return self._leaf is not None and self._leaf.is_in_paragraph

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
        self._empty = render_tokens([*head, self.group[-1]])
        contents = self._outer.container(1, False)
        self._quote, html = _Quote(contents, may_be_lazy=not self._outer.is_in_item), self._html
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
        html = self._quote.contents.html
        self._html = f"{self._before}{html}{self._behind}" if html else self._empty
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
        cls, opening: Token, source: str, html_around: tuple[str, str], is_loose: tuple[bool, bool], outer: OuterBlocks
    ) -> OpenItem | None:
        """Returns the open item whose text is ``source``; None if it does not begin with text behind its marker.

        ``html_around`` is the HTML before it and behind it. ``is_loose`` says whether the items before it make the list
        loose, and whether the list is.
        """
        marker = _MARKER.match(source)
        if marker is None or bool(marker[2]) != ("checked" in opening.meta):
            return None
        width = len(marker[1])
        contents = outer.container(2, not is_loose[1])
        item = _Item(contents, width, begins_with_text=TEXT_LINE.match(source, marker.end()) is not None)
        text = Token("paragraph_open", "p", 1, hidden=True)
        open_item = cls(item, render_tokens([opening, text]), html_around[0], f"</li>\n{html_around[1]}", is_loose)
        return open_item if open_item.extend(" " * width + source[marker.end() :]) is not None else None

    @property
    def is_verbatim(self) -> bool:
        """Whether it ends in code."""
        return self._item.contents.is_verbatim

    @property
    def is_in_paragraph(self) -> bool:
        """Whether the last line is certainly text of a paragraph."""
        return self._item.contents.is_in_paragraph

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
