"""Measures the costs of other tools on the same deltas; each cost names the tool's version and the code that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.benchmarks.peers import in_process, jupyter, streamdown, textual
from tests.benchmarks.report import Cost, LeftOut
from tests.benchmarks.scale import Scale

__all__ = ["measured"]

_PEERS: dict[str, Callable[[Scale], Iterator[Cost]]] = {
    "in this process": in_process.costs,
    "in a kernel": jupyter.costs,
    "Textual": textual.costs,
    "Streamdown": streamdown.costs,
}


def measured(scale: Scale, say: Callable[[str], object]) -> Iterator[Cost | str]:
    """Yields the cost of each tool, or the reason why it is left out."""
    for name, costs in _PEERS.items():
        say(f"benchmark: peers, {name}")
        try:
            yield from costs(scale)
        except LeftOut as reason:
            yield f"{name}: {reason}"
