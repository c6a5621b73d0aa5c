"""`IncrementalMarkdown`: the theory is in the docstring of `toolcall_nb.incremental_markdown`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it.token import Token

from toolcall_nb.core.escaping import visible_controls
from toolcall_nb.incremental_markdown.blocks import split_blocks
from toolcall_nb.incremental_markdown.flavor import parser, plain_block
from toolcall_nb.incremental_markdown.growing import GrowingBlocks
from toolcall_nb.incremental_markdown.link_definitions import Definitions, render_tokens
from toolcall_nb.incremental_markdown.open_paragraph import TEXT_LINE, line_html, parse_one_line

_LINE_END = re.compile("[\n\r\0]")  # or NUL, which the parser replaces
_ODD = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_TOGETHER = 256
"""The number of texts that are compressed as one pack."""
_SEPARATOR = "\0"
_NONE: list[str] = []  # shared, and never filled: a transcript has thousands of these lists


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
    visible_text = visible_controls(text)
    try:
        line = visible_text.rstrip("\n")
        if not _LINE_END.search(line):
            if TEXT_LINE.match(line):
                return [line_html(line)]
            if block := parse_one_line(line, Definitions({})):
                return [render_tokens(block)]
        return [render_tokens(group) for group in split_blocks(parser().parse(visible_text, {"references": {}}))]
    # As in `render_markdown`: the caller's stack may be too long already.
    except Exception:
        return [plain_block(visible_text)]


class CompressedTexts(Sequence[str]):
    """A list of texts without NUL. `pack` compresses its beginning; reading and replacing still work.

    One pack at a time stays open, so that reading the texts in order opens each pack once.
    """

    __slots__ = ("_is_changed", "_loose", "_number", "_open", "_packed", "_packs")

    def __init__(self) -> None:
        self._packs: list[bytes] = []
        self._packed = 0  # how many texts are in packs
        self._loose: list[str] = []  # those behind the packs
        self._open = _NONE
        self._number: int | None = None  # of the pack that is open
        self._is_changed = False

    def __len__(self) -> int:
        return self._packed + len(self._loose)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(self._packed + len(self._loose))[index]
        if number >= self._packed:
            return self._loose[number - self._packed]
        return self._opened(number)[number % _TOGETHER]

    def replace(self, number: int, text: str) -> str:
        """Replaces the text with that number by ``text``, and returns the former."""
        texts, at = self._loose, number - self._packed
        if at < 0:
            texts, at = self._opened(number), number % _TOGETHER
            self._is_changed = True
        former, texts[at] = texts[at], text
        return former

    def __iter__(self) -> Iterator[str]:
        for number in range(0, self._packed, _TOGETHER):
            yield from self._opened(number)
        yield from self._loose

    def append(self, text: str) -> None:
        """Adds a text at the end."""
        self._loose.append(text)

    def truncate(self, length: int) -> None:
        """Removes texts from the end. None of them is compressed."""
        del self._loose[length - self._packed :]

    def pack(self, before: int) -> None:
        """Compresses the texts before number ``before``, as far as they fill packs."""
        while before - self._packed >= _TOGETHER:
            self._pack(_TOGETHER)

    def pack_all(self) -> None:
        """Compresses all texts; none is added from now on."""
        self.pack(len(self))
        if self._loose:
            self._pack(len(self._loose))
        self._close()

    def _pack(self, count: int) -> None:
        self._packs.append(_packed(self._loose[:count]))
        del self._loose[:count]
        self._packed += count

    def _opened(self, number: int) -> list[str]:
        pack_number = number // _TOGETHER
        if pack_number != self._number:
            self._close()
            self._open = zlib.decompress(self._packs[pack_number]).decode().split(_SEPARATOR)
            self._number = pack_number
        return self._open

    def _close(self) -> None:
        if self._number is not None and self._is_changed:
            self._packs[self._number] = _packed(self._open)
        self._open, self._number, self._is_changed = _NONE, None, False


def _packed(texts: Sequence[str]) -> bytes:
    return zlib.compress(_SEPARATOR.join(texts).encode())
