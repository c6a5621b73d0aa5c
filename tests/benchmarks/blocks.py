"""Measures the cost of one block that grows, for each kind of block that models write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tests.benchmarks.documents import GROWING, flushes, growing
from tests.benchmarks.measuring import alternating, exponent, frozen, one_shot
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb.markdown import IncrementalMarkdown

__all__ = ["rows"]


def rows(scale: Scale) -> Iterator[Row]:
    """Measures each kind in S at the middle size, and how its cost grows over all sizes."""
    for kind in GROWING:
        yield from _kind(kind, scale)


def _kind(kind: str, scale: Scale) -> Iterator[Row]:
    texts = {size: growing(kind, size) for size in scale.giants}
    middle = scale.giants[1]
    works = {str(size): partial(_stream, flushes(text, 8)) for size, text in texts.items()}
    with frozen():
        times = alternating({"S": partial(one_shot, texts[middle]), **works}, scale.rounds)
    costs = {size: times[str(size)] for size in texts}
    name = f"one growing block: {kind}"
    yield Row(f"{name}, {middle / 1000:g} kB, 8 deltas a flush", costs[middle] / times["S"], "S", 12, 5)
    each = ", ".join(f"{size / 1000:g} kB {seconds * 1e3:,.0f} ms" for size, seconds in costs.items())
    yield Row(f"growth, {name}, 8 deltas a flush", exponent(costs), "", 1.15, detail=each)


def _stream(pieces: Sequence[str]) -> None:
    markdown = IncrementalMarkdown()
    for piece in pieces:
        markdown.feed(piece)
