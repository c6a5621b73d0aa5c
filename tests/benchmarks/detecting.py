"""Measures the detector alone: text to events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tests.benchmarks.documents import mixed
from tests.benchmarks.measuring import alternating, one_shot
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb.dialects import DIALECTS, detector

__all__ = ["rows"]

_CUT = 64


def _detect(dialect: str, pieces: Sequence[str]) -> None:
    detect = detector(dialect)
    for piece in pieces:
        detect.feed(piece)
    detect.close()


def rows(scale: Scale) -> Iterator[Row]:
    """Measures each dialect on a document of the middle size with callouts."""
    text = mixed(scale.documents[-2])
    pieces = [text[at : at + _CUT] for at in range(0, len(text), _CUT)]
    works = {"S": partial(one_shot, text)} | {name: partial(_detect, name, pieces) for name in DIALECTS}
    times = alternating(works, 2 * scale.rounds + 1)
    for dialect in DIALECTS:
        name = f"detector alone, {dialect}, text to events, cuts of {_CUT} characters"
        yield Row(name, times[dialect] / times["S"], "S", 0.2, 0.08)
