"""Comparing two runs of many calls; main entry point: `rows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tests.benchmarks.measuring import alternating, exponent
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript
from toolcall_nb.runs.difference import diff

__all__ = ["rows"]

_TOOLS = ("read", "sql", "search", "write")


def rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows: similar runs, runs with nothing in common, and the growth of the former."""
    size = scale.calls[0]
    sizes = sorted({size, 2 * size, scale.calls[-1]})
    runs = {each: (_run(each), _run(each, every=20)) for each in sizes}
    works: dict[str, Callable[[], object]] = {str(each): partial(diff, *runs[each]) for each in sizes}
    works["shown"] = partial(_show, *runs[size])
    works["unrelated"] = partial(diff, runs[size][0], _run(size, prefix="other_"))
    times = alternating(works, scale.rounds)
    shown = f"{times['shown'] * 1e3:,.0f} ms with its display"
    yield Row(f"diff of two runs of {size:,} calls, 1 in 20 changed", times[str(size)], "s", 2.0, 0.5, shown)
    yield Row(f"diff of two runs of {size:,} calls, nothing in common", times["unrelated"], "s", 2.0, 0.5)
    costs = {each: times[str(each)] for each in sizes}
    detail = ", ".join(f"{each:,} calls {seconds * 1e3:,.0f} ms" for each, seconds in costs.items())
    yield Row("growth, diff of two similar runs", exponent(costs), "", 1.2, 1.1, detail)


def _run(size: int, *, every: int = 0, prefix: str = "") -> Transcript:
    """Returns a run of ``size`` calls, of which each ``every``-th has another argument and another result."""
    return Transcript((Message("assistant", tuple(_call(number, every, prefix) for number in range(size))),))


def _call(number: int, every: int, prefix: str) -> ToolCall:
    is_changed = bool(every) and number % every == 0
    return ToolCall(
        id=f"call_{number}",
        name=prefix + _TOOLS[number % len(_TOOLS)],
        input={"path": f"folder/{number % 50}.txt", "limit": number * 10 + is_changed},
        output=f"{number} lines were read\nfrom a file of {number * 7}\nchanged: {is_changed}",
        state=State.OUTPUT_AVAILABLE,
    )


def _show(a: Transcript, b: Transcript) -> object:
    return diff(a, b)._repr_mimebundle_()
