"""Model text as HTML while it streams in: `IncrementalMarkdown` has it after each piece, and parses what is open.

The law: after every ``feed``, at any cut, ``html`` is ``render_markdown`` of the text so far. It rests on four ideas.

**The boundary.** The parser reads lines forward and keeps nothing between two top-level blocks. So a block that
starts behind a blank line and whose first line is whole starts there for good. Behind another line it does so if its
second line is whole too, and no definition or formula is open that could take it in. So does a definition that follows
another one. The blocks before it are settled: their structure does not change any more. Only the text from the last
such start on, the tail, is parsed again. The boundary never moves back, and each block settles once. (A blank line
alone settles nothing, since a list may continue behind it. Nor does a first line that still grows: ``2`` becomes
``2.``, which continues the list before it. But a line that begins with a letter does not continue a list, so the first
character is mostly enough.)

**Definitions.** A settled block still depends on link definitions, and ``[x]: /url`` may follow at any time. The
labels that a settled block refers to are kept with its source, and if the tail defines them otherwise, the block is
parsed again. The first definition of a label counts; once settled, it stays. What a quote that grows defines
is told to the blocks around it.

**Open ends.** Most pieces continue the last block, and change less than the tail. A leaf (a line of text, code) says
whether a piece extends it: see ``open_fence`` and ``open_paragraph``. Of a list, only the
last item is parsed again (``open_list``), of a table only the cells that change (``open_table``). The contents of a
quote or an item are a text that grows, by the same rules as the whole (``open_container``, ``growing``). A piece that
ends the last block and begins another is taken as two pieces. Digits behind a loose list are a paragraph, but the list
stays the open end: with ``.`` behind them they are the number of its next item.

**Memory.** HTML is longer than its text, and the HTML of settled blocks is read only by a new page. So it is
compressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcall_nb.core.lazy_imports import lazy_members

if TYPE_CHECKING:
    from toolcall_nb.incremental_markdown.incremental import IncrementalMarkdown

__all__ = ["IncrementalMarkdown"]

__getattr__ = lazy_members(__name__, {"IncrementalMarkdown": ".incremental"})
