"""Session logs of Claude Code are read as runs: calls with results and times, usage, sub-agents, branches."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from tests.runs.claude_code_sessions import INSIDE, SESSION, TASK, TASK_DONE, answer, call, line, result, sidechain
from tests.support.corpora import corpus
from tests.support.profile import IS_THOROUGH
from tests.support.trace_records import call_rows, check_runs, nested_texts, records_in, run_in, runs_in, spoiled
from toolcall_nb.core.events import MISSING
from toolcall_nb.core.steps import steps_of
from toolcall_nb.core.transcript import CustomPart, State
from toolcall_nb.core.usage import read_usage
from toolcall_nb.runs.formats import TRACE_FORMATS
from toolcall_nb.runs.formats.claude_code import CLAUDE_CODE


def test_a_session_is_one_run_with_its_calls_results_and_times() -> None:
    run = run_in(SESSION, "claude-code")
    assert (run.id, run.title, run.seconds) == ("s1", "Listing files", 5.0)
    user, assistant = run.transcript.messages
    assert (user.text, user.id) == ("List the files.", "u1")
    assert [type(part).__name__ for part in assistant.parts] == [
        *("ReasoningPart", "TextPart", "ToolCall", "ToolCall", "TextPart"),
    ]
    first, second = assistant.calls
    assert (first.input, first.output, first.state) == ({"command": "ls"}, "a.txt", State.OUTPUT_AVAILABLE)
    assert (second.state, second.error) == (State.OUTPUT_ERROR, "ls: no")
    assert (first.started, first.seconds) == (2.0, 0.12)  # the log has the duration
    assert (second.started, second.seconds) == (2.25, 0.75)  # from the call's line to that of its result
    assert first.provider_metadata == {"claude_code": {"toolUseResult": {"stdout": "a.txt", "durationMs": 120}}}
    assert second.provider_metadata is None  # it only repeated the result


def test_the_usage_of_an_answer_counts_once() -> None:
    run = run_in(SESSION, "claude-code")
    usage = read_usage(run.transcript.messages)
    assert len(usage.requests) == 2  # of six lines
    assert usage.usage == {"inputTokens": 200, "outputTokens": 10, "totalTokens": 210, "cachedInputTokens": 180}
    assert run.transcript.messages[1].metadata["model"] == "m-4"


def test_lines_without_a_place_are_kept_and_counted() -> None:
    run = run_in(SESSION, "claude-code")
    assert run.extra["records"] == [SESSION[0], SESSION[-1]]
    assert run.extra["cwd"] == "/home/ann"
    assert [diagnostic.message for diagnostic in run.transcript.diagnostics] == [
        "2 records have no place in a transcript (summary 1, mode 1)."
    ]


def test_fields_that_no_reader_knows_are_kept() -> None:
    run = run_in([line("user", 0, "Hi", "u1", promptId="p7")], "claude-code")
    assert run.extra["fields"] == {"u1": {"promptId": "p7"}}


def test_a_call_that_the_user_did_not_allow_is_denied() -> None:
    words = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    lines = [answer(1, call("c1"), "a1"), result(2, "c1", words, "u1", f"Error: {words}", is_error=True)]
    [denied] = run_in(lines, "claude-code").transcript.calls.values()
    assert denied.state is State.OUTPUT_DENIED
    assert denied.approval is not None
    assert denied.approval.reason == words


def test_an_interruption_ends_the_open_calls() -> None:
    stop = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    lines = [
        answer(1, call("c1"), "a1"),
        answer(1, call("c2"), "a2"),
        result(2, "c1", "ok", "u1"),
        line("user", 3, stop, "u2"),
    ]
    states = [call.state for call in run_in(lines, "claude-code").transcript.calls.values()]
    assert states == [State.OUTPUT_AVAILABLE, State.INTERRUPTED]


def test_a_call_without_a_result_stays_open() -> None:
    [cut] = run_in([answer(1, call("c1"), "a1")], "claude-code").transcript.calls.values()
    assert (cut.state, cut.seconds, cut.output) == (State.INPUT_AVAILABLE, None, MISSING)


def test_a_result_without_its_call_is_kept_with_a_diagnostic() -> None:
    run = run_in([line("user", 0, "Hi", "u0"), result(1, "gone", "42", "u1", {"x": 1})], "claude-code")
    [part] = run.transcript.messages[1].parts
    assert isinstance(part, CustomPart)
    assert part.provider_metadata is not None
    assert part.provider_metadata["anthropic"]["content"] == "42"
    assert part.provider_metadata["anthropic"]["toolUseResult"] == {"x": 1}
    assert "gone" in run.transcript.diagnostics[0].message


def test_lines_that_come_again_are_read_once() -> None:
    run = run_in([*SESSION, *SESSION[1:6]], "claude-code")
    assert run.transcript == run_in(SESSION, "claude-code").transcript
    assert "repeated line 5" in run.transcript.diagnostics[0].message


# Sub-agents


def check_nested(run: Any) -> None:
    assert call_rows(run) == [("t1", "Task", "output-available", None), ("g1", "Grep", "output-available", "t1")]
    task, grep = run.transcript.calls.values()
    assert (task.log, nested_texts(run.transcript, "t1")) == ("", ["Searching.", "No tests."])
    assert (task.seconds, grep.started, grep.seconds) == (4.5, 2.0, 1.0)
    usage = read_usage(run.transcript.messages)
    assert [request.model for request in usage.requests] == ["m-4", "m-small", "m-small"]
    [message] = run.transcript.messages
    steps = steps_of(message, "t1")
    assert [(step.text, step.model, step.response_id) for step in steps] == [
        ("Searching.", "m-small", "x2"),
        ("No tests.", "m-small", "x4"),
    ]
    assert [step.agent for step in steps] == ["Explore", "Explore"]
    assert run.transcript.top_level.messages[0].parts == (task,)


def test_a_sub_agent_is_found_by_the_prompt_it_was_given() -> None:
    check_nested(run_in([TASK, *INSIDE, TASK_DONE], "claude-code"))


def test_a_sub_agent_is_found_by_the_id_in_the_result() -> None:
    lines = [{**each, "agentId": "k9"} for each in INSIDE]
    lines[0]["message"] = {"role": "user", "content": "Another wording"}
    check_nested(run_in([TASK, *lines, TASK_DONE], "claude-code"))


def test_a_sub_agent_is_found_by_the_call_that_its_lines_name() -> None:
    lines = [{**each, "isSidechain": False, "parent_tool_use_id": "t1"} for each in INSIDE]
    check_nested(run_in([TASK, *lines, TASK_DONE], "claude-code"))


def test_a_sub_agent_is_found_in_the_progress_of_its_call() -> None:
    lines = [
        {
            "type": "progress",
            "uuid": f"p{number}",
            "sessionId": "s1",
            "parentToolUseID": "t1",
            "data": {"type": "agent_progress", "agentId": "k9", "message": each},
        }
        for number, each in enumerate(INSIDE)
    ]
    check_nested(run_in([TASK, *lines, TASK_DONE], "claude-code"))


def test_a_sub_agent_whose_call_is_in_another_file_is_a_run_of_its_own() -> None:
    run = run_in([{**each, "agentId": "k9"} for each in INSIDE], "claude-code")
    assert run.id == "s1/k9"
    assert call_rows(run) == [("g1", "Grep", "output-available", None)]


def test_agents_inside_each_other_are_runs_of_their_own() -> None:
    first = [sidechain(1, "assistant", [call("a")], "x1", parent_tool_use_id="b")]
    second = [sidechain(2, "assistant", [call("b")], "x2", parent_tool_use_id="a")]
    runs = runs_in([line("user", 0, "Hi", "u1"), *first, *second], "claude-code")
    assert [run.id for run in runs] == ["s1", "s1/x1"]
    assert call_rows(runs[1]) == [("a", "Bash", "input-available", None), ("b", "Bash", "input-available", "a")]


def test_an_agent_within_an_agent_has_the_inner_call_as_its_parent() -> None:
    inner = [sidechain(1, "assistant", [call("t2", "Task")], "x1", parent_tool_use_id="t1")]
    innermost = [sidechain(2, "assistant", [call("c1")], "x2", parent_tool_use_id="t2")]
    run = run_in([TASK, *inner, *innermost], "claude-code")
    assert [(row[0], row[3]) for row in call_rows(run)] == [("t1", None), ("t2", "t1"), ("c1", "t2")]


def test_a_call_id_that_an_agent_uses_again_gets_another_one() -> None:
    run = run_in([TASK, sidechain(1, "assistant", [call("t1")], "x1", parent_tool_use_id="t1")], "claude-code")
    assert [(row[0], row[3]) for row in call_rows(run)] == [("t1", None), ("t1-2", "t1")]


# Branches and other forms


def test_a_prompt_that_was_replaced_begins_a_branch() -> None:
    lines = [
        line("user", 0, "Hi", "u1", parentUuid=None),
        answer(1, {"type": "text", "text": "Hello."}, "a1", parentUuid="u1"),
        line("user", 2, "Delete it", "u2", parentUuid="a1"),
        answer(3, call("c1"), "a2", "m2", parentUuid="u2"),
        line("user", 4, "Keep it", "u3", parentUuid="a1"),
        answer(5, {"type": "text", "text": "Kept."}, "a3", "m3", parentUuid="u3"),
    ]
    main, branch = runs_in(lines, "claude-code")
    assert [message.text for message in main.transcript.messages] == ["Hi", "Hello.", "Keep it", "Kept."]
    assert (branch.id, branch.extra["branch"]) == ("s1/branch-1", "u2")
    assert [message.text for message in branch.transcript.messages] == ["Delete it", ""]
    assert list(branch.transcript.calls) == ["c1"]


def test_turns_printed_by_the_command_line_are_read() -> None:
    turns = [
        {"type": "system", "subtype": "init", "session_id": "s1", "tools": ["Read"]},
        {"type": "assistant", "session_id": "s1", "message": {"id": "m1", "content": [call("c1", "Read")]}},
        {"type": "user", "session_id": "s1", "message": {"content": [{"type": "tool_result", "tool_use_id": "c1"}]}},
        {"type": "result", "duration_ms": 1500, "total_cost_usd": 0.02},
    ]
    for records in ([turns], turns, [{"loglines": turns}]):
        run = run_in(records, "claude-code")
        assert (run.id, run.seconds, run.began) == ("s1", 1.5, None)
        assert call_rows(run) == [("c1", "Read", "output-available", None)]
        assert run.extra["records"] == [turns[0], turns[3]]


def test_the_cost_that_a_line_reports_is_read() -> None:
    run = run_in([answer(1, {"type": "text", "text": "Hi"}, "a1", costUSD=0.125)], "claude-code")
    assert run.transcript.messages[0].metadata["cost"] == {"USD": "0.125"}


def test_many_agents_and_repeated_ids_take_linear_time() -> None:
    count = 3_000 if IS_THOROUGH else 1_000
    lines = [sidechain(1, "assistant", [call("x")], f"x{number}", parent_tool_use_id="x") for number in range(count)]
    [run] = runs_in([answer(0, call("x"), "a0"), *lines], "claude-code")
    assert len(run.transcript.calls) == count + 1


@given(spoiled([TASK, *INSIDE, TASK_DONE, *SESSION]))
def test_no_record_makes_it_raise(records: list[Any]) -> None:
    CLAUDE_CODE.recognises(records[:20])
    check_runs(list(CLAUDE_CODE.read(records)))


# The corpus

EXPECTED = {
    "claude-code-viewer__1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl": (12, 11, 1),
    "claude-code-action__sample-turns.json": (3, 3, 0),
    "cass__message_grouping__edge_cases.jsonl": (11, 8, 1),
    "cass__real_sessions__claude_code_auth_fix.jsonl": (5, 0, 0),
    "claude-code-log__edge_cases.jsonl": (3, 0, 1),
}
"""The number of calls, of those with an output, and of those with an error."""


def test_every_file_of_the_corpus_is_read() -> None:
    files = sorted(path for path in corpus("traces/claude_code").iterdir() if path.suffix in (".json", ".jsonl"))
    for path in files:
        if path.name == "MANIFEST.json":
            continue
        records = records_in(path)
        known = next(each for each in TRACE_FORMATS if each.recognises(records[:20]))
        assert known is CLAUDE_CODE, path.name
        runs = list(CLAUDE_CODE.read(records))
        check_runs(runs)
        states = [call.state for run in runs for call in run.transcript.calls.values()]
        if path.name in EXPECTED:
            found = (states.count(State.OUTPUT_AVAILABLE), states.count(State.OUTPUT_ERROR))
            assert (len(states), *found) == EXPECTED[path.name], path.name
        assert [run.id for run in runs], path.name


def test_an_error_of_the_api_that_the_program_wrote_as_an_answer_fails_the_run() -> None:
    said = [{"type": "text", "text": "API Error: Overloaded"}]
    error = line("assistant", 6, said, "e1", isApiErrorMessage=True, message={"id": "e1", "model": "<synthetic>"})
    outcome = run_in([*SESSION, error], "claude-code").transcript.outcome
    assert (outcome.state, outcome.error) == ("error", "API Error: Overloaded")


def test_a_result_may_name_the_agent_of_its_call() -> None:
    task, done = answer(1, call("t1", "Task", prompt="Find the tests"), "a1"), {"agentId": "k9", "agentType": "Explore"}
    run = run_in([SESSION[1], task, *INSIDE, result(6, "t1", "No tests.", "u9", done)], "claude-code")
    assert {step.agent for step in steps_of(run.transcript[-1], "t1")} == {"Explore"}
