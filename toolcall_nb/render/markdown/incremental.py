"""Markdown as it streams: after each piece of text the HTML of all of it, at the cost of what is still open.

The law: after every ``feed``, at any cut, ``html`` is ``render_markdown`` of the text so far. It rests on these:

**The boundary.** The parser reads lines forward and keeps nothing between two top-level blocks. So a block that
starts behind a blank line and whose first line is whole starts there for good, and what lies before it is
settled: nothing of its blocks' structure changes any more. Only the text behind the last such start, the tail, is
parsed again. The boundary never moves back, and each block settles once. (A blank line alone settles nothing: a
list goes on behind it. Nor does a first line that still grows: ``2`` becomes ``2.``, and the list before it too.
But a line that begins with a letter is none of the list's, so mostly the first character is enough.)

**Definitions.** What a settled block still takes from elsewhere are link definitions, and ``[x]: /url`` may follow
any time later. Every label that a settled block asked for is remembered, and when what the tail defines changes,
the inline content of just these blocks is parsed again. The first definition of a label counts; once settled, it
stays.

**Open ends.** Most pieces go on with a line of text, a line of code, a list or a table. What such a piece can change
is less than the tail, and only that is made anew: see `toolcall_nb.render.markdown.open_leaf`, ``open_text`` and
``open_series``. A piece that ends the last block so and begins another is taken in two: cuts do not matter.

**Memory.** HTML is longer than its text, and of settled blocks nobody asks for it but a new page: it is packed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcall_nb.core.text import well_formed
from toolcall_nb.render.markdown.blocks import OpenEnd, first_line, is_over, top_level
from toolcall_nb.render.markdown.definitions import Awaiting, Definitions, rendered
from toolcall_nb.render.markdown.flavor import parser, plain_block
from toolcall_nb.render.markdown.open_series import open_end
from toolcall_nb.render.markdown.packed_texts import PackedTexts

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["IncrementalMarkdown", "markdown_blocks"]

_ODD = re.compile("[\r\0\ud800-\udfff]")
# It begins only where blanks begin and gives none of them back: a text of line ends alone is read once.
_BEHIND_BLANK = re.compile(r"(?<![ \t\n])[ \t]*+\n[ \t]*+\n[ \t\n]*+(?<=\n)([^ \t\n])")


class IncrementalMarkdown:
    """Feed it text, take the HTML. Nothing that is fed raises.

    ``blocks`` holds the HTML of each top-level block; it is live, and not to be changed. ``feed`` returns the indexes
    of the blocks that are new or differ, ascending; ``blocks`` may get shorter. ``before`` is what a block was.
    """

    def __init__(self) -> None:
        self._blocks = PackedTexts()
        self._settled = 0  # so many of the blocks
        self._tail: list[str] = []  # the text of the others, in pieces
        self._half = ""  # the first half of a surrogate pair
        self._after_return = False
        self._gap = ""  # what stands for the blanks and line ends at the end of the text
        self._groups: list[list[Token]] = []  # the tokens of the tail's blocks, as they were parsed last
        self._open: OpenEnd | None = None
        self._before: dict[int, str | None] = {}  # the blocks that were touched by this piece, as they were before
        self._definitions = Definitions({})
        self._awaiting = Awaiting()

    @property
    def blocks(self) -> Sequence[str]:
        """The HTML of each top-level block. Joined, they are ``html``."""
        return self._blocks

    @property
    def html(self) -> str:
        """What `render_markdown` makes of the text so far."""
        return "".join(self._blocks)

    def feed(self, text: str) -> tuple[int, ...]:
        """Takes up more text; returns which blocks are new or differ."""
        had_half = self._half != ""
        text = self._normalized(text)
        if not text and had_half == (self._half != ""):
            return ()
        self._before = {}
        if self._half or had_half:
            self._tail.append(text)
            self._parse()
        else:
            self._take(text)
        blocks = self._blocks
        return tuple(at for at, html in sorted(self._before.items()) if at < len(blocks) and blocks[at] != html)

    def before(self, block: int) -> str | None:
        """The HTML of a block before the last ``feed``, which changed it; None where it is new."""
        return self._before[block]

    def close(self) -> None:
        """The text is whole: nothing is fed any more. The blocks are right already, and now they are packed."""
        self._blocks.pack_all()

    def _normalized(self, text: str) -> str:
        """``text`` as the parser's first rule leaves it, with what a cut has parted put together again."""
        if not (self._half or self._after_return or _ODD.search(text)):
            return text
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        text = well_formed(text[: len(text) - len(self._half)])
        if not text:
            return ""
        after_return, self._after_return = self._after_return, text.endswith("\r") and not self._half
        if after_return and text.startswith("\n"):
            text = text[1:]
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")

    def _take(self, text: str) -> None:
        """Adds ``text``: what it ends by the open end, and only a block that it begins by a parse."""
        if not self._blocks and not text.strip(" \t\n"):
            self._passed(text)
            return
        start = self._new_block(text)
        if start is not None and self._extend(text[:start]):
            text = text[start:]
            self._tail = [text] if self._settle_all() else [*self._tail, text]
            self._parse()
        elif not self._extend(text):
            self._tail.append(text)
            self._parse()

    def _new_block(self, text: str) -> int | None:
        """Where in ``text`` the last block is over and another begins, if that is certain."""
        found = _BEHIND_BLANK.search(self._gap + text) if "\n" in text or self._gap else None
        over = found is not None and self._open is not None and self._open.is_over(found[1])
        return found.start(1) - len(self._gap) if found is not None and over else None

    def _extend(self, text: str) -> bool:
        """Adds ``text`` without a parse of the tail, if the last block is all that differs."""
        try:
            html = self._open.extended(text) if self._open is not None else None
        # As in `_parse`.
        except Exception:
            html = None
        if html is None:
            return False
        self._show(len(self._blocks) - 1, html)
        self._passed(text)
        return True

    def _passed(self, text: str) -> None:
        self._tail.append(text)
        bare = text.rstrip(" \t\n")
        self._gap = _squeezed(text[len(bare) :] if bare else self._gap + text)

    def _show(self, block: int, html: str) -> None:
        if block < len(self._blocks):
            self._before.setdefault(block, self._blocks[block])
            self._blocks[block] = html
        else:
            self._before.setdefault(block, None)
            self._blocks.append(html)

    def _parse(self) -> None:
        """Parses the tail anew, and settles what has become settled."""
        source = "".join(self._tail)
        shown = source + ("\ufffd" if self._half else "")
        definitions = Definitions(self._definitions.settled)
        try:
            groups = top_level(parser().parse(shown, {"references": definitions}))
            blocks = [rendered(group) for group in groups]
        # As in `render_markdown`: the caller's stack may be too long already.
        except Exception:
            groups, blocks, definitions = [], [plain_block(shown)], self._definitions
        self._redefine(definitions)
        for at, html in enumerate(blocks, self._settled):
            self._show(at, html)
        self._blocks.truncate(self._settled + len(blocks))
        lines = shown.split("\n")
        self._tail = [source]
        self._gap = _squeezed(source[len(source.rstrip(" \t\n")) :])
        self._groups = groups
        self._open = None if self._half or not groups else open_end(groups[-1], blocks[-1], lines, definitions)
        self._settle(lines)

    def _redefine(self, definitions: Definitions) -> None:
        """Parses the settled blocks again that asked for a label whose definition is another now."""
        labels = definitions.differing(self._definitions)
        self._definitions = definitions
        for block in self._awaiting.asking(labels):
            self._show(block, self._awaiting.render(block, definitions))

    def _settle(self, lines: list[str]) -> None:
        """Moves the boundary to the last block whose start is certain."""
        at = _last_certain(self._groups, lines)
        if at == 0:
            return
        line = first_line(self._groups[at])
        self._settle_blocks(self._groups[:at], line)
        self._groups = self._groups[at:]
        source = "".join(self._tail)
        self._tail = [source[sum(len(text) + 1 for text in lines[:line]) :]]

    def _settle_all(self) -> bool:
        """Moves the boundary to the end of the text, where a block begins; False where the tail has to be parsed."""
        tokens = self._open.tokens() if self._open is not None else None
        if tokens is None and any("[" in text for text in self._tail):
            return False
        self._settle_blocks([*self._groups[:-1], tokens or []], None)
        self._groups = []
        return True

    def _settle_blocks(self, groups: list[list[Token]], line: int | None) -> None:
        for number, group in enumerate(groups, self._settled):
            self._awaiting.watch(number, group, self._definitions)
        self._settled += len(groups)
        self._blocks.pack(self._settled)
        self._awaiting.forget(self._definitions.settle_before(line))


def _squeezed(gap: str) -> str:
    """As few blanks as tell the same of what may begin behind them: whether a line is blank, and one begun."""
    return "\n" * min(gap.count("\n"), 2) + (" " if gap and gap[-1] != "\n" else "")


def markdown_blocks(text: str) -> list[str]:
    """What ``blocks`` is after one ``feed`` of ``text``, at the cost of that alone: nothing is kept for more."""
    shown = well_formed(text)
    try:
        return [rendered(group) for group in top_level(parser().parse(shown, {"references": {}}))]
    # As in `render_markdown`: the caller's stack may be too long already.
    except Exception:
        return [plain_block(shown)]


def _last_certain(groups: list[list[Token]], lines: list[str]) -> int:
    """The last block that starts behind a blank line, for good; 0 where none does."""
    for at in range(len(groups) - 1, 0, -1):
        line = first_line(groups[at])
        is_certain = line + 1 < len(lines) or is_over(groups[at - 1], lines[line][:1])
        if is_certain and not lines[line - 1].strip(" \t"):
            return at
    return 0
