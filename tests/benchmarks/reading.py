"""Measures reading a saved transcript: portable Markdown to a transcript, and that to HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tests.benchmarks.documents import mixed
from tests.benchmarks.measuring import alternating, one_shot
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.render import to_html

__all__ = ["rows"]


def rows(scale: Scale) -> Iterator[Row]:
    """Measures reading a saved transcript, relative to parsing its text once."""
    text = Transcript.from_markdown(mixed(scale.saved)).to_markdown()
    transcript = Transcript.from_markdown(text)
    works: dict[str, Callable[[], object]] = {
        "S": partial(one_shot, text),
        "whole": lambda: to_html(Transcript.from_markdown(text)),
        "read": lambda: Transcript.from_markdown(text),
        "draw": lambda: to_html(transcript),
    }
    times = alternating(works, scale.rounds)
    read, draw = times["read"] / times["S"], times["draw"] / times["S"]
    detail = f"{len(transcript.calls)} calls; reading {read:.2f} S, drawing {draw:.2f} S"
    yield Row("reading a saved transcript of 1 MB, to HTML", times["whole"] / times["S"], "S", 1.5, 1.15, detail)
