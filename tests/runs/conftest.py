"""Fixtures for the tests of recorded runs."""

from __future__ import annotations

import pytest

from tests.support.run_logs import LINES
from toolcall_nb.runs import recorded_file
from toolcall_nb.runs.formats import TRACE_FORMATS


@pytest.fixture
def one_run_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the format of `tests.support.run_logs` the first of the known formats."""
    monkeypatch.setattr(recorded_file, "TRACE_FORMATS", (LINES, *TRACE_FORMATS))
