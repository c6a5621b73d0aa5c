"""Frames, series and arrays reach the model with every cell, or with a count of what is left out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import pandas
import pyarrow
import pytest

from toolcall_nb.core.result_text import format_output
from toolcall_nb.tools import Outcome, Result, Tool

CELL = "x" * 66
ROWS, COLUMNS = 61, 30
WHOLE = "chat.outcomes['c1'].value"


def run(value: Any, **options: Any) -> Outcome:
    outcome = Tool.from_function(lambda: value, name="f", **options).run({}, lambda progress: None, WHOLE)
    assert outcome.error is None
    return outcome


def sent(value: Any, **options: Any) -> str:
    outcome = run(value, **options)
    return format_output(outcome.output) if outcome.model_text is None else outcome.model_text


def columns(rows: int = ROWS, width: int = COLUMNS) -> dict[str, list[str]]:
    return {f"c{column}": [f"{CELL}{column}-{row}" for row in range(rows)] for column in range(width)}


def polars(name: str) -> Callable[[dict[str, list[str]]], Any]:
    return lambda cells: getattr(pytest.importorskip("polars"), name)(cells)


FRAMES: dict[str, Callable[[dict[str, list[str]]], Any]] = {
    "pandas": pandas.DataFrame,
    "pandas style": lambda cells: pandas.DataFrame(cells).style,
    "pandas index": lambda cells: pandas.MultiIndex.from_frame(pandas.DataFrame(cells)),
    "polars": polars("DataFrame"),
    "arrow table": pyarrow.table,
    "arrow batch": pyarrow.record_batch,
    "numpy records": lambda cells: pandas.DataFrame(cells).to_records(index=False).astype([(c, "U80") for c in cells]),
}
COLUMN: dict[str, Callable[[list[str]], Any]] = {
    "pandas series": pandas.Series,
    "pandas index": pandas.Index,
    "pandas array": pandas.Categorical,
    "arrow chunks": lambda cells: pyarrow.chunked_array([cells[:7], cells[7:]]),
    "arrow array": pyarrow.array,
    "numpy": numpy.array,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_cell_of_a_frame_within_the_limit_reaches_the_model(kind: str) -> None:
    cells = columns(40, 25)
    with pandas.option_context("display.max_rows", 4, "display.max_columns", 3, "display.max_colwidth", 10):
        rows = list(csv.reader(io.StringIO(sent(FRAMES[kind](cells), limit=100_000))))
    first = rows[0].index("c0")
    assert rows[0][first:] == list(cells)
    assert [row[first:] for row in rows[1:]] == [list(row) for row in zip(*cells.values(), strict=True)]


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_and_columns_that_are_left_out_are_counted(kind: str) -> None:
    many = sent(FRAMES[kind](columns(ROWS, 8)))
    kept = sum(CELL in line for line in many.splitlines())
    assert 20 < kept < ROWS
    assert f"… {ROWS - kept} rows left out …" in many
    assert many.endswith(f"… left out: {ROWS - kept} of {ROWS} rows; all in {WHOLE} …")
    assert f"{CELL}7-{ROWS - 1}" in many  # the end is there too
    wide = sent(FRAMES[kind](columns(4, 200)))
    kept = wide.splitlines()[0].count("c") - 1  # the note has one too
    assert f"… {200 - kept} columns left out …" in wide
    assert f"{200 - kept} of 200 columns" in wide
    assert max(len(many), len(wide)) <= 20_000


@pytest.mark.parametrize("kind", COLUMN)
def test_every_item_of_a_series_or_an_array_reaches_the_model_or_is_counted(kind: str) -> None:
    items = [f"{CELL}{row}" for row in range(1_500)]
    text = sent(COLUMN[kind](items), limit=200_000)
    assert all(item in text for item in items)
    text = sent(COLUMN[kind](items))
    kept = text.count(CELL)
    assert f"left out: {1_500 - kept:,} of 1,500 rows; all in {WHOLE}" in text


def test_the_characters_of_cells_that_are_left_out_are_counted() -> None:
    text = sent(pandas.DataFrame({"text": ["z" * 1_000_000, "short"]}))
    kept = text.count("z")
    assert kept > 1_000
    assert f"{1_000_000 - kept:,} characters of cells" in text
    assert "1,short" in text


def test_numbers_keep_all_their_digits_whatever_the_display_options_are() -> None:
    numbers = numpy.arange(1, 1_200) / 7
    with numpy.printoptions(precision=2, threshold=5), pandas.option_context("display.precision", 2):
        for value in (numbers, pandas.DataFrame({"n": numbers}), pandas.Series(numbers), pyarrow.array(numbers)):
            text = sent(value, limit=100_000)
            assert all(repr(float(number)) in text for number in numbers)


def test_a_large_array_is_a_table_with_its_ends() -> None:
    text = sent(numpy.arange(1_000_000).reshape(1_000, 1_000))
    assert "\n999," in text
    assert text.splitlines()[-2].endswith(",999999")
    assert "of 1,000 rows" in text
    assert "of 1,000 columns" in text
    assert "\n9 9 99," not in text
    assert "\n1 2," in sent(numpy.ones((30, 40, 50)))


def test_missing_values_dates_and_containers_in_cells_are_written_out() -> None:
    frame = pandas.DataFrame(
        {
            "n": [0.1 + 0.2, None],
            "text": ["NaN", ""],
            "list": [[1, {"a": 2}], numpy.arange(3)],
            "day": pandas.to_datetime(["2024-01-01", None]),
            "any": pandas.Series([None, pandas.NA], dtype=object),
        }
    )
    assert sent(frame).splitlines()[1:] == [
        '0,0.30000000000000004,"NaN","[1,{""a"":2}]",2024-01-01 00:00:00,null',
        '1,NaN,"","[0,1,2]",NaT,<NA>',
    ]
    assert sent(numpy.array(["2024-01-01"], "M8[ns]")) == '["2024-01-01T00:00:00.000000000"]'
    assert sent(numpy.array([(1, "a")], [("x", int), ("y", "U1")])[0]) == '{"x":1,"y":"a"}'


@dataclass
class Report:
    title: str
    table: Any


@pytest.mark.parametrize(
    "wrap",
    [
        lambda frame: {"title": "t", "table": frame},
        lambda frame: ["t", frame],
        lambda frame: ("t", [frame]),
        lambda frame: Report("t", frame),
        lambda frame: Result(output={"title": "t", "table": frame}, display="seen"),
        lambda frame: Result(output="t", model={"table": frame}),
    ],
)
def test_a_frame_inside_another_value_is_whole_too_or_counted(wrap: Callable[[Any], Any]) -> None:
    cells = columns(5, 30)
    text = sent(wrap(pandas.DataFrame(cells)))
    assert all(cell in text for column in cells.values() for cell in column)
    text = sent(wrap(pandas.DataFrame(columns(ROWS, 8))))
    assert len(text) < 20_300
    kept = text.count(f"{CELL}0-")
    assert f"left out: {ROWS - kept} of {ROWS} rows" in text


def test_two_frames_share_the_room() -> None:
    text = json.loads(sent({"a": pandas.DataFrame(columns(ROWS, 8)), "b": pandas.DataFrame(columns(ROWS, 8))}))
    for table in text.values():
        assert table.count(f"{CELL}0-") > 5
        assert f"of {ROWS} rows" in table


@pytest.mark.parametrize(
    ("value", "note"),
    [
        (pandas.DataFrame(columns()), f"51 of {ROWS} rows, 10 of {COLUMNS} columns, 200 ends of cells"),
        (pandas.DataFrame({"n": range(1_000)}), "990 of 1,000 rows"),
        (pandas.DataFrame({"text": ["y" * 100, "dots..."]}), "1 ends of cells"),
        (pandas.DataFrame({"text": ["whole", "dots..."]}), ""),
        (pandas.DataFrame({"n": range(50)}), ""),
        (pandas.DataFrame(), ""),
    ],
)
def test_the_html_of_a_frame_says_how_much_is_left_out_of_it(value: Any, note: str) -> None:
    with pandas.option_context("display.max_columns", 20):
        html = (run(value).display or {})["text/html"]
    assert ("left out" in html) == bool(note)
    assert note in html


def test_a_query_that_has_not_run_is_sent_as_its_plan() -> None:
    frames = pytest.importorskip("polars")
    assert sent(frames.LazyFrame({"a": [1]}).filter(frames.col("a") > 0)).startswith("naive plan")
