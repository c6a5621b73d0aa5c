"""How much is measured: everything, or as little as shows that the benchmark runs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "Scale"]


@dataclass(frozen=True)
class Scale:
    """Sizes in characters, ascending; numbers of calls; how often each is run."""

    documents: tuple[int, ...]
    """Of mixed documents; the rows speak of the last two, growth of all."""
    giants: tuple[int, ...]
    """Of documents that are one block."""
    saved: int
    """Of a transcript that is read."""
    stream: int
    """Of the stream after which memory is looked at."""
    calls: tuple[int, ...]
    """In a page that goes on; the first number also in the notebook that is opened."""
    peers: tuple[int, ...]
    """Of what others are given."""
    frames: int
    seconds: float
    """For which messages are counted."""
    rounds: int
    fresh: int
    """How many fresh processes."""


FULL = Scale(
    documents=(10_000, 100_000, 1_000_000),
    giants=(5_000, 20_000, 80_000),
    saved=1_000_000,
    stream=100_000_000,
    calls=(1_000, 10_000),
    peers=(5_000, 10_000, 20_000, 40_000),
    frames=200,
    seconds=4.0,
    rounds=3,
    fresh=5,
)

QUICK = Scale(
    documents=(500, 1_000, 2_000),
    giants=(500, 1_000, 2_000),
    saved=2_000,
    stream=20_000,
    calls=(3, 6),
    peers=(500, 1_000),
    frames=3,
    seconds=0.1,
    rounds=1,
    fresh=1,
)
