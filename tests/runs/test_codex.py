"""Sessions of Codex are read as runs: rollouts, older forms, and the output of ``codex exec --json``."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given

from tests.runs.codex_sessions import SESSION, event, item, line, message, output, shell
from tests.support.corpora import corpus
from tests.support.trace_records import call_rows, check_runs, format_of, records_in, run_in, spoiled
from toolcall_nb.core.transcript import CustomPart, ErrorPart, State
from toolcall_nb.core.usage import read_usage
from toolcall_nb.runs.formats.codex import CODEX


def test_a_rollout_is_one_run_in_which_each_message_occurs_once() -> None:
    run = run_in(SESSION, "codex")
    assert (run.id, run.seconds, run.extra["cwd"]) == ("s1", 7.0, "/home/ann")
    assert [(each.role, each.text) for each in run.transcript.messages] == [
        ("user", "<environment_context>zsh</environment_context>"),
        ("user", "List the files"),
        ("assistant", "I look.\n\nThere is a.txt."),
    ]
    assert [each.injected for each in run.transcript.messages] == ["environment_context", None, None]
    assert run.transcript.diagnostics[0].message == (
        "2 records have no place in a transcript (turn_context 1, event_msg task_complete 1)."
    )


def test_calls_have_their_outputs_times_and_exit_codes() -> None:
    first, second = run_in(SESSION, "codex").transcript.calls.values()
    assert (first.input, first.state, first.started, first.seconds) == (
        *({"command": ["ls"]}, State.OUTPUT_AVAILABLE, 3.0, 1.5),
    )
    assert (second.state, second.error, second.seconds) == (State.OUTPUT_ERROR, "Exit code: 1\nOutput:\n", 0.25)
    assert second.provider_metadata is not None
    assert second.provider_metadata["codex"]["exit_code"] == 1


def test_usage_is_read_by_request_and_repeated_reports_count_once() -> None:
    run = run_in(SESSION, "codex")
    found = read_usage(run.transcript.messages)
    assert [request.model for request in found.requests] == ["m-5", "m-5"]
    assert found.usage == {"inputTokens": 250, "cachedInputTokens": 8, "outputTokens": 12, "reasoningTokens": 4}
    assert found.added.keys() == {"c1", "c2"}
    assert sum(found.added.values()) == 150 - 100 - 6


def test_an_output_that_is_json_tells_the_exit_code_and_the_duration() -> None:
    told = json.dumps({"output": "no", "metadata": {"exit_code": 2, "duration_seconds": 0.1}})
    [call] = run_in([*SESSION[:1], shell(1, "c1"), output(2, "c1", told)], "codex").transcript.calls.values()
    assert (call.state, call.error, call.seconds) == (State.OUTPUT_ERROR, told, 0.1)


def test_a_call_that_only_its_end_reports_is_read() -> None:
    invocation = {"server": "docs", "tool": "search", "arguments": {"q": "x"}}
    duration = {"secs": 1, "nanos": 0}
    ends = [
        event(
            2,
            "mcp_tool_call_end",
            call_id="c1",
            invocation=invocation,
            result={"Ok": {"content": []}},
            duration=duration,
        ),
        event(
            3, "mcp_tool_call_end", call_id="c2", invocation=invocation, result={"Err": "refused"}, duration=duration
        ),
    ]
    first, second = run_in([line("session_meta", 0, id="s1"), *ends], "codex").transcript.calls.values()
    assert (first.name, first.input, first.output) == ("search", {"q": "x"}, {"content": []})
    assert (first.started, first.seconds) == (1.0, 1.0)
    assert (second.state, second.error) == (State.OUTPUT_ERROR, "refused")


def test_a_turn_that_was_stopped_interrupts_its_calls() -> None:
    run = run_in([*SESSION[:9], event(4, "turn_aborted", reason="interrupted")], "codex")
    assert call_rows(run) == [("c1", "shell", "interrupted", None)]


def test_an_error_event_is_an_error_of_the_message() -> None:
    run = run_in([*SESSION[:4], event(2, "error", message="Rate limit")], "codex")
    assert isinstance(run.transcript.messages[-1].parts[-1], ErrorPart)


def test_an_output_without_its_call_is_kept_with_a_diagnostic() -> None:
    run = run_in([*SESSION[:1], output(1, "gone", "42")], "codex")
    [part] = run.transcript.messages[0].parts
    assert isinstance(part, CustomPart)
    assert "gone" in run.transcript.diagnostics[0].message


def test_arguments_may_be_an_object_or_missing() -> None:
    calls = [
        item(1, "function_call", name=name, call_id=name, **given)
        for name, given in (
            ("a", {"arguments": {"x": 1}}),
            ("b", {}),
            ("c", {"arguments": None}),
            ("d", {"arguments": "{x"}),
        )
    ]
    run = run_in([*SESSION[:1], *calls, item(2, "custom_tool_call", name="e", call_id="e", input="*** Patch")], "codex")
    assert [call.input for call in run.transcript.calls.values()] == [{"x": 1}, {}, {}, "{x", "*** Patch"]


def test_a_sub_agents_session_names_its_parent() -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "s0", "depth": 1}}}
    run = run_in([line("session_meta", 0, id="s1", source=spawned)], "codex")
    assert run.extra["parent_thread_id"] == "s0"


def test_older_sessions_are_bare_items_or_one_document() -> None:
    session = {"id": "s1", "timestamp": "2025-05-01T10:00:00Z", "instructions": None}
    items = [each["payload"] for each in (SESSION[3], SESSION[8], SESSION[13])]
    for records in ([session, *items], [{"session": session, "items": items}]):
        run = run_in(records, "codex")
        assert (run.id, call_rows(run)) == ("s1", [("c1", "shell", "output-available", None)])


# codex exec --json


def thread(kind: str, **item: Any) -> dict[str, Any]:
    return {"type": kind, "item": item} if item else {"type": kind}


def test_events_of_threads_are_read() -> None:
    command = {"id": "i2", "type": "command_execution", "command": "ls"}
    records = [
        {"type": "thread.started", "thread_id": "t1"},
        thread("turn.started"),
        thread("item.completed", id="i1", type="reasoning", text="**Listing**"),
        thread("item.started", **command, status="in_progress"),
        thread("item.completed", **command, aggregated_output="a.txt\n", exit_code=0, status="completed"),
        thread("item.completed", id="i3", type="command_execution", command="rm -r /", status="declined"),
        thread("item.started", id="i4", type="mcp_tool_call", server="docs", tool="search", arguments={"q": "x"}),
        thread("item.completed", id="i5", type="agent_message", text="Done."),
        {"type": "turn.completed", "usage": {"input_tokens": 30, "cached_input_tokens": 10, "output_tokens": 5}},
        {"type": "turn.failed", "error": {"message": "Too long"}},
    ]
    run = run_in(records, "codex")
    assert run.id == "t1"
    assert call_rows(run) == [
        ("i2", "command_execution", "output-available", None),
        ("i3", "command_execution", "output-denied", None),
        ("i4", "search", "output-available", None),
    ]
    assert run.transcript.calls["i2"].input == {"command": "ls"}
    assert read_usage(run.transcript.messages).usage["inputTokens"] == 30
    assert any(isinstance(part, ErrorPart) and part.text == "Too long" for part in run.transcript.messages[0].parts)


# Any input


@given(spoiled(SESSION))
def test_no_record_of_a_rollout_makes_it_raise(records: list[Any]) -> None:
    CODEX.recognises(records[:20])
    check_runs(list(CODEX.read(records)))


def test_many_outputs_without_calls_take_linear_time() -> None:
    turns = [
        each for number in range(700) for each in (message(1, "user", f"{number}"), message(1, "assistant", "Yes"))
    ]
    outputs = [output(2, f"gone-{number}", "") for number in range(700)]
    run = run_in([*SESSION[:1], *turns, *outputs], "codex")
    assert len(run.transcript.messages) == 1_400


EXPECTED = {
    "langsmith-codex-plugins__rollout-editing.jsonl": (8, 7, 1),
    "langsmith-codex-plugins__rollout-subagents.jsonl": (8, 8, 0),
    "codex_sdk__thread_mcp_rich.jsonl": (2, 1, 0),
    "agentsview__function_calls.jsonl": (2, 0, 0),
    "trace-viewer__codex_real_format.jsonl": (1, 1, 0),
}
"""The number of calls, of those with an output, and of those with an error."""

NOT_OURS = {
    *("agent-sessions__session_branch.jsonl", "agent-sessions__session_simple.jsonl", "trace-viewer__codex_bad.jsonl"),
    *("agent-sessions__session_toolcall.jsonl", "trace-viewer__codex_session.jsonl"),
}
"""Lines that viewers of others made up: they are lists of messages."""


def test_every_file_of_the_corpus_is_read() -> None:
    for path in sorted(corpus("traces/codex").glob("*.jsonl")):
        records = records_in(path)
        if path.name in NOT_OURS:
            continue
        assert format_of(records) is CODEX, path.name
        run = run_in(records, "codex")
        states = [call.state for call in run.transcript.calls.values()]
        if path.name in EXPECTED:
            found = (states.count(State.OUTPUT_AVAILABLE), states.count(State.OUTPUT_ERROR))
            assert (len(states), *found) == EXPECTED[path.name], path.name
