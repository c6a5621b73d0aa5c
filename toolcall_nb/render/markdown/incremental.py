"""The HTML of Markdown that streams in: `IncrementalMarkdown` has it after each piece, and parses only what is open.

The law: after every ``feed``, at any cut, ``html`` is ``render_markdown`` of the text so far. It rests on four ideas.

**The boundary.** The parser reads lines forward and keeps nothing between two top-level blocks. So a block that
starts behind a blank line and whose first line is whole starts there for good. The blocks before it are settled:
their structure does not change any more. Only the text from the last such start on, the tail, is parsed again. The
boundary never moves back, and each block settles once. (A blank line alone settles nothing, since a list may continue
behind it. Nor does a first line that still grows: ``2`` becomes ``2.``, which continues the list before it. But a line
that begins with a letter does not continue a list, so the first character is mostly enough.)

**Definitions.** A settled block still depends on link definitions, and ``[x]: /url`` may follow at any time. The
labels that a settled block refers to are kept, and if the tail defines them otherwise, the inline content of these
blocks is parsed again. The first definition of a label counts; once settled, it stays.

**Open ends.** Most pieces continue a line of text, a line of code, a list or a table. Such a piece changes less than
the tail, and only that is made again: see `toolcall_nb.render.markdown.open_fence`, ``open_paragraph`` and
``open_list``. A piece that ends the last block and begins another is taken as two pieces.

**Memory.** HTML is longer than its text, and the HTML of settled blocks is read only by a new page. So it is
compressed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcall_nb.core.text import well_formed
from toolcall_nb.render.markdown.blocks import OpenEnd, first_line, is_over, split_blocks
from toolcall_nb.render.markdown.compressed_texts import CompressedTexts
from toolcall_nb.render.markdown.flavor import parser, plain_block
from toolcall_nb.render.markdown.link_definitions import Awaiting, Definitions, render_tokens
from toolcall_nb.render.markdown.open_list import find_open_end

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["IncrementalMarkdown", "markdown_blocks"]

_ODD = re.compile("[\r\0\ud800-\udfff]")
# The pattern begins only where blanks begin, and gives none of them back: a text of line ends alone is read once.
_BEHIND_BLANK = re.compile(r"(?<![ \t\n])[ \t]*+\n[ \t]*+\n[ \t\n]*+(?<=\n)([^ \t\n])")


class IncrementalMarkdown:
    """Takes text piece by piece with `feed`, and has the HTML of all of it. No text raises.

    ``blocks`` holds the HTML of each top-level block; it is live, and not to be changed. ``feed`` returns the indexes
    of the blocks that are new or differ, ascending; ``blocks`` may get shorter. ``before`` returns a block's former
    HTML.
    """

    def __init__(self) -> None:
        self._blocks = CompressedTexts()
        self._count = 0  # of the blocks
        self._settled = 0  # how many of the blocks are settled
        self._tail: list[str] = []  # the text of the others, in pieces
        self._half = ""  # the first half of a surrogate pair
        self._after_return = False
        self._gap = ""  # stands for the blanks and line ends at the end of the text
        self._groups: list[list[Token]] = []  # the tokens of the tail's blocks, from the last parse
        self._open: OpenEnd | None = None
        self._before: dict[int, str | None] = {}  # the HTML, before this piece, of the blocks that it touched
        self._after: dict[int, str] = {}  # their HTML now
        self._definitions = Definitions({})
        self._awaiting = Awaiting()

    @property
    def blocks(self) -> Sequence[str]:
        """The HTML of each top-level block. Joined, they are ``html``."""
        return self._blocks

    @property
    def html(self) -> str:
        """The HTML that `render_markdown` gives for the text so far."""
        return "".join(self._blocks)

    def feed(self, text: str) -> tuple[int, ...]:
        """Adds text; returns the indexes of the blocks that are new or differ."""
        had_half = self._half
        if had_half or self._after_return or _ODD.search(text):
            text = self._normalise(text)
        if not text and bool(had_half) == bool(self._half):
            return ()
        self._before, self._after = {}, {}
        if had_half or self._half:
            self._tail.append(text)
            self._parse()
        else:
            self._add(text)
        return tuple([at for at in sorted(self._before) if self._after.get(at, self._before[at]) != self._before[at]])

    def before(self, block: int) -> str | None:
        """Returns the HTML of a block before the last ``feed``, which changed it; None if it is new."""
        return self._before[block]

    def close(self) -> None:
        """Ends the text, and compresses the blocks; nothing is fed after this."""
        self._blocks.pack_all()

    def _normalise(self, text: str) -> str:
        """Returns ``text`` as the parser's first rule leaves it, with what a cut has parted joined again."""
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        text = well_formed(text[: len(text) - len(self._half)])
        if not text:
            return ""
        after_return, self._after_return = self._after_return, text.endswith("\r") and not self._half
        if after_return and text.startswith("\n"):
            text = text[1:]
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")

    def _add(self, text: str) -> None:
        """Adds ``text``: the open end takes what continues the last block, and only a block that begins is parsed."""
        if not self._count and not text.strip(" \t\n"):
            self._append(text)
            return
        start = self._new_block(text) if "\n" in text or "\n" in self._gap else None
        if start is not None and self._extend(text[:start]):
            text = text[start:]
            self._tail = [text] if self._settle_all() else [*self._tail, text]
            self._parse()
        elif not self._extend(text):
            self._tail.append(text)
            self._parse()

    def _new_block(self, text: str) -> int | None:
        """Returns where in ``text`` the last block is over and another begins, if that is certain."""
        found = _BEHIND_BLANK.search(self._gap + text)
        if found is None or self._open is None or not self._open.is_over(found[1]):
            return None
        return found.start(1) - len(self._gap)

    def _extend(self, text: str) -> bool:
        """Adds ``text`` without a parse of the tail; False if the last block is not all that differs."""
        try:
            html = self._open.extend(text) if self._open is not None else None
        # As in `_parse`.
        except Exception:
            html = None
        if html is None:
            return False
        self._show(self._count - 1, html)
        self._append(text)
        return True

    def _append(self, text: str) -> None:
        """Adds ``text`` to the tail, and the blanks at its end to the gap."""
        self._tail.append(text)
        bare = text.rstrip(" \t\n")
        gap = text[len(bare) :] if bare else self._gap + text
        # As few blanks as tell the same: whether a line is blank, and whether another has begun.
        self._gap = "\n" * min(gap.count("\n"), 2) + (" " if gap and gap[-1] != "\n" else "")

    def _show(self, block: int, html: str) -> None:
        """Sets the HTML of a block, and keeps the former one for `before`."""
        is_new = block == self._count
        if block not in self._before:
            self._before[block] = None if is_new else self._blocks[block]
        self._after[block] = html
        if is_new:
            self._blocks.append(html)
            self._count += 1
        else:
            self._blocks[block] = html

    def _truncate(self, count: int) -> None:
        for block in range(count, self._count):
            self._after.pop(block, None)
        self._blocks.truncate(count)
        self._count = count

    def _parse(self) -> None:
        """Parses the tail again, and settles the blocks that have become certain."""
        source = "".join(self._tail)
        shown = source + ("\ufffd" if self._half else "")
        definitions = Definitions(self._definitions.settled)
        try:
            groups = split_blocks(parser().parse(shown, {"references": definitions}))
            blocks = [render_tokens(group) for group in groups]
        # As in `render_markdown`: the caller's stack may be too long already.
        except Exception:
            groups, blocks, definitions = [], [plain_block(shown)], self._definitions
        self._redefine(definitions)
        for at, html in enumerate(blocks, self._settled):
            self._show(at, html)
        self._truncate(self._settled + len(blocks))
        lines = shown.split("\n")
        self._tail, self._gap = [], ""
        self._append(source)
        self._groups = groups
        self._open = None if self._half or not groups else find_open_end(groups[-1], blocks[-1], lines, definitions)
        self._settle(lines)

    def _redefine(self, definitions: Definitions) -> None:
        """Parses again the settled blocks that refer to a label whose definition has changed."""
        labels = definitions.differing(self._definitions)
        self._definitions = definitions
        for block in self._awaiting.referring(labels):
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
        """Moves the boundary to the end of the text, where a block begins; False if the tail has to be parsed."""
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


def markdown_blocks(text: str) -> list[str]:
    """Returns the ``blocks`` of `IncrementalMarkdown` after one ``feed`` of ``text``, without its state."""
    shown = well_formed(text)
    try:
        return [render_tokens(group) for group in split_blocks(parser().parse(shown, {"references": {}}))]
    # As in `render_markdown`: the caller's stack may be too long already.
    except Exception:
        return [plain_block(shown)]


def _last_certain(groups: list[list[Token]], lines: list[str]) -> int:
    """Returns the number of the last block that certainly starts behind a blank line; 0 if none does."""
    for at in range(len(groups) - 1, 0, -1):
        line = first_line(groups[at])
        is_certain = line + 1 < len(lines) or is_over(groups[at - 1], lines[line][:1])
        if is_certain and not lines[line - 1].strip(" \t"):
            return at
    return 0
