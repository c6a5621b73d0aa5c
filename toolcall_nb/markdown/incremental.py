"""Markdown as it streams: after each piece of text the HTML of all of it, at the cost of what is still open.

The law: after every ``feed``, at any cut, ``html`` is ``render_markdown`` of the text so far. It rests on these:

**The boundary.** The parser reads lines forward and keeps nothing between two top-level blocks. So a block that
starts behind a blank line and whose first line is whole starts there for good, and what lies before it is
settled: nothing of its blocks' structure changes any more. Only the text behind the last such start, the tail, is
parsed again. The boundary never moves back, and each block settles once. (A blank line alone settles nothing: a
list goes on behind it. Nor does a first line that still grows: ``2`` becomes ``2.``, and the list before it too.)

**Definitions.** What a settled block still takes from elsewhere are link definitions, and ``[x]: /url`` may follow
any time later. Every label that a settled block asked for is remembered, and when what the tail defines changes,
the inline content of just these blocks is parsed again. The first definition of a label counts; once settled, it
stays.

**Open ends.** Most pieces go on with a line of text, a line of code, a list or a table. What such a piece can change
is less than the tail, and only that is made anew: see `toolcall_nb.markdown.open_end`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcall_nb.markdown.definitions import Awaiting, Definitions, rendered
from toolcall_nb.markdown.flavor import parser, plain_block
from toolcall_nb.markdown.open_end import OpenEnd, first_line, open_end, top_level
from toolcall_nb.unicode import well_formed

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["IncrementalMarkdown"]


class IncrementalMarkdown:
    """Feed it text, take the HTML. Nothing that is fed raises.

    ``blocks`` holds the HTML of each top-level block; it is live, and not to be changed. ``feed`` and ``close``
    return the indexes of the blocks that are new or differ, ascending; ``blocks`` may get shorter.
    """

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._settled = 0  # so many of the blocks
        self._tail: list[str] = []  # the text of the others, in pieces
        self._half = ""  # the first half of a surrogate pair
        self._after_return = False
        self._open: OpenEnd | None = None
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
        self._tail.append(text)
        html = None if self._half or had_half else self._extended(text)
        return self._parse() if html is None else self._show_last(html)

    def close(self) -> tuple[int, ...]:
        """The text is whole. All that was fed is shown already, so nothing differs."""
        return ()

    def _normalized(self, text: str) -> str:
        """``text`` as the parser's first rule leaves it, with what a cut has parted put together again."""
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        text = well_formed(text[: len(text) - len(self._half)])
        if not text:
            return ""
        after_return, self._after_return = self._after_return, text.endswith("\r") and not self._half
        if after_return and text.startswith("\n"):
            text = text[1:]
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")

    def _extended(self, text: str) -> str | None:
        """The HTML of the last block with ``text`` added, where that is all that differs."""
        try:
            return self._open.extended(text) if self._open is not None else None
        # As in `_parse`.
        except Exception:
            return None

    def _show_last(self, html: str) -> tuple[int, ...]:
        last = len(self._blocks) - 1
        if last < 0 or self._blocks[last] == html:
            return ()
        self._blocks[last] = html
        return (last,)

    def _parse(self) -> tuple[int, ...]:
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
        changed = self._redefine(definitions)
        first = self._settled
        changed += [first + at for at, html in enumerate(blocks) if self._blocks[first + at : first + at + 1] != [html]]
        self._blocks[first:] = blocks
        lines = shown.split("\n")
        self._tail = [source]
        self._open = None if self._half or not groups else open_end(groups[-1], blocks[-1], lines, definitions)
        self._settle(groups, lines)
        return tuple(changed)

    def _redefine(self, definitions: Definitions) -> list[int]:
        """Parses the settled blocks again that asked for a label whose definition is another now."""
        labels = definitions.differing(self._definitions)
        self._definitions = definitions
        changed = []
        for block in self._awaiting.asking(labels):
            html = self._awaiting.render(block, definitions)
            if html != self._blocks[block]:
                self._blocks[block] = html
                changed.append(block)
        return changed

    def _settle(self, groups: list[list[Token]], lines: list[str]) -> None:
        """Moves the boundary to the last block whose start is certain."""
        at = _last_certain(groups, lines)
        if at == 0:
            return
        line = first_line(groups[at])
        for number, group in enumerate(groups[:at], self._settled):
            self._awaiting.watch(number, group, self._definitions)
        self._settled += at
        self._awaiting.forget(self._definitions.settle_before(line))
        source = "".join(self._tail)
        self._tail = [source[sum(len(text) + 1 for text in lines[:line]) :]]


def _last_certain(groups: list[list[Token]], lines: list[str]) -> int:
    """The last block that starts behind a blank line and whose first line is whole; 0 where none is."""
    for at in range(len(groups) - 1, 0, -1):
        line = first_line(groups[at])
        if line + 1 < len(lines) and not lines[line - 1].strip(" \t"):
            return at
    return 0
