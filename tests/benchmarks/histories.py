"""Measures the whole path from text to events to HTML with the history of a coding agent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.benchmarks.agent_history import agent_history
from tests.benchmarks.documents import flushes
from tests.benchmarks.measuring import alternating, frozen, one_shot
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from tests.benchmarks.streaming import stream

__all__ = ["rows"]

_PER_FLUSH = {8: (8, 5), 25: (5, 3)}
"""By deltas in a flush, the bounds "must" and "aim" for the cost, in S."""
_FORMS = {"with its calls": True, "as Markdown": False}


def rows(scale: Scale) -> Iterator[Row]:
    """Measures the cost in S of a history whose calls are callouts, and of one without calls."""
    for form, calls in _FORMS.items():
        text = agent_history(scale.history, calls=calls)
        flushed = {together: flushes(text, together) for together in _PER_FLUSH}
        works = {str(together): partial(stream, pieces) for together, pieces in flushed.items()}
        with frozen():
            times = alternating({"S": partial(one_shot, text), **works}, scale.rounds)
        for together, (must, aim) in _PER_FLUSH.items():
            seconds = times[str(together)]
            each = seconds / len(flushed[together]) * 1e6
            detail = f"{each:.0f} µs a flush; S is {times['S'] / len(text) * 1e9:.0f} ns a character"
            name = f"a coding agent's history {form}, {len(text) // 1000} kB, {together} deltas a flush"
            yield Row(name, seconds / times["S"], "S", must, aim, detail)
