"""Measures our own path, and rendering the whole text again at each delta."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tests.benchmarks.documents import deltas, mixed
from tests.benchmarks.measuring import alternating, exponent, once, one_shot
from tests.benchmarks.report import Cost, packaged
from tests.benchmarks.scale import Scale
from tests.benchmarks.streaming import stream

__all__ = ["costs"]

_SAMPLES = 100


def costs(scale: Scale) -> Iterator[Cost]:
    """Measures both, without a kernel and a page."""
    yield _ours(sorted({*scale.peers, *scale.documents[1:]}), scale.rounds)
    yield _again(scale.peers)


def _ours(sizes: Sequence[int], rounds: int) -> Cost:
    parts = {size: deltas(mixed(size)) for size in sizes}
    times = alternating({str(size): partial(stream, parts[size]) for size in sizes}, rounds)
    whole = {size: times[str(size)] for size in sizes}
    how = "text to events to HTML and patches, a flush at each delta"
    each = {size: whole[size] / len(parts[size]) for size in sizes}
    return Cost("toolcall_nb", packaged("toolcall-nb"), how, each, growth=exponent(whole))


def _again(sizes: Sequence[int]) -> Cost:
    each = {size: _sampled(mixed(size)) for size in sizes}
    whole = {size: each[size] * len(deltas(mixed(size))) for size in sizes}
    how = f"md.render of the whole text at each delta; the mean of {_SAMPLES} prefixes evenly spread"
    return Cost("everything parsed again", packaged("markdown-it-py"), how, each, growth=exponent(whole))


def _sampled(text: str) -> float:
    ends = [len(text) * (2 * number + 1) // (2 * _SAMPLES) for number in range(_SAMPLES)]
    return once(lambda: [one_shot(text[:end]) for end in ends]) / _SAMPLES
