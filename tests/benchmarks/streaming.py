"""Measures the whole path from text to events to HTML: detector, reducer, renderer, patches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tests.benchmarks.documents import call, deltas, flushes, mixed
from tests.benchmarks.measuring import alternating, frozen, one_shot, percentile, steps, unit, units
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.dialects import detector
from toolcall_nb.live_runs.document import LiveDocument
from toolcall_nb.render import LiveHtml

__all__ = ["rows", "stream"]

_PER_FLUSH = {8: (8, 4), 25: (5, 2.5), 1: (25, 10)}
"""By deltas in a flush, the bounds "must" and "aim" for the cost, in S."""

_PER_MESSAGE: dict[int, tuple[float | None, float | None]] = {8: (7, 5), 25: (None, None)}
"""The same by deltas in a message, for the path on which the detector gets each delta when it comes."""

_CARDS = 100


class _Path:
    """A detector and the live HTML of its events."""

    def __init__(self) -> None:
        self._detector = detector("callout")
        self._live = LiveHtml()

    def feed(self, text: str) -> None:
        for event in self._detector.feed(text):
            self._live.apply(event)

    def close(self) -> LiveHtml:
        for event in self._detector.close():
            self._live.apply(event)
        return self._live


def stream(pieces: Sequence[str]) -> LiveHtml:
    """Renders the pieces, each when it arrives; returns the live HTML."""
    path = _Path()
    for piece in pieces:
        path.feed(piece)
    return path.close()


def _in_a_cell(parts: Sequence[str], together: int) -> None:
    """Renders as a cell does: the detector takes each delta when it arrives, and a message draws and sends them."""
    detect = detector("callout")
    document = LiveDocument(LiveHtml(), lambda step: None)
    for number, part in enumerate(parts):
        for event in detect.feed(part):
            document.apply(event)
        if number % together == together - 1:
            document.flush()


def rows(scale: Scale) -> Iterator[Row]:
    """Measures the cost of whole documents in S, and of the slowest steps in U."""
    for size in scale.documents[-2:]:
        yield from _whole(size, scale)
    yield from _single_steps(scale)
    yield from _cells(scale.documents[-2], scale)
    yield _card(scale)


def _whole(size: int, scale: Scale) -> Iterator[Row]:
    text = mixed(size)
    works = {"S": partial(one_shot, text)} | {str(n): partial(stream, flushes(text, n)) for n in _PER_FLUSH}
    with frozen():
        times = alternating(works, scale.rounds)
    for together, (must, aim) in _PER_FLUSH.items():
        name = f"text to events to HTML, {_size(size)}, {together} {'delta' if together == 1 else 'deltas'} a flush"
        yield Row(name, times[str(together)] / times["S"], "S", must, aim)


def _single_steps(scale: Scale) -> Iterator[Row]:
    """Measures all steps of a document of the middle size; compares them with the smallest to detect growth."""
    one = unit()
    slowest = {size: percentile(steps(_Path().feed, deltas(mixed(size))), 99) / one for size in scale.documents[:2]}
    small, middle = slowest.values()
    detail = (
        f"{_size(scale.documents[1])}; the same for {_size(scale.documents[0])} is {small:.1f} U; U {one * 1e6:.1f} µs"
    )
    yield Row("p99 of one delta with flush", middle, "U", 30, 10, detail)


def _cells(size: int, scale: Scale) -> Iterator[Row]:
    text = mixed(size)
    works = {"S": partial(one_shot, text)} | {str(n): partial(_in_a_cell, deltas(text), n) for n in _PER_MESSAGE}
    with frozen():
        times = alternating(works, scale.rounds)
    for together, (must, aim) in _PER_MESSAGE.items():
        name = f"the cell's own path, {_size(size)}, {together} deltas a flush"
        detail = "detector one delta at a time, document, patches"
        yield Row(name, times[str(together)] / times["S"], "S", must, aim, detail)


def _card(scale: Scale) -> Row:
    """Measures one card from its start to its result. The deltas of its input come in one message.

    Its bounds of 0.5 and 0.3 ms were set where U was 15 µs.
    """
    with frozen():
        times = alternating({"cards": _cards, "kU": partial(units, 1_000)}, scale.rounds)
    seconds = times["cards"] / _CARDS
    detail = f"{1e3 * seconds:.2f} ms; {len(_events_of_card(0))} events, its input in one message"
    return Row("a live card, all its events", 1e3 * seconds / times["kU"], "U", 33, 20, detail)


def _cards() -> None:
    for number in range(_CARDS):
        document = LiveDocument(LiveHtml(), lambda step: None)
        for event in _events_of_card(number):
            document.apply(event)
            if not isinstance(event, ev.ToolInputDelta):
                document.flush()


def _events_of_card(number: int) -> list[Event]:
    *written, result = call(number)
    return [*written, ev.ToolExecution(f"call_{number}", "running"), result]


def _size(size: int) -> str:
    return f"{size / 1e6:g} MB" if size >= 1_000_000 else f"{size / 1e3:g} kB"
