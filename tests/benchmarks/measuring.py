"""What a piece of work costs, as a ratio to something else that is measured in the same process.

All times are the CPU's, of this process: other work on the machine disturbs them least. Runs of what is compared
alternate, and the median counts. The collector is emptied before each run, and frozen where single steps are timed.

``S`` is one one-shot parse and render of a document by markdown-it-py alone, with the tables and the strikethrough
of our flavor and nothing else of it. ``U`` is one ``md.parse("Hello")``.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from statistics import linear_regression, median
from time import process_time

from markdown_it import MarkdownIt

__all__ = ["alternating", "exponent", "frozen", "once", "one_shot", "percentile", "steps", "unit"]


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def one_shot(text: str) -> str:
    """What S is the cost of."""
    return str(_markdown().render(text))


def once(work: Callable[[], object]) -> float:
    """Seconds of one run."""
    gc.collect()
    start = process_time()
    work()
    return process_time() - start


def alternating(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median of each work's seconds: one run of each, then the next round."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(once(work))
    return {name: median(each) for name, each in times.items()}


def unit(rounds: int = 5, repeats: int = 1_000) -> float:
    """Seconds of U."""
    parse = _markdown().parse

    def many() -> None:
        for _ in range(repeats):
            parse("Hello")

    return median(once(many) for _ in range(rounds)) / repeats


@contextmanager
def frozen() -> Iterator[None]:
    """What is there already is not looked at by the collector meanwhile."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def steps(work: Callable[[str], object], pieces: Sequence[str]) -> list[float]:
    """Seconds of each single step, with the collector frozen."""
    times: list[float] = []
    with frozen():
        for piece in pieces:
            start = process_time()
            work(piece)
            times.append(process_time() - start)
    return times


def percentile(times: Sequence[float], percent: float) -> float:
    """The smallest time that so many percent do not exceed."""
    return sorted(times)[max(0, math.ceil(len(times) * percent / 100) - 1)]


def exponent(costs: Mapping[int, float]) -> float:
    """The k in cost = c · size^k that fits best: 1 is linear, 2 is quadratic."""
    return linear_regression([math.log(size) for size in costs], [math.log(cost) for cost in costs.values()]).slope
