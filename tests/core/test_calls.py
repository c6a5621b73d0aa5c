"""The calls of a transcript as a mapping, a sequence, a table, and something to search."""

from __future__ import annotations

import json
import re
from typing import Any

import pandas
import pytest
from hypothesis import given

from tests.support.strategies import transcripts
from toolcall_nb.core.call_table import CALL_COLUMNS
from toolcall_nb.core.calls import CallRecord
from toolcall_nb.core.text_search import TextPattern, part_texts
from toolcall_nb.core.transcript import (
    Approval,
    FilePart,
    Message,
    SourceDocumentPart,
    State,
    TextPart,
    ToolCall,
    ToolCalls,
    Transcript,
)
from toolcall_nb.errors import MissingPackageError, UsageError

RUN = Transcript(
    (
        Message("user", (TextPart("Count the rows."),)),
        Message(
            "assistant",
            (
                ToolCall(
                    id="a",
                    name="sql",
                    state=State.OUTPUT_AVAILABLE,
                    input={"query": "select 1\nfrom t", "limit": 5},
                    output=[1, 2],
                    record=CallRecord(started=0.5, seconds=2.25, tokens=7),
                ),
                ToolCall(
                    id="b",
                    name="sql",
                    state=State.OUTPUT_ERROR,
                    input={"query": "selec"},
                    error="TimeoutError: no answer",
                    tool_metadata={"parent": "a"},
                ),
            ),
            metadata={"usage": {"inputTokens": 3}, "added": {"a": 99, "b": 4}},
        ),
        Message("assistant", (ToolCall(id="c", name="read", state=State.INPUT_AVAILABLE, input="plain"),)),
    )
)


def test_calls_are_found_by_id_by_number_and_by_slice() -> None:
    calls = RUN.calls
    assert calls["b"] is calls[1] is calls[-2]
    assert [*calls[1:]] == ["b", "c"]
    assert isinstance(calls[:1], ToolCalls)
    assert [*calls[::-1]] == ["c", "b", "a"] == [*reversed(calls)]
    number: object = 0
    assert ("a" in calls, number in calls, "z" in calls) == (True, False, False)
    with pytest.raises(IndexError):
        calls[3]
    with pytest.raises(KeyError):
        calls["z"]


def test_a_filter_takes_names_states_text_and_the_least_duration() -> None:
    calls = RUN.calls
    assert [*calls.filter(name="sql")] == ["a", "b"]
    assert [*calls.filter(name=["read", "none"])] == ["c"]
    assert [*calls.filter(state="output-error")] == [*calls.filter(state="Error")] == ["b"]
    assert [*calls.filter(state=State.OUTPUT_ERROR)] == ["b"]
    assert [*calls.filter(state=("called", "completed"))] == ["a", "c"]
    assert [*calls.filter(text="NO ANSWER")] == ["b"]
    assert [*calls.filter(min_seconds=2)] == ["a"]
    assert [*calls.filter(min_seconds=3)] == []
    assert [*calls.filter(name="sql").filter(state="error")] == [*calls.filter(name="sql", state="error")] == ["b"]
    assert [*calls.filter()] == ["a", "b", "c"]


def test_a_state_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"There is no state 'failed'\. The states are pending, .*output-error"):
        RUN.calls.filter(state="failed")


def test_a_search_finds_text_in_any_case_and_expressions_as_they_are() -> None:
    calls = RUN.calls
    assert [*calls.search("SELECT 1\nFROM")] == ["a"]
    assert [*calls.search('"limit":5')] == ["a"]
    assert [*calls.search(re.compile("selec?$", re.MULTILINE))] == ["b"]
    assert [*calls.search(re.compile("TIMEOUT"))] == []
    for nothing in ("", re.compile("")):
        with pytest.raises(UsageError, match="not empty"):
            calls.search(nothing)
    with pytest.raises(UsageError, match="a text or a compiled"):
        calls.search(3)  # type: ignore[arg-type]


def test_a_text_is_found_where_the_letters_have_other_lengths_in_lower_case() -> None:
    pattern = TextPattern("x")
    assert pattern.find("İİİ x") == (4, 5)
    assert TextPattern("é").find("CAFÉ") == (3, 4)
    assert TextPattern("a.c").find("abc") is None


def test_bytes_of_files_are_not_searched() -> None:
    picture = FilePart("data:image/png;base64,QUJD", "image/png")
    assert [text.text for text in part_texts(picture)] == ["image/png"]
    assert [text.text for text in part_texts(SourceDocumentPart("1", "a/b", "Report"))] == ["Report"]


def test_the_texts_among_the_contents_of_a_result_are_searched() -> None:
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QUJD"}
    call = ToolCall(id="c", name="f", output=1, contents=[{"type": "text", "text": "beside it"}, picture])
    found = [text.text for text in part_texts(call)]
    assert "beside it" in found
    assert "QUJD" not in "".join(found)


@given(transcripts())
def test_each_text_of_a_transcript_is_found_by_searching_for_it(transcript: Transcript) -> None:
    for call in transcript.calls.values():
        for text in filter(None, part_texts(call)):
            if text.text and TextPattern(text.text).find(text.text):
                assert call.id in transcript.calls.search(text.text)
        assert call.id in transcript.calls.search(re.compile(re.escape(call.name)))


