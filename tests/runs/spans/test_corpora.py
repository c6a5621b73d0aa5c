"""Every recorded trace of the corpora is read, and those with expected turns and calls agree with them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.corpora import corpus
from tests.support.span_files import read_span_file
from tests.support.trace_records import nested_texts
from toolcall_nb.core.events import MISSING
from toolcall_nb.core.transcript import State, TextPart, ToolCall
from toolcall_nb.core.usage import read_usage
from toolcall_nb.runs.formats.base import RecordedRun

pytestmark = pytest.mark.sampled(3)

GENAI, OPENINFERENCE = corpus("traces") / "otel_genai", corpus("traces") / "openinference"
TRUTHS = sorted(GENAI.glob("*.truth.json"))
OTHER_FORMATS = {"traceval__generic_traces.jsonl"}
"""Files in these folders that hold no spans."""
FILES = [
    path
    for folder in (GENAI, OPENINFERENCE)
    for path in sorted(folder.glob("*.json*"))
    if path.name != "MANIFEST.json" and ".truth." not in path.name and path.name not in OTHER_FORMATS
]


def words(run: RecordedRun, role: str) -> list[str]:
    return [
        part.text
        for message in run.transcript.messages
        if message.role == role
        for part in message.parts
        if isinstance(part, TextPart)
    ]


def called(call: ToolCall) -> str:
    """A call as the expectations give it: name, arguments, result, and whether it failed."""
    output = None if call.output is MISSING else call.output
    is_error = call.state is State.OUTPUT_ERROR
    return json.dumps([call.name, call.input, output, is_error], sort_keys=True)


def expected(call: dict[str, Any]) -> str:
    return json.dumps([call["name"], call["args"], call["result"], call["is_error"]], sort_keys=True)


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda path: path.name.removesuffix(".truth.json"))
def test_a_trace_has_the_turns_and_calls_that_are_expected_of_it(truth: Path) -> None:
    given = json.loads(truth.read_text("utf-8"))
    runs = read_span_file(truth.with_name(truth.name.replace(".truth", "")))
    with_content = [run for run in runs if run.transcript.messages]
    assert len(with_content) == len(given["turns"])
    for run, turn in zip(with_content, given["turns"], strict=True):
        texts = words(run, "assistant")
        final = [] if turn["final_text"] is None else [turn["final_text"]]
        assert words(run, "user") == [turn["user_text"]] or words(run, "user") == [turn["user_text"] + "\n"]
        assert texts == [*turn["intermediate_texts"], *final]
        own = [call for call in run.transcript.calls.values() if not call.provider_executed]
        assert Counter(map(called, own)) == Counter(map(expected, turn["tool_calls"]))
        usage = read_usage(run.transcript.messages).usage
        assert {"input": usage["inputTokens"], "output": usage["outputTokens"]} == turn["tokens"]
        agents = {name.replace("-", "_") for name in run.extra.get("agents", [])}
        assert agents <= {name.replace("-", "_") for name in turn["agents"]} | agents
        assert all(name in {each.replace("-", "_") for each in agents} for name in turn["agents"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_trace_is_read_and_its_markdown_reads_back(path: Path) -> None:
    for run in read_span_file(path):
        assert run.id
        assert run.extra["spans"]
        again = type(run.transcript).from_markdown(run.transcript.to_markdown())
        assert again == run.transcript
        for call in run.transcript.calls.values():
            assert call.parent is None or call.parent in run.transcript.calls
            assert call.seconds is None or (call.seconds >= 0 and call.started is not None)


def run_of(name: str, number: int = 0) -> RecordedRun:
    folder = GENAI if (GENAI / name).exists() else OPENINFERENCE
    return read_span_file(folder / name)[number]


def test_the_calls_of_a_sub_agent_have_the_call_that_started_it_as_their_parent() -> None:
    run = run_of("evals__openai_agents_openinference_live_spans.json")
    parents = {call.name: call.parent for call in run.transcript.calls.values()}
    first = next(iter(run.transcript.calls.values()))
    assert parents == {"ask_math_specialist": None, "multiply_numbers": first.id, "divide_numbers": first.id}
    assert [each["role"] for each in first.extra["messages"]] == ["system"]  # the arguments have the prompt
    assert nested_texts(run.transcript, first.id) == [first.output]


def test_a_trace_of_phoenix_has_its_failed_call_and_the_history_before_the_trace() -> None:
    run = run_of("phoenix__pxi_turn_trace.json")
    failed = [call.id for call in run.transcript.calls.values() if call.state is State.OUTPUT_ERROR]
    assert failed == ["call-08"]
    assert [call.seconds for call in run.transcript.calls.values()][:4] == [None, None, None, 1.0]


def test_langfuse_exports_have_costs_and_tool_definitions() -> None:
    run = run_of("langfuse__langgraph-python-2025-08-22.trace.json")
    text = '[{"url": "https://example.com", "title": "Example Result", "q": "example"}]'
    assert [(call.name, call.output) for call in run.transcript.calls.values()] == [("Web-Search", text)]
    cost = read_usage(run.transcript.messages).cost
    assert cost is not None
    assert str(cost["USD"]) == "0.000234"
    assert run.extra["tools"][0]["function"]["name"] == "Web-Search"


def test_logfires_older_events_are_messages() -> None:
    run = run_of("logfire__test_openai_agents__test_responses.json")
    assert [(call.name, call.output) for call in run.transcript.calls.values()] == [
        ("random_number", 4),
        ("transfer_to_agent2", {"assistant": "agent2"}),
    ]


def test_broken_lines_leave_the_other_traces_whole() -> None:
    runs = read_span_file(GENAI / "traceval__otel_spans.jsonl")
    assert [run.id for run in runs] == [f"otel-00{number}" for number in range(1, 7)]
    assert [call.error for call in runs[1].transcript.calls.values()] == ["Connection timed out"]
