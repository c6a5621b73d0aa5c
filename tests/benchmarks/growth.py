"""Measures how the cost of a whole document grows with its length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tests.benchmarks.documents import GIANTS, deltas, flushes, giant, input_deltas, mixed
from tests.benchmarks.measuring import alternating, exponent, frozen
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from tests.benchmarks.streaming import stream
from toolcall_nb.core.events import Event
from toolcall_nb.render import LiveHtml

__all__ = ["rows"]

_MUST = {"table": 1.5, "paragraph": 1.5}


def rows(scale: Scale) -> Iterator[Row]:
    """Measures the exponents of growth; 1 is linear."""
    sizes = f"{scale.documents[0] // 1000} kB to {scale.documents[-1] // 1000} kB"
    for words, calls in (("", True), (" without calls: one text", False)):
        works = {size: partial(stream, flushes(mixed(size, calls=calls), 8)) for size in scale.documents}
        name = f"growth, mixed document{words}, {sizes}, 8 deltas a flush"
        yield Row(name, exponent(_times(works, scale)), "", 1.10, 1.03)
    for kind in GIANTS:
        works = {size: partial(stream, deltas(giant(kind, size))) for size in scale.giants}
        yield _giant(f"one {kind}", _times(works, scale), _MUST.get(kind, 1.2))
    inputs = {size: partial(_take_in, input_deltas(size)) for size in scale.giants}
    yield _giant("one tool input of a provider", _times(inputs, scale), 1.2)


def _take_in(events: list[Event]) -> None:
    live = LiveHtml()
    for event in events:
        live.apply(event)


def _giant(kind: str, times: dict[int, float], must: float) -> Row:
    each = ", ".join(f"{size // 1000} kB {seconds * 1e3:,.0f} ms" for size, seconds in times.items())
    return Row(f"growth, {kind}, a flush at each delta", exponent(times), "", must, 1.15, each)


def _times(works: Mapping[int, Callable[[], object]], scale: Scale) -> dict[int, float]:
    with frozen():
        found = alternating({str(size): work for size, work in works.items()}, scale.rounds)
    return {int(size): seconds for size, seconds in found.items()}
