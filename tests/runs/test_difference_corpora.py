"""Runs that other programs recorded are compared: none differs from itself, and any two can be shown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.corpora import corpus
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import ToolcallError
from toolcall_nb.runs.difference import diff
from toolcall_nb.runs.reading import read

FOLDERS = ("claude_code", "codex", "langsmith", "message_lists", "openinference", "otel_genai")


def runs_of(folder: Path) -> Iterator[Transcript]:
    """Reads the files of a folder that hold one run each."""
    for path in sorted(folder.glob("*.json*")):
        if path.name != "MANIFEST.json" and not path.name.endswith(".truth.json"):
            try:
                yield read(path)
            except ToolcallError:  # several runs, or none: tests of the formats say which
                continue


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_recorded_runs_can_be_compared(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runs = list(runs_of(corpus("traces") / name))
    assert len(runs) > 2
    for transcript in runs:
        assert not diff(transcript, transcript)
    for a, b in pairwise(runs):
        forth, back = diff(a, b), diff(b, a)
        assert bool(forth) is bool(back)
        assert forth.counts["+"] == back.counts["-"]
        assert forth.to_text()
        html = forth._repr_mimebundle_()["text/html"]
        assert html.count("<details") == html.count("</details>")
    capsys.readouterr()  # lines that cannot be read are named on standard error
