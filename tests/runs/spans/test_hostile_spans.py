"""No file of spans makes its reader raise: any JSON value in any place, deep nesting, many items, broken links."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.span_files import otlp, read_records, span
from tests.support.strategies import json_values
from tests.support.trace_records import check_runs, spoiled
from toolcall_nb.runs.formats.spans import SPAN_FORMATS

ASKED = [{"role": "user", "parts": [{"type": "text", "content": "What is the weather?"}]}]
CALL = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}}
ANSWER = [{"role": "assistant", "parts": [CALL, {"type": "text", "content": "Wait."}], "finish_reason": "tool_calls"}]
MODEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": json.dumps(ASKED),
    "gen_ai.output.messages": json.dumps(ANSWER),
    "gen_ai.usage.input_tokens": 10,
}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1"}
EVENT = {"name": "exception", "timeUnixNano": "1", "attributes": [{"key": "exception.message", "value": {}}]}
LOG = {
    "traceId": "1",
    "spanId": "b",
    "eventName": "gen_ai.user.message",
    "body": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Hi"}}]}},
}

OTLP = [
    otlp(
        span("a", "agent", 0, 9, attributes={"gen_ai.operation.name": "invoke_agent", "input.value": "Hi"}),
        span("b", "chat", 1, 2, "a", attributes=MODEL),
        span("c", "execute_tool weather", 3, 4, "a", attributes=TOOL, events=[EVENT], status={"code": 2}),
        logs=[LOG],
    )
]
JAEGER = [
    {
        "data": [
            {
                "traceID": "1",
                "spans": [
                    {
                        "traceID": "1",
                        "spanID": "a",
                        "operationName": "chat",
                        "references": [{"refType": "CHILD_OF", "traceID": "1", "spanID": "z"}],
                        "startTime": 1_700_000_000_000_000,
                        "duration": 5,
                        "tags": [{"key": key, "type": "string", "value": value} for key, value in MODEL.items()],
                        "logs": [{"timestamp": 1, "fields": [{"key": "event", "value": "exception"}]}],
                        "processID": "p1",
                    }
                ],
                "processes": {"p1": {"serviceName": "s", "tags": []}},
            }
        ]
    }
]
LANGFUSE = [
    {
        "trace": {"id": "1", "name": "run", "timestamp": "2026-01-01T00:00:00Z", "input": "Hi", "output": "Bye"},
        "observations": [
            {
                "id": "a",
                "type": "GENERATION",
                "startTime": "2026-01-01T00:00:00Z",
                "endTime": "2026-01-01T00:00:01Z",
                "input": json.dumps([{"role": "user", "content": "Hi"}]),
                "output": {"role": "assistant", "content": "", "tool_calls": [{"id": "x", "function": {"name": "f"}}]},
                "metadata": json.dumps({"attributes": {"gen_ai.usage.input_tokens": "3"}}),
                "usageDetails": {"input": 3},
                "costDetails": {"total": 0.5},
            },
            {"id": "b", "type": "TOOL", "name": "f", "parentObservationId": "a", "input": "{}", "output": "1"},
        ],
    }
]
RECORDS = [
    {
        "context": {"trace_id": "0x1", "span_id": "0xa"},
        "parent_id": None,
        "start_time": "2026-01-01T00:00:00Z",
        "end_time": "2026-01-01T00:00:01Z",
        "attributes": {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Hi",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
            "gen_ai.prompt.0.content": "Hi",
            "events": [{"event.name": "gen_ai.choice", "message": {"content": "x"}}],
        },
        "events": [{"name": "gen_ai.choice", "attributes": {"message": "{}"}}],
    },
    {"trace_id": "1", "span_id": "b", "parent_span_id": "b", "attributes": {"gcp.vertex.agent.llm_request": "{}"}},
    {"traceId": "1", "spanId": "c", "start_time": 1, "attributes": {"ai.operationId": "ai.toolCall", "ai.prompt": "x"}},
]
EXAMPLES: dict[str, list[Any]] = {"otlp": OTLP, "jaeger": JAEGER, "langfuse": LANGFUSE, "spans": RECORDS}


def read_with_all(records: list[Any]) -> None:
    for known in SPAN_FORMATS:
        known.recognises(records)
        check_runs(list(known.read(records)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_recognised_by_its_own_format_only(name: str) -> None:
    assert [known.name for known in SPAN_FORMATS if known.recognises(EXAMPLES[name])] == [name]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_reader_who_needs_no_extra_fields_gets_the_same_runs_without_them(name: str) -> None:
    known = next(each for each in SPAN_FORMATS if each.name == name)
    whole, short = (list(read(EXAMPLES[name])) for read in (known.read, known.read_transcripts or known.read))
    assert all(run.extra for run in whole)
    assert short == [replace(run, extra={}) for run in whole]
    assert [run.transcript.diagnostics for run in short] == [run.transcript.diagnostics for run in whole]


@pytest.mark.parametrize("name", EXAMPLES)
@given(data=st.data())
def test_any_value_in_any_place_leaves_runs_that_hold_their_promises(name: str, data: st.DataObject) -> None:
    records = data.draw(spoiled(EXAMPLES[name]))
    known = next(each for each in SPAN_FORMATS if each.name == name)
    known.recognises(records)
    check_runs(list(known.read(records)))


@given(records=st.lists(json_values(), max_size=4))
def test_values_that_are_no_spans_give_no_error(records: list[Any]) -> None:
    read_with_all(records)


NAMES = st.sampled_from(sorted({*MODEL, *TOOL, "llm.output_messages", "events", "request_data", "input.value"}))


@given(attributes=st.dictionaries(NAMES, json_values(), max_size=6), kind=st.sampled_from(["LLM", "TOOL", "AGENT"]))
def test_any_value_of_an_attribute_is_read(attributes: dict[str, Any], kind: str) -> None:
    given_span = {"trace_id": "1", "span_id": "a", "attributes": {"openinference.span.kind": kind, **attributes}}
    check_runs(read_records([given_span]))


@given(parents=st.lists(st.integers(0, 7), min_size=1, max_size=8))
def test_any_links_between_spans_give_one_transcript_with_all_calls(parents: list[int]) -> None:
    spans = [
        span(f"s{i}", "execute_tool t", i, parent=f"s{parent}", attributes=TOOL) for i, parent in enumerate(parents)
    ]
    [run] = read_records([otlp(*spans)])
    assert len(run.extra["spans"]) == len(parents)
    assert run.transcript.calls


def deep(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = {"content": [value]}
    return value


@pytest.mark.parametrize(
    "message", [{"type": ["text"]}, {"role": "user", "type": {}}, {"message": {"role": "user"}, "id": [["text"]]}]
)
def test_a_type_of_a_message_that_is_no_text_is_passed_over(message: dict[str, Any]) -> None:
    asked = json.dumps([{**message, "content": "Hi"}, *ASKED])
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked}
    [run] = read_records([otlp(span("a", "chat", 0, 9, attributes=attributes))])
    assert "What is the weather?" in run.transcript.to_markdown()


def test_deep_values_are_read() -> None:
    text = "[" * 200_000
    attributes = {"openinference.span.kind": "LLM", "input.value": text, "output.value": deep(300), "llm": deep(300)}
    check_runs(read_records([{"trace_id": "1", "span_id": "a", "attributes": attributes}]))


@pytest.mark.parametrize("levels", [60, 400, 900])
def test_deep_arguments_and_results_in_each_place_of_a_call_are_read(levels: int) -> None:
    nested: Any = {"toolResult": {"toolUseId": "c1", "content": "end"}}
    for _ in range(levels // 3):
        nested = {"toolResult": {"toolUseId": "c1", "content": [nested]}}
    for value in (deep(levels), nested):
        asked = {"role": "assistant", "parts": [{**CALL, "arguments": value}]}
        told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": value}, value]}
        model = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": [asked]}
        tool = {**TOOL, "gen_ai.tool.call.arguments": value, "gen_ai.tool.call.result": value}
        again = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": [asked, told]}
        rows = [(model, ""), (tool, ""), (tool, "s1"), (again, "s1"), (again, "")]
        ids = {"trace_id": "1", "name": "x"}
        spans = [
            {**ids, "span_id": f"s{i}", "parent_span_id": parent, "start_time": i + 1, "attributes": attributes}
            for i, (attributes, parent) in enumerate(rows)
        ]
        check_runs(read_records([spans]))


def test_many_calls_and_results_without_ids_are_read() -> None:
    calls = [{"type": "server_tool_call", "name": "t"} for _ in range(20_000)]
    results = [{"type": "server_tool_call_response", "server_tool_call_response": i} for i in range(20_000)]
    answer = [{"role": "assistant", "parts": calls + results}]
    model = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": answer}
    [run] = read_records([{"trace_id": "1", "span_id": "a", "attributes": model}])
    assert len(run.transcript.calls) == 20_000


def test_a_long_name_of_an_attribute_is_read() -> None:
    name = "llm.input_messages." + "0." * 50_000
    attributes = {"openinference.span.kind": "LLM", name: 1, "llm.input_messages.99999999999.message.content": "Hi"}
    tracemalloc.start()
    try:
        check_runs(read_records([{"trace_id": "1", "span_id": "a", "attributes": attributes}]))
        assert tracemalloc.get_traced_memory()[1] < 100 * len(name)
    finally:
        tracemalloc.stop()


def test_a_chain_of_many_spans_and_a_long_history_are_read() -> None:
    chain = [span(f"s{i}", "step", i, parent=f"s{i - 1}" if i else "") for i in range(20_000)]
    turns = [{"role": role, "content": f"{role} {i}"} for i in range(5_000) for role in ("user", "assistant")]
    model = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(turns)}
    [run] = read_records([otlp(*chain, span("m", "chat", 3, parent="s19999", attributes=model))])
    assert len(run.transcript.messages) == 10_000