def test_the_frame_has_a_row_for_each_call_and_a_column_for_each_argument() -> None:
    frame = RUN.calls.df
    assert [*frame.columns] == [*CALL_COLUMNS, "args.query", "args.limit"]
    assert [*frame.id] == ["a", "b", "c"]
    assert [*frame.turn] == [1, 1, 2]
    assert [*frame.depth] == [0, 1, 0]
    assert [*frame.state] == ["output-available", "output-error", "input-available"]
    assert (frame.seconds[0], frame.started[0], frame.result[0], frame.result_text[0]) == (2.25, 0.5, [1, 2], "[1,2]")
    assert (frame.error_type[1], frame["args.query"][1], frame.parent[1]) == ("TimeoutError", "selec", "a")
    assert [*frame.tokens[:2]] == [7, 4]
    assert frame.arguments[2] == "plain"


def test_what_is_not_known_is_na_and_not_zero() -> None:
    frame = RUN.calls.df
    unknown = ["seconds", "started", "tokens", "parent", "error", "result", "result_bytes", "truncated", "args.limit"]
    assert all(frame[column][2] is pandas.NA for column in unknown)
    assert {f"{kind}" for kind in frame[["seconds", "tokens", "name", "truncated"]].dtypes} == {
        "Float64",
        "Int64",
        "string",
        "boolean",
    }
    assert frame.seconds.sum() == 2.25


def test_equal_calls_have_one_fingerprint_and_are_counted() -> None:
    calls = [ToolCall(id=f"{n}", name="f", input=value) for n, value in enumerate([{"a": 1, "b": 2}, {"b": 2, "a": 1}])]
    frame = ToolCalls([*calls, ToolCall(id="x", name="g", input={"a": 1, "b": 2})]).df
    assert frame.fingerprint[0] == frame.fingerprint[1] != frame.fingerprint[2]
    assert [*frame.attempt] == [1, 2, 1]


def test_the_approval_is_in_the_frame() -> None:
    approvals = [Approval(id="1"), Approval(id="1", approved=True), Approval(id="1", approved=False)]
    automatic = Approval(id="1", approved=True, is_automatic=True)
    frame = ToolCalls(
        ToolCall(id=f"{n}", name="f", approval=approval) for n, approval in enumerate([*approvals, automatic, None])
    ).df
    assert frame.approval.to_list() == ["asked", "approved", "denied", "automatic", pandas.NA]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([1, 2], "Int64"),
        ([1, 2.5], "Float64"),
        ([1, 2**70], "object"),
        ([2.5, 2**70], "object"),
        ([True, 1], "object"),
        ([[1, 2], [3, 4]], "object"),
        (["a", {"b": 1}], "object"),
        ([None, None], "object"),
    ],
)
def test_a_column_keeps_the_values_as_they_are(value: list[Any], kind: str) -> None:
    frame = ToolCalls(ToolCall(id=f"{n}", name="f", input={"x": each}) for n, each in enumerate(value)).df
    assert str(frame["args.x"].dtype) == kind
    kept = [None if each is pandas.NA else each for each in frame["args.x"].to_list()]
    assert json.dumps(kept) == json.dumps([float(each) for each in value] if kind == "Float64" else value)


def test_calls_inside_each_other_in_a_circle_or_in_a_long_row_have_a_depth() -> None:
    circle = [ToolCall(id=a, name="f", tool_metadata={"parent": b}) for a, b in ("ab", "bc", "ca", "da", "ee", "fz")]
    assert ToolCalls(circle).df.depth.between(0, 4).all()
    row = [ToolCall(id=f"{n}", name="f", tool_metadata={"parent": f"{n - 1}"}) for n in range(5_000)]
    assert [*ToolCalls(row).df.depth] == [*ToolCalls(reversed(row)).df.depth[::-1]] == [*range(5_000)]


def test_calls_with_very_many_arguments_have_a_bounded_number_of_columns() -> None:
    calls = ToolCalls(ToolCall(id=f"{n}", name="f", input={f"k{n}": n}) for n in range(2_000))
    assert len(calls.df.columns) == len(CALL_COLUMNS) + 200
    assert calls.df.arguments[1_999] == {"k1999": 1_999}


@given(transcripts())
def test_every_transcript_has_a_frame(transcript: Transcript) -> None:
    assert len(transcript.calls.df) == len(transcript.calls)


def test_no_calls_are_an_empty_frame_with_the_same_columns() -> None:
    assert [*ToolCalls().df.columns] == [*CALL_COLUMNS]


def test_without_pandas_the_error_has_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"needs the package 'pandas'\. Install it with: pip install"):
        _ = RUN.calls.df


def test_the_table_shows_seconds_and_tokens_only_where_they_are_known() -> None:
    bundle = RUN.calls._repr_mimebundle_()
    assert bundle["text/plain"].split("\n")[0].split() == [
        "name",
        "arguments",
        "state",
        "seconds",
        "tokens",
        "result",
        "id",
    ]
    assert "2.25 s" in bundle["text/plain"]
    assert "<tr class=tc-output-error><td>sql</td>" in bundle["text/html"]
    assert "<td class=tc-number>2.25 s</td>" in bundle["text/html"]
    assert "<span class=tc-state>Error</span>" in bundle["text/html"]
    plain = Transcript((RUN.messages[2],)).calls._repr_mimebundle_()
    assert plain["text/plain"].split("\n")[0].split() == ["name", "arguments", "state", "result", "id"]
