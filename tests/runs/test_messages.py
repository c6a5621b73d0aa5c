"""Files of messages are read as runs: request bodies, requests with responses, fine-tuning data, histories."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from tests.support.corpora import corpus
from tests.support.trace_records import call_rows, check_runs, format_of, records_in, run_in, runs_in, spoiled
from toolcall_nb.adapters.ai_sdk.messages import to_ui
from toolcall_nb.core.transcript import State
from toolcall_nb.core.usage import read_usage
from toolcall_nb.runs.formats.messages import MESSAGES

QUESTION = {"role": "user", "content": "How warm is it in Rome?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "24 °C"}
ANSWER = {"role": "assistant", "content": "It is 24 °C."}
OPENAI = [QUESTION, ASKED, TOLD, ANSWER]
ANTHROPIC: list[dict[str, Any]] = [
    QUESTION,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "24 °C"}]},
    ANSWER,
]
GOOGLE = [
    {"role": "user", "parts": [{"text": "How warm is it in Rome?"}]},
    {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}}]},
    {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "weather", "response": "24 °C"}}]},
    {"role": "model", "parts": [{"text": "It is 24 °C."}]},
]
ITEMS = [
    QUESTION,
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "24 °C"},
    ANSWER,
]
SHAREGPT = [
    {"from": "human", "value": "How warm is it in Rome?"},
    {"from": "function_call", "value": '{"name": "weather", "arguments": {"city": "Rome"}}'},
    {"from": "observation", "value": "24 °C"},
    {"from": "gpt", "value": "It is 24 °C."},
]


def check_rome(run: Any, call_id: str = "c1") -> None:
    user, assistant = [message for message in run.transcript.messages if message.role != "system"]
    assert user.text == "How warm is it in Rome?"
    assert assistant.text == "It is 24 °C."
    assert call_rows(run) == [(call_id, "weather", "output-available", None)]
    [call] = assistant.calls
    assert (call.input, call.output) == ({"city": "Rome"}, "24 °C")


@pytest.mark.parametrize(
    ("record", "call_id"),
    [
        (OPENAI, "c1"),
        (ANTHROPIC, "c1"),
        (GOOGLE, "c1"),
        (ITEMS, "c1"),
        (SHAREGPT, "call_1"),
        ({"model": "m", "messages": OPENAI}, "c1"),
        ({"model": "m", "messages": ANTHROPIC, "max_tokens": 9}, "c1"),
        ({"contents": GOOGLE}, "c1"),
        ({"model": "m", "input": ITEMS}, "c1"),
        ({"conversations": SHAREGPT, "tools": "[]"}, "call_1"),
        ({"task_id": 4, "traj": OPENAI}, "c1"),
        ({"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": OPENAI}}, "c1"),
    ],
)
def test_a_conversation_is_found_in_whatever_holds_it(record: Any, call_id: str) -> None:
    check_rome(run_in([record], "messages"), call_id)


@pytest.mark.parametrize("lines", [OPENAI, ANTHROPIC, GOOGLE])
def test_lines_that_are_single_messages_make_one_run(lines: list[Any]) -> None:
    check_rome(run_in(lines, "messages"))


def test_messages_of_the_ai_sdk_make_one_run() -> None:
    transcript = run_in(OPENAI, "messages").transcript
    written = to_ui(transcript.messages)
    for records in (written, [written]):
        check_rome(run_in(records, "messages"))


def test_lines_of_calls_and_results_make_one_run_with_times() -> None:
    lines = [
        {"timestamp": "2025-04-01T08:00:00Z", **QUESTION},
        {"timestamp": "2025-04-01T08:00:01Z", "type": "tool_call", "tool": "weather", "arguments": {"city": "Rome"}},
        {"timestamp": "2025-04-01T08:00:03Z", "type": "tool_result", "name": "weather", "output": "24 °C"},
        {"timestamp": "2025-04-01T08:00:04Z", **ANSWER},
    ]
    run = run_in(lines, "messages")
    check_rome(run, "call-1")
    [call] = run.transcript.calls.values()
    assert (run.seconds, call.started, call.seconds) == (4.0, 1.0, 2.0)


def test_lines_of_other_coding_agents_are_read() -> None:
    lines = [
        {"type": "message", "role": "user", "text": "How warm is it in Rome?", "id": "m1"},
        {"type": "tool_call", "toolCallId": "c1", "toolName": "weather", "parameters": {"city": "Rome"}, "id": "x1"},
        {"type": "tool_result", "toolCallId": "c1", "value": "24 °C", "id": "x2"},
        {"type": "message", "role": "assistant", "text": "It is 24 °C.", "id": "m2"},
    ]
    check_rome(run_in(lines, "messages"))
    wrapped = [{"role": each["role"], "message": {"content": each["content"]}} for each in ANTHROPIC]
    check_rome(run_in(wrapped, "messages"))


def test_each_record_of_a_file_is_a_run_with_an_id_of_its_own() -> None:
    records = [
        {"id": "a", "messages": OPENAI},
        {"id": "a", "messages": ANTHROPIC},
        OPENAI,
        {"index": 7, "messages": OPENAI},
    ]
    for given_records in (records, [records]):
        runs = runs_in(given_records, "messages")
        assert [run.id for run in runs] == ["a", "a-2", "3", "7"]
        for run in runs:
            check_rome(run)


def test_fields_around_the_messages_are_kept() -> None:
    record = {"title": "Weather", "messages": OPENAI, "tools": [{"name": "weather"}], "rating": 4}
    run = run_in([record], "messages")
    assert run.title == "Weather"
    assert run.extra == {"title": "Weather", "tools": [{"name": "weather"}], "rating": 4}


def test_records_without_messages_are_kept_with_a_diagnostic() -> None:
    first, second = runs_in([{"metadata": {"by": "Ann"}}, {"messages": OPENAI}, 7, {"messages": OPENAI}, 8], "messages")
    assert first.extra["records"] == [{"metadata": {"by": "Ann"}}]
    assert first.transcript.diagnostics[0].message == "1 record of the file holds no messages."
    assert second.extra["records"] == [7, 8]


@pytest.mark.parametrize(
    "system",
    [{"system": "Be brief."}, {"system": [{"type": "text", "text": "Be brief."}]}, {"instructions": "Be brief."}],
)
def test_the_system_prompt_of_a_request_is_a_message(system: dict[str, Any]) -> None:
    run = run_in([{"model": "m", "messages": ANTHROPIC, **system}], "messages")
    assert (run.transcript.messages[0].role, run.transcript.messages[0].text) == ("system", "Be brief.")
    check_rome(run)


def test_a_reply_continues_the_request() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
    openai = {"id": "x", "model": "m-1", "choices": [{"message": ANSWER, "finish_reason": "length"}], "usage": usage}
    content = [{"type": "text", "text": "It is 24 °C."}]
    anthropic: dict[str, Any] = {"role": "assistant", "model": "m-1", "content": content, "stop_reason": "max_tokens"}
    anthropic |= {"type": "message", "usage": {"input_tokens": 30, "output_tokens": 5}}
    for messages, response in ((OPENAI, openai), (ANTHROPIC, anthropic)):
        run = run_in([{"request": {"messages": messages[:-1]}, "response": response}], "messages")
        check_rome(run)
        last = run.transcript.messages[-1]
        assert (last.finish_reason, last.metadata["model"]) == ("length", "m-1")
        assert read_usage([last]).usage["inputTokens"] == 30


def test_a_reply_alone_is_a_run() -> None:
    reply: dict[str, Any] = {
        "id": "m9",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}],
        "model": "m-1",
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1},
    }
    run = run_in([reply], "messages")
    assert (run.id, run.transcript.messages[0].text) == ("m9", "Hi")


def test_calls_of_sharegpt_may_come_together_and_broken_ones_stay_text() -> None:
    calls = [{"name": "a", "arguments": {}}, {"name": "b", "arguments": "{}"}]
    told = [{"from": "observation", "value": value} for value in ("1", "2")]
    run = run_in([[{"from": "function_call", "value": json.dumps(calls)}, *told]], "messages")
    assert [call.output for call in run.transcript.calls.values()] == ["1", "2"]
    run = run_in([[SHAREGPT[0], {"from": "function_call", "value": "{'name': 'a'}"}]], "messages")
    assert run.transcript.messages[1].text == "{'name': 'a'}"


def test_a_role_that_no_provider_has_is_kept() -> None:
    run = run_in([{"messages": [{"role": "critic", "content": "No."}]}], "messages")
    [message] = run.transcript.messages
    assert (message.role, message.text, message.metadata) == ("user", "No.", {"role": "critic"})


def test_a_call_that_code_made_has_that_code_as_its_parent() -> None:
    code = {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": "roll()"}}
    inner = {"type": "tool_use", "id": "c1", "name": "roll", "input": {}, "caller": {"type": "code", "tool_id": "s1"}}
    run = run_in([{"messages": [{"role": "assistant", "content": [code, inner]}]}], "messages")
    assert [(row[0], row[3]) for row in call_rows(run)] == [("s1", None), ("c1", "s1")]


@pytest.mark.parametrize(
    "record", [{"type": "text-delta", "id": "1", "delta": "x"}, {"type": "start"}, {}, 7, "x", None]
)
def test_streams_of_chunks_and_other_values_are_not_lists_of_messages(record: Any) -> None:
    assert not MESSAGES.recognises([record])


@given(
    spoiled(
        [
            {"request": {"messages": ANTHROPIC, "system": "x"}, "response": {"choices": [{"message": ANSWER}]}},
            {"contents": GOOGLE},
            {"input": ITEMS},
            {"conversations": SHAREGPT},
            *OPENAI,
        ]
    )
)
def test_no_record_makes_it_raise(records: list[Any]) -> None:
    MESSAGES.recognises(records[:20])
    check_runs(list(MESSAGES.read(records)))


EXPECTED = {
    "tau-bench__gpt-4o-airline.first10.json": (10, 58, 58),
    "llama-factory__glaive_toolcall_en_demo.first80.json": (80, 59, 59),
    "invariant__trace_with_non_json_parseable_tool_call_arguments.jsonl": (1, 1, 0),
    "cassette__openai_chat__openinference__test_tool_calls__0.json": (1, 4, 2),
}
"""The number of runs, of calls, and of calls with an output."""

TEXT_ONLY = {"Hermes-Function-Calling__few_shot.json", "tau-bench__airline-few_shot.first15.jsonl"}
"""Conversations that are one text each."""


def test_every_file_of_the_corpus_is_read() -> None:
    for path in sorted(corpus("traces/message_lists").glob("*.json*")):
        if path.name == "MANIFEST.json":
            continue
        records = records_in(path)
        if path.name in TEXT_ONLY:
            assert format_of(records) is None
            continue
        runs = runs_in(records, "messages")
        assert any(run.transcript.messages for run in runs), path.name
        states = [call.state for run in runs for call in run.transcript.calls.values()]
        if path.name in EXPECTED:
            assert (len(runs), len(states), states.count(State.OUTPUT_AVAILABLE)) == EXPECTED[path.name], path.name
