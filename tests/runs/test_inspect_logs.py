"""Logs of Inspect are read as runs: a run for each sample, with times, usage, errors and the calls of agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest
from hypothesis import given

from tests.runs.inspect_samples import HEADER, SAMPLE, asked, log, request, time, told, tool
from tests.support.corpora import corpus
from tests.support.trace_records import (
    call_rows,
    check_runs,
    format_of,
    nested_texts,
    records_in,
    run_in,
    runs_in,
    spoiled,
)
from toolcall_nb import read, read_many
from toolcall_nb.core.steps import steps_of
from toolcall_nb.core.transcript import ErrorPart, FilePart, State
from toolcall_nb.core.usage import read_usage
from toolcall_nb.errors import UsageError
from toolcall_nb.runs.file_records import FileRecords
from toolcall_nb.runs.formats.inspect_logs import INSPECT


def span(kind: str, span_id: str, **fields: Any) -> dict[str, Any]:
    return {"event": f"span_{kind}", "id": span_id, "span_id": span_id, "timestamp": time(1), **fields}


TASK = {"type": "text", "text": "attachment://h1"}
PICTURE = {"type": "image", "image": "data:image/png;base64,AA=="}


def test_a_sample_is_a_run_with_its_messages() -> None:
    run = run_in([log()], "inspect")
    assert (run.id, run.title, run.seconds) == ("a7_epoch_2", "ctf", 6.5)
    system, user, assistant = run.transcript.messages
    assert (system.text, user.text) == ("Be brief.", "Find the flag in the files of this folder.")
    assert isinstance(user.parts[1], FilePart)
    assert assistant.text == "I look.\n\nI look.\n\nflag"
    assert run.extra["sample"]["scores"] == {"match": {"value": "C"}}
    assert run.extra["eval"] == HEADER["eval"]
    assert [each.message for each in run.transcript.diagnostics] == [
        "2 events have no place in a transcript (sample_init 1, score 1)."
    ]


def test_calls_have_their_results_errors_and_times() -> None:
    first, second = run_in([log()], "inspect").transcript.calls.values()
    assert (first.input, first.output, first.started, first.seconds) == ({"cmd": "ls"}, "flag.txt", 2.0, 0.5)
    assert first.provider_metadata == {"inspect": {"working_time": 0.25}}
    assert (second.state, second.error) == (State.OUTPUT_ERROR, "No file x")
    assert second.provider_metadata is not None
    assert second.provider_metadata["inspect"]["error"]["type"] == "file_not_found"


@pytest.mark.parametrize(
    ("block", "media_type"),
    [
        (PICTURE, "image/png"),
        ({"type": "audio", "audio": "data:audio/wav;base64,AA==", "format": "wav"}, "audio/wav"),
        ({"type": "video", "video": "data:video/mp4;base64,AA==", "format": "mp4"}, "video/mp4"),
        ({"type": "document", "document": "data:text/csv;base64,AA==", "filename": "a.csv"}, "text/csv"),
        ({"type": "document", "document": "https://h/a.pdf", "filename": "a.pdf"}, "application/pdf"),
    ],
)
@pytest.mark.parametrize("error", [None, {"type": "unknown", "message": "It broke."}], ids=["result", "error"])
def test_a_result_has_its_texts_and_files_in_order(block: Any, media_type: str, error: Any) -> None:
    content = [{"type": "text", "text": "It broke."}, block]
    messages = [asked("m1", "c1"), told("c1", content, error=error)]
    [call] = run_in([log(messages=messages, events=[])], "inspect").transcript.calls.values()
    assert call.contents is not None
    text, file = call.contents
    assert (text, file["mediaType"]) == ({"type": "text", "text": "It broke."}, media_type)
    assert file.get("filename") == block.get("filename")
    assert (call.error is not None) is (error is not None)


def test_usage_is_that_of_each_request_or_else_of_the_sample() -> None:
    usage = read_usage(run_in([log()], "inspect").transcript.messages)
    assert len(usage.requests) == 3
    assert usage.usage == {"inputTokens": 30, "outputTokens": 9, "totalTokens": 39}
    run = run_in([log(events=[], model_usage={"m-1": {"input_tokens": 5, "output_tokens": 2}})], "inspect")
    assert read_usage(run.transcript.messages).usage == {"inputTokens": 5, "outputTokens": 2}


def test_calls_inside_the_span_of_a_call_are_below_it() -> None:
    events = [
        tool(1, "c1", "done", span_id="solver"),
        span("begin", "s1", type="tool", name="bash", parent_id="solver"),
        span("begin", "agent", type="agent", name="helper", parent_id="s1"),
        request(1.1, {"id": "x1", "content": "Searching."}, span_id="agent"),
        tool(1.2, "inner", "found", name="search", span_id="agent"),
    ]
    run = run_in([log(events=events)], "inspect")
    assert [row for row in call_rows(run) if row[0] in ("c1", "inner")] == [
        ("c1", "bash", "output-available", None),
        ("inner", "search", "output-available", "c1"),
    ]
    assert nested_texts(run.transcript, "c1") == ["Searching."]
    step = steps_of(run.transcript.messages[-1], "c1")[0]
    assert (step.agent, step.started) == ("helper", 0.1)


def test_in_older_logs_a_call_contains_the_events_of_what_ran_inside_it() -> None:
    run = run_in([log(events=[tool(1, "c1", "done", events=[tool(1.2, "inner", "found", name="search")])])], "inspect")
    assert ("inner", "search", "output-available", "c1") in call_rows(run)


def test_a_call_that_only_the_events_have_comes_last_with_a_diagnostic() -> None:
    run = run_in([log(events=[tool(1, "lone", "done", name="search")])], "inspect")
    assert call_rows(run)[-1] == ("lone", "search", "output-available", None)
    assert "lone" in run.transcript.diagnostics[0].message


def test_spans_whose_parents_form_a_loop_have_no_call() -> None:
    spans = [
        span("begin", "a", parent_id="b", type="tool", name="x"),
        span("begin", "b", parent_id="a", type="tool", name="x"),
    ]
    run = run_in(
        [log(events=[*spans, tool(1, "p", "", name="x", span_id="a"), tool(2, "q", "", name="x", span_id="b")])],
        "inspect",
    )
    assert {row[0] for row in call_rows(run)} >= {"c1", "c2"}


def test_a_tool_that_the_provider_ran_is_a_call() -> None:
    block = {
        "type": "tool_use",
        "id": "w1",
        "name": "web_search",
        "arguments": '{"q": "x"}',
        "result": "Found",
        "error": None,
    }
    run = run_in([log(messages=[{"role": "assistant", "content": [block]}], events=[])], "inspect")
    [call] = run.transcript.calls.values()
    assert (call.name, call.input, call.output) == ("web_search", {"q": "x"}, "Found")


def test_the_error_of_a_sample_is_shown() -> None:
    run = run_in([log(error={"message": "Sandbox lost", "traceback": "..."})], "inspect")
    last = run.transcript.messages[-1].parts[-1]
    assert isinstance(last, ErrorPart)
    assert last.text == "Sandbox lost"


def test_members_of_an_archive_are_one_log() -> None:
    members = [
        {"member": "_journal/start.json", "content": HEADER},
        {"member": "header.json", "content": HEADER},
        {"member": "summaries.json", "content": [{}]},
        *({"member": f"samples/{number}_epoch_1.json", "content": {**SAMPLE, "id": number}} for number in (1, 2)),
    ]
    assert [run.id for run in runs_in(members, "inspect")] == ["1_epoch_2", "2_epoch_2"]


@pytest.mark.parametrize("samples", [{}, {"samples": None}, {"samples": []}])
def test_a_log_without_samples_is_a_run_without_messages(samples: dict[str, Any]) -> None:
    run = run_in([{**HEADER, **samples}], "inspect")
    assert (run.id, run.transcript.messages) == ("r1", ())
    assert run.transcript.diagnostics[0].message == "The log has no samples."


@given(spoiled([log(), {"member": "header.json", "content": HEADER}, {"member": "samples/1.json", "content": SAMPLE}]))
def test_no_record_makes_it_raise(records: list[Any]) -> None:
    INSPECT.recognises(records[:20])
    check_runs(list(INSPECT.read(records)))


EXPECTED = {
    "docent__log.eval": None,
    "inspect_ai__log_message_deduplication.eval": (1, 5, 5, 0),
    "inspect_ai__log_tool_call_error.json": (1, 11, 0, 11),
    "inspect_ai__2025-05-12T20-28-13-04-00_popularity.json": (3, 0, 0, 0),
    "inspect_ai__log_streaming.eval": (4, 0, 0, 0),
}
"""The number of samples, of calls, of those with an output and of those with an error."""


def test_every_log_of_the_corpus_is_read() -> None:
    for path in sorted(corpus("traces/inspect").iterdir()):
        if path.suffix not in (".json", ".eval") or path.name == "MANIFEST.json":
            continue
        records = records_in(path)
        if isinstance(records[0], dict) and set(records[0]) == {"description", "events", "expected"}:
            assert format_of(records) is not INSPECT  # events for the tests of a timeline
            continue
        runs = runs_in(records, "inspect")
        states = [call.state for run in runs for call in run.transcript.calls.values()]
        found = (states.count(State.OUTPUT_AVAILABLE), states.count(State.OUTPUT_ERROR))
        if (expected := EXPECTED.get(path.name)) is not None:
            assert (len(runs), len(states), *found) == expected, path.name
        if path.name == "docent__log.eval":
            assert len(runs) > 5
            assert len(states) > 50
            assert all(call.started is not None for run in runs for call in run.transcript.calls.values())


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_one_bound_holds_for_all_members_of_an_archive_together(method: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb.eval"
    with ZipFile(path, "w", method) as archive:
        for number in range(4):
            archive.writestr(f"{number}.json", f'"{"a" * 10_000_000}"')
    with path.open("rb") as file:
        records = FileRecords(file, f"{path}", ".eval")
        assert len([*records]) == 1
    assert [problem.message for problem in records.problems] == [
        "the members from 1.json on: they hold more than the 16 MiB that are read of such an archive"
    ]


def test_a_pipe_and_a_device_in_a_folder_are_listed_as_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    (tmp_path / "b.json").symlink_to("/dev/zero")
    runs = read_many(tmp_path)
    assert len(runs) == 0
    kinds = [unread.reason.partition(" cannot be read: ")[2] for unread in runs.unread]
    assert kinds == ["it is a pipe, not a regular file", "it is a device, not a regular file"]
    for path in (tmp_path / "a.jsonl", tmp_path / "b.json"):
        with pytest.raises(UsageError, match="not a regular file"):
            read(path)
