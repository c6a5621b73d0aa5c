"""Recorded runs keep their facts, whatever the format: steps, repeats, who wrote a message, how the run ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runs import claude_code_sessions as claude
from tests.runs import codex_sessions as codex
from tests.runs.inspect_samples import SAMPLE, log
from tests.runs.test_atif import TRAJECTORY, step
from tests.runs.test_langsmith import TRACE, human, logged
from tests.runs.test_langsmith import ai as langsmith_ai
from tests.runs.test_langsmith import answer as langsmith_answer
from tests.support.span_files import otlp, read_records, span
from tests.support.trace_records import format_of, nested_texts, runs_in
from toolcall_nb import read_many
from toolcall_nb.core.run_outcome import run_outcome
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.core.usage import read_usage
from toolcall_nb.runs.formats.base import RecordedRun
from toolcall_nb.runs.run_index import entry_of


def read(records: list[Any]) -> RecordedRun:
    known = format_of(records)
    if known is None:
        [run] = read_records(records)
    else:
        [run] = runs_in(records, known.name)
    return run


def model_span(name: str, second: float, history: list[Any], reply: Any, more: dict[str, Any]) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(history)}
    attributes |= {"gen_ai.output.messages": json.dumps([reply]), **more}
    return span(name, "chat", second, second + 0.5, "root", attributes=attributes)


def said(role: str, *parts: Any) -> dict[str, Any]:
    return {
        "role": role,
        "parts": [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts],
    }


ASK = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "x"}}
FOUND = {"type": "tool_call_response", "id": "c1", "response": "found"}
ROOT = span("root", "invoke_agent finder", 0, 9, attributes={"gen_ai.operation.name": "invoke_agent"})
SPANS = [
    ROOT,
    model_span(
        *("m1", 1, [said("user", "Find x")], said("assistant", "I look.", ASK)),
        {"gen_ai.response.id": "r1", "gen_ai.response.model": "m-9", "gen_ai.usage.input_tokens": 10},
    ),
    model_span(
        *("m2", 3, [said("user", "Find x"), said("assistant", "I look.", ASK), said("tool", FOUND)]),
        said("assistant", "Found."),
        {"gen_ai.response.id": "r2", "gen_ai.response.model": "m-9", "gen_ai.usage.input_tokens": 20},
    ),
]


# Steps


@pytest.mark.parametrize(
    ("records", "steps"),
    [
        (claude.SESSION, [(["c1", "c2"], "m-4", 100, "m1"), ([], "m-4", 100, "m2")]),
        (codex.SESSION, [(["c1", "c2"], "m-5", 100, None), ([], "m-5", 150, None)]),
        ([TRACE], [(["c1"], None, 10, None), ([], None, 10, None)]),
        ([log()], [(["c1"], "m-1", 10, None), (["c2"], "m-1", 10, None), ([], "m-1", 10, None)]),
        ([otlp(*SPANS)], [(["c1"], "m-9", 10, "r1"), ([], "m-9", 20, "r2")]),
    ],
    ids=["claude-code", "codex", "langsmith", "inspect", "spans"],
)
def test_each_request_is_a_step_with_what_is_known_of_it(records: list[Any], steps: list[Any]) -> None:
    message = read(records).transcript.messages[-1]
    found = [
        ([call.id for call in each.calls], each.model, (each.usage or {}).get("inputTokens"), each.response_id)
        for each in message.steps
    ]
    assert found == steps
    assert message.metadata["usage"]["inputTokens"] == sum(tokens for _, _, tokens, _ in steps)


@pytest.mark.parametrize(
    ("records", "times"),
    [([TRACE], [(1.0, 0.5), (3.0, 0.5)]), ([otlp(*SPANS)], [(1.0, 0.5), (3.0, 0.5)])],
    ids=["langsmith", "spans"],
)
def test_a_step_has_its_times_where_the_log_has_them(records: list[Any], times: list[Any]) -> None:
    steps = read(records).transcript.messages[-1].steps
    assert [(each.started, each.seconds) for each in steps] == times


def test_the_only_request_of_a_message_is_in_its_metadata_alone() -> None:
    [message] = read([claude.answer(1, {"type": "text", "text": "Hi"}, "a1")]).transcript.messages
    assert message.metadata["usage"]["inputTokens"] == 100
    assert [(start.usage, start.response_id) for start in message.step_starts] == [(None, "m1")]
    assert [(each.usage or {})["inputTokens"] for each in message.steps] == [100]


# Sub-agents


def test_what_a_sub_agent_was_told_beside_the_arguments_of_its_call_is_kept_with_the_call() -> None:
    inside = [
        {**each, "agentId": "k9"}
        for each in [*claude.INSIDE, claude.sidechain(5.5, "user", "Only here", "x5", parentUuid="x4")]
    ]
    run = read([claude.TASK, *inside, claude.TASK_DONE])
    assert run.transcript.calls["t1"].extra["messages"] == [{"role": "user", "text": "Only here"}]


def test_the_file_of_an_agent_is_read_with_the_session_that_started_it(tmp_path: Path) -> None:
    folder = tmp_path / "s1" / "subagents"
    folder.mkdir(parents=True)
    inside = [{**each, "agentId": "k9"} for each in claude.INSIDE]
    for path, lines in ((tmp_path / "s1.jsonl", [claude.TASK, claude.TASK_DONE]), (folder / "agent-k9.jsonl", inside)):
        path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    [run] = read_many(tmp_path)
    assert nested_texts(run.transcript, "t1") == ["Searching.", "No tests."]
    [alone] = read_many(folder)
    assert nested_texts(alone.transcript, "t1") == []


# Repeats


def user(second: float, text: str, uuid: str, session: str, **fields: Any) -> dict[str, Any]:
    return claude.line("user", second, text, uuid, **{**fields, "sessionId": session})


RESUMED = [
    user(0, "One", "u1", "old", parentUuid=None),
    claude.answer(1, claude.call("c1"), "a1", parentUuid="u1", sessionId="old") | {"sessionId": "old"},
    claude.result(2, "c1", "ok", "u2", parentUuid="a1") | {"sessionId": "old"},
    user(3, "Two", "u3", "new", parentUuid="u2"),
    claude.answer(4, {"type": "text", "text": "Done."}, "a2", "m2", parentUuid="u3") | {"sessionId": "new"},
]
FORKED = [
    codex.line("session_meta", 10, id="child", forked_from_id="s1"),
    codex.line("session_meta", 10, id="s1"),
    codex.message(10.1, "user", "One"),
    codex.shell(10.1, "c1", command=["ls"]),
    codex.output(10.1, "c1", "a.txt"),
    codex.message(15, "user", "Two"),
    codex.message(16, "assistant", "Done."),
]
HISTORY = [said("system", "Be brief."), said("user", "One"), said("assistant", "I look.", ASK), said("tool", FOUND)]
CONTINUED = [
    ROOT,
    model_span("m1", 1, [*HISTORY, said("user", "Two")], said("assistant", "Done."), {"gen_ai.usage.input_tokens": 5}),
]
LANGSMITH = [
    logged(
        *("llm1", "llm", 1, None),
        inputs={"messages": [[human("One"), langsmith_ai("1.", ("c1", "f", {})), human("Two")]]},
        outputs=langsmith_answer(langsmith_ai("Done.")),
    )
]
COPIED = {
    **TRAJECTORY,
    "steps": [
        step(1, "user", "One", is_copied_context=True),
        step(2, "agent", "1.", is_copied_context=True),
        step(3, "user", "Two"),
        step(4, "agent", "Done."),
    ],
}


@pytest.mark.parametrize(
    "records",
    [RESUMED, FORKED, [otlp(*CONTINUED)], [LANGSMITH], [COPIED]],
    ids=["claude-code", "codex", "spans", "langsmith", "atif"],
)
def test_what_a_trace_repeats_from_an_earlier_run_is_marked_and_not_counted(records: list[Any]) -> None:
    run = read(records)
    own = [(each.role, each.text) for each in run.transcript.messages if not each.repeated]
    assert own[-2:] == [("user", "Two"), ("assistant", "Done.")]
    repeated = [each for each in run.transcript.messages if each.repeated]
    assert [(each.role, each.repeated) for each in repeated] == [("user", True), ("assistant", True)]
    entry = entry_of("file", 0, run)
    assert (entry.prompt, entry.repeated, entry.calls) == ("Two", 2, 0)
    assert entry.messages == len(run.transcript.messages) - 2


def test_a_call_of_the_history_that_this_trace_ran_is_its_own() -> None:
    tool = span(
        *("t", "execute_tool search", 0.5, 1, "root"),
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "c1"},
    )
    run = read([otlp(ROOT, tool, *CONTINUED[1:])])
    assert [each.repeated for each in run.transcript.messages if each.calls] == [None]


def test_repeated_calls_are_rows_that_say_so(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, RESUMED)), "utf-8")
    runs = read_many(path)
    assert [*runs.calls.df[["id", "repeated"]].itertuples(index=False, name=None)] == [("c1", True)]
    table = runs.sql("select turn, role, repeated, tokens_in, tokens_cached from messages order by turn")
    assert [*table.repeated] == [True, True, False, False]
    assert [*table.tokens_in.fillna(0)] == [0, 0, 0, 100]
    assert [*table.tokens_cached.fillna(0)] == [0, 0, 0, 90]
    steps = runs.sql("select turn, step, model, tokens_in, tokens_cached, response_id, text from steps")
    assert [*steps.itertuples(index=False, name=None)] == [(3, 0, "m-4", 100, 90, "m2", "Done.")]


def test_the_facts_read_back_from_parquet(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, [*claude.INSIDE, claude.TASK, claude.TASK_DONE])), "utf-8")
    runs = read_many(path)
    runs.to_parquet(tmp_path / "cache")
    assert [run.transcript for run in read_many(tmp_path / "cache")] == [run.transcript for run in runs]
    steps = runs.sql("select parent, step, agent, text, calls from steps where parent is not null order by step")
    assert [*steps.itertuples(index=False, name=None)] == [
        ("t1", 0, "Explore", "Searching.", 1),
        ("t1", 1, "Explore", "No tests.", 0),
    ]


def test_a_text_inside_a_call_is_found_with_that_call(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, [*claude.INSIDE, claude.TASK, claude.TASK_DONE])), "utf-8")
    assert [(match.call, match.text) for match in read_many(path).search("searching")] == [("t1", "Searching.")]


# Who wrote a message


@pytest.mark.parametrize(
    ("fields", "text", "writer"),
    [
        ({"isMeta": True}, "Base directory for this skill: /skills/x", "skill"),
        ({"isMeta": True}, "Do this", ""),
        ({"isCompactSummary": True}, "This session is being continued", "compaction"),
        ({}, "<system-reminder>Be careful</system-reminder>", "system-reminder"),
        ({}, "<local-command-stdout>Reconnected.</local-command-stdout>", "local-command-stdout"),
        ({}, "Please help", None),
    ],
)
def test_what_claude_code_wrote_in_the_place_of_the_user_is_marked(fields: Any, text: str, writer: str | None) -> None:
    [message] = read([claude.line("user", 0, text, "u1", **fields)]).transcript.messages
    assert (message.injected, message.text) == (writer, text)


@pytest.mark.parametrize(
    ("text", "writer"),
    [
        ("<environment_context>zsh</environment_context>", "environment_context"),
        ("<user_instructions>Be brief</user_instructions>", "user_instructions"),
        ("# AGENTS.md instructions for /repo", "AGENTS.md"),
        ("Fix it", None),
    ],
)
def test_what_codex_wrote_in_the_place_of_the_user_is_marked(text: str, writer: str | None) -> None:
    [message] = read([codex.line("session_meta", 0, id="s1"), codex.message(0, "user", text)]).transcript.messages
    assert message.injected == writer


def test_the_summary_of_a_compacted_session_of_codex_is_injected() -> None:
    compacted = codex.line("compacted", 8, message="What was done.", replacement_history=[])
    run = read([*codex.SESSION, compacted])
    last = run.transcript.messages[-1]
    assert (last.text, last.injected, entry_of("file", 0, run).state) == ("What was done.", "compaction", "done")


def test_the_prompt_of_a_run_is_the_first_that_the_user_wrote() -> None:
    assert entry_of("file", 0, read(codex.SESSION)).prompt == "List the files"


# Ends


def stopped(text: str) -> list[Any]:
    return [claude.answer(1, claude.call("c1"), "a1"), claude.line("user", 3, [{"type": "text", "text": text}], "u2")]


def failed_spans(*names: str) -> list[Any]:
    error = {"status": {"code": 2, "message": "no luck"}}
    return [otlp(*({**each, **error} if each["name"] in names else each for each in SPANS))]


def with_error(text: str) -> list[Any]:
    return [[{**TRACE[0], "error": text}, *TRACE[1:]]]


@pytest.mark.parametrize(
    ("records", "state", "error"),
    [
        (claude.SESSION, "done", None),
        (stopped("[Request interrupted by user]"), "stopped", "Request interrupted by user"),
        (codex.SESSION, "done", None),
        ([*codex.SESSION[:9], codex.event(4, "turn_aborted", reason="interrupted")], "stopped", "stopped"),
        ([*codex.SESSION[:9], codex.event(4, "turn_aborted", reason="replaced")], "stopped", "replaced"),
        ([*codex.SESSION, codex.event(8, "error", message="Quota")], "error", "Quota"),
        ([TRACE], "done", None),
        (with_error("ValueError('no')"), "error", "ValueError('no')"),
        ([[{**TRACE[0], "status": "pending"}, *TRACE[1:]]], "interrupted", None),
        ([log()], "done", None),
        ([log(limit={"type": "token", "limit": 500})], "limit", None),
        ([log(limit={"type": "message"}, messages=SAMPLE["messages"][:2])], "limit", None),
        ([log(error={"message": "boom", "traceback": "…"})], "error", "boom"),
        ([{**log(scores=None), "status": "cancelled"}], "interrupted", None),
        ([otlp(*SPANS)], "done", None),
        (failed_spans("invoke_agent finder"), "error", "no luck"),
    ],
)
def test_how_the_run_ended(records: list[Any], state: str, error: str | None) -> None:
    run = read(records)
    assert run_outcome(run.transcript.messages, is_unfinished=run.is_unfinished) == (state, error)
    entry = entry_of("file", 0, run)
    assert (entry.state, entry.error) == (state, error)


def test_what_the_user_says_after_an_interruption_goes_on() -> None:
    lines = [
        *stopped("[Request interrupted by user for tool use]"),
        claude.line("user", 4, "Go on", "u3"),
        claude.answer(5, {"type": "text", "text": "Done."}, "a2", "m2"),
    ]
    first, asked, last = read(lines).transcript.messages
    assert (first.aborted, asked.text, last.aborted) == ("Request interrupted by user for tool use", "Go on", None)


# Ids and usage


def test_a_call_id_that_comes_again_is_that_of_another_call_with_its_own_times() -> None:
    lines = [
        claude.answer(1, claude.call("c1", command="ls"), "a1"),
        claude.result(2, "c1", "one", "u1"),
        claude.line("user", 3, "Again", "u2"),
        claude.answer(4, claude.call("c1", command="pwd"), "a2", "m2"),
        claude.result(7, "c1", "two", "u3"),
    ]
    calls = read(lines).transcript.calls
    assert [(call.id, call.provider_id, call.output, call.seconds) for call in calls.values()] == [
        ("c1", None, "one", 1.0),
        ("c1-2", "c1", "two", 3.0),
    ]
    assert [*calls.df.provider_id.fillna("")] == ["", "c1"]


def test_tokens_read_from_a_cache_are_part_of_the_input() -> None:
    entry = entry_of("file", 0, read(claude.SESSION))
    assert (entry.tokens_in, entry.tokens_cached, entry.tokens_written, entry.tokens_reasoning) == (
        200,
        180,
        None,
        None,
    )
    entry = entry_of("file", 0, read(codex.SESSION))
    assert (entry.tokens_in, entry.tokens_cached, entry.tokens_out, entry.tokens_reasoning) == (250, 8, 12, 4)


def test_a_repeated_message_has_no_usage_of_its_own() -> None:
    message = Message("assistant", metadata={"usage": {"inputTokens": 5}}, repeated=True)
    assert read_usage(Transcript((message,)).messages).usage == {}
