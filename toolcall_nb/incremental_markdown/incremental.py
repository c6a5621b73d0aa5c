"""`IncrementalMarkdown`: the theory is in the docstring of `toolcall_nb.incremental_markdown`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.token import Token

from toolcall_nb.core.escaping import visible_controls
from toolcall_nb.incremental_markdown.blocks import split_blocks
from toolcall_nb.incremental_markdown.compressed_texts import CompressedTexts
from toolcall_nb.incremental_markdown.flavor import parser, plain_block
from toolcall_nb.incremental_markdown.growing import GrowingBlocks
from toolcall_nb.incremental_markdown.link_definitions import Definitions, render_tokens
from toolcall_nb.incremental_markdown.one_line import line_html, parse_one_line
from toolcall_nb.incremental_markdown.open_paragraph import TEXT_LINE

_LINE_END = re.compile("[\n\r\0]")  # or NUL, which the parser replaces
_ODD = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class IncrementalMarkdown(GrowingBlocks):
    """Takes text piece by piece with `feed`, and has the HTML of all of it. No text raises.

    ``blocks`` holds the HTML of each top-level block; it is live, and not to be changed. ``feed`` returns the indexes
    of the blocks that are new or differ, ascending; ``blocks`` may get shorter. ``before`` returns a block's former
    HTML.
    """

    def __init__(self) -> None:
        super().__init__(Definitions({}))
        self._blocks = CompressedTexts()
        self._half = ""  # the first half of a surrogate pair
        self._after_return = False
        self._before: dict[int, str | None] = {}  # the HTML, before this piece, of the blocks that it touched
        self._after: dict[int, str] = {}  # their HTML now

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
        changed = [at for at, before in self._before.items() if self._after.get(at, before) != before]
        return tuple(changed if len(changed) < 2 else sorted(changed))

    def before(self, block: int) -> str | None:
        """Returns the HTML of a block before the last ``feed``, which changed it; None if it is new."""
        return self._before[block]

    def close(self) -> None:
        """Ends the text, and compresses the blocks; nothing is fed after this."""
        self._blocks.pack_all()

    def _normalise(self, text: str) -> str:
        """Returns ``text`` as the parser gets it from `render_markdown`, with what a cut has parted joined again."""
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        text = visible_controls(text[: len(text) - len(self._half)])
        if not text:
            return ""
        after_return, self._after_return = self._after_return, text.endswith("\r") and not self._half
        if after_return and text.startswith("\n"):
            text = text[1:]
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")

    def _extend(self, text: str) -> bool:
        try:
            return super()._extend(text)
        # As in `_read`.
        except Exception:
            self._open = None
            return False

    def _show(self, block: int, html: str) -> None:
        """Sets the HTML of a block, and keeps the former one for `before`."""
        self._after[block] = html
        if block == self._count:
            self._blocks.append(html)
            self._count += 1
            self._before.setdefault(block, None)
        else:
            self._before.setdefault(block, self._blocks.replace(block, html))

    def _truncate(self, count: int) -> None:
        for block in range(count, self._count):
            self._before.setdefault(block, self._blocks[block])
            self._after.pop(block, None)
        self._blocks.truncate(count)
        self._count = count

    def _shown_source(self, source: str) -> str:
        return source + "\ufffd" if self._half else source

    def _read(self, source: str) -> tuple[list[list[Token]], list[str], Definitions]:
        try:
            return super()._read(source)
        # As in `render_markdown`: the caller's stack may be too long already.
        except Exception:
            return [], [plain_block(source)], self._definitions

    def _settle_blocks(self, count: int, line: int | None) -> None:
        super()._settle_blocks(count, line)
        self._blocks.pack(self._settled)


def markdown_blocks(text: str) -> list[str]:
    """Returns the ``blocks`` of `IncrementalMarkdown` after one ``feed`` of ``text``, without its state."""
    shown = visible_controls(text)
    try:
        line = shown.rstrip("\n")
        if not _LINE_END.search(line):
            if TEXT_LINE.match(line):
                return [line_html(line)]
            if block := parse_one_line(line, Definitions({})):
                return [render_tokens(block)]
        return [render_tokens(group) for group in split_blocks(parser().parse(shown, {"references": {}}))]
    # As in `render_markdown`: the caller's stack may be too long already.
    except Exception:
        return [plain_block(shown)]
