"""Saved outputs in notebooks are read as runs, from every version of this package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.support.released import FOLDER, plain_value
from tests.support.trace_records import check_runs, run_in, runs_in, spoiled
from toolcall_nb.core.transcript import Message, TextPart, ToolCall, Transcript
from toolcall_nb.render.saved_output import saved_bundle, saved_calls_bundle
from toolcall_nb.runs.formats.notebook_outputs import NOTEBOOK_OUTPUTS

CALL = ToolCall(id="c1", name="weather", input={"city": "Rome"}, output="24 °C")
TALK = Transcript((Message("user", (TextPart("Rome?"),)), Message("assistant", (CALL, TextPart("24 °C.")))))


def cell(*bundles: Any, **fields: Any) -> dict[str, Any]:
    outputs = [{"output_type": "display_data", "data": bundle, "metadata": {}} for bundle in bundles]
    return {
        "cell_type": "code",
        "id": "a1",
        "source": "%%toolchat\nRome?",
        "outputs": outputs,
        "metadata": {},
        **fields,
    }


def notebook(*cells: Any) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}


def test_each_output_with_a_transcript_is_a_run() -> None:
    bundle = saved_bundle(TALK)
    first, second = runs_in([notebook(cell(bundle), cell(bundle, id="a2"))], "notebook")
    assert first.transcript == second.transcript == TALK
    assert (first.id, first.title, second.id) == ("a1", "%%toolchat", "a2")
    assert first.extra == {"cell": 1, "source": "%%toolchat\nRome?"}


def test_texts_may_be_lists_of_lines_and_a_cell_may_have_several_outputs() -> None:
    bundle = {kind: text.splitlines(keepends=True) for kind, text in saved_bundle(TALK, is_run=True).items()}
    cells = cell(bundle, {"text/plain": "7"}, bundle, source=["%%toolchat\n", "Rome?"])
    assert [run.id for run in runs_in([notebook(cells)], "notebook")] == ["a1", "a1-2"]


def test_times_are_those_of_the_cell() -> None:
    times = {"iopub.execute_input": "2025-08-01T10:00:00Z", "shell.execute_reply": "2025-08-01T10:00:02.5Z"}
    run = run_in([notebook(cell(saved_bundle(TALK), metadata={"execution": times}))], "notebook")
    assert (run.began, run.seconds) == (1754042400.0, 2.5)


def test_tables_of_calls_and_outputs_of_others_are_no_runs() -> None:
    others = {"text/html": "<b>x</b>", "text/markdown": "**x**", "text/plain": "x"}
    tables = [saved_calls_bundle(calls) for calls in ((CALL,), ())]
    assert runs_in([notebook(cell(others, *tables), {"cell_type": "markdown", "source": "x"})], "notebook") == []


def test_a_run_that_was_cut_off_is_told() -> None:
    run = run_in([json.loads((FOLDER / "0.1.0" / "cut-off.ipynb").read_text("utf-8"))], "notebook")
    assert run.transcript.messages == ()
    assert "not finished" in run.transcript.diagnostics[0].message


SAVED = sorted(FOLDER.glob("*/[on]*.ipynb"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name} {path.name}")
def test_outputs_of_every_version_are_read_as_they_were_saved(path: Path) -> None:
    said = json.loads((path.parent / "transcripts.json").read_text("utf-8"))
    runs = runs_in([json.loads(path.read_text("utf-8"))], "notebook")
    saved = [value for name, value in said.items() if name.startswith(f"{path.name} ")]
    assert len(runs) == len(saved) > 10
    for number, run in enumerate(runs):
        assert plain_value(run.transcript) == said[f"{path.name} {number}"]


@given(spoiled([notebook(cell(saved_bundle(TALK)))]))
def test_no_record_makes_it_raise(records: list[Any]) -> None:
    NOTEBOOK_OUTPUTS.recognises(records[:20])
    check_runs(list(NOTEBOOK_OUTPUTS.read(records)))
