"""Measures the cost of work, relative to other work in the same process.

All times are CPU times of this process, which other work on the machine disturbs least. Compared works run alternately,
and the median counts. Garbage is collected before each run; existing objects are frozen while single steps are timed.

``S`` is parsing and rendering a document once with markdown-it-py alone, with tables and strikethrough as the only
extensions. ``U`` is one ``md.parse("Hello")``; a machine may need twice as long for everything as another one.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from statistics import linear_regression, median
from time import process_time

from markdown_it import MarkdownIt

__all__ = ["alternating", "exponent", "frozen", "once", "one_shot", "percentile", "steps", "unit", "units"]


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def one_shot(text: str) -> str:
    """Parses and renders the text once; its cost is S."""
    return str(_markdown().render(text))


def once(work: Callable[[], object]) -> float:
    """Returns the seconds of one run."""
    gc.collect()
    start = process_time()
    work()
    return process_time() - start


def alternating(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Returns each work's median of seconds; each round runs every work once."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(once(work))
    return {name: median(each) for name, each in times.items()}


def units(count: int) -> None:
    """Does work whose cost is so many U."""
    parse = _markdown().parse
    for _ in range(count):
        parse("Hello")


def unit(rounds: int = 5, repeats: int = 1_000) -> float:
    """Returns the seconds of U."""
    return median(once(partial(units, repeats)) for _ in range(rounds)) / repeats


@contextmanager
def frozen() -> Iterator[None]:
    """Excludes existing objects from garbage collection inside the block."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def steps(work: Callable[[str], object], pieces: Sequence[str]) -> list[float]:
    """Returns the seconds of each step, with existing objects frozen."""
    times: list[float] = []
    with frozen():
        for piece in pieces:
            start = process_time()
            work(piece)
            times.append(process_time() - start)
    return times


def percentile(times: Sequence[float], percent: float) -> float:
    """Returns the smallest time that ``percent`` percent of the times do not exceed."""
    return sorted(times)[max(0, math.ceil(len(times) * percent / 100) - 1)]


def exponent(costs: Mapping[int, float]) -> float:
    """Returns the best fit of k in cost = c · size^k: 1 is linear, 2 is quadratic."""
    return linear_regression([math.log(size) for size in costs], [math.log(cost) for cost in costs.values()]).slope
