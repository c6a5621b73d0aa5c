"""Measures the cost of one block that grows, for each kind of block that models write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tests.benchmarks.documents import GROWING, flushes, growing
from tests.benchmarks.measuring import alternating, exponent, frozen, one_shot
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb.incremental_markdown.flavor import render_markdown
from toolcall_nb.markdown import IncrementalMarkdown

__all__ = ["rows"]

_ONCE: dict[str, Callable[[str], str]] = {"S": one_shot, "R": render_markdown}
_UNITS = {"HTML block": "R"}
"""The units that are not S."""


def rows(scale: Scale) -> Iterator[Row]:
    """Measures each kind at the middle size in S, and how its cost grows over all sizes.

    HTML is measured in R instead, one rendering of the text by this package. Our flavor shows HTML as text: it parses
    each line and escapes it. markdown-it copies an HTML block unread, so its S is a fifteenth of R and says nothing
    about incremental work.
    """
    for kind in GROWING:
        yield from _kind(kind, scale)


def _kind(kind: str, scale: Scale) -> Iterator[Row]:
    texts = {size: growing(kind, size) for size in scale.giants}
    middle = scale.giants[1]
    works = {str(size): partial(_stream, flushes(text, 8)) for size, text in texts.items()}
    unit = _UNITS.get(kind, "S")
    with frozen():
        times = alternating({unit: partial(_ONCE[unit], texts[middle]), **works}, scale.rounds)
    costs = {size: times[str(size)] for size in texts}
    name = f"one growing block: {kind}"
    yield Row(f"{name}, {middle / 1000:g} kB, 8 deltas a flush", costs[middle] / times[unit], unit, 12, 5)
    each = ", ".join(f"{size / 1000:g} kB {seconds * 1e3:,.0f} ms" for size, seconds in costs.items())
    yield Row(f"growth, {name}, 8 deltas a flush", exponent(costs), "", 1.15, detail=each)


def _stream(pieces: Sequence[str]) -> None:
    markdown = IncrementalMarkdown()
    for piece in pieces:
        markdown.feed(piece)
