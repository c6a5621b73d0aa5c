"""Trajectories in ATIF and event logs in ATOF are read as runs."""

from __future__ import annotations

from typing import Any

from hypothesis import given

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
from toolcall_nb.core.transcript import FilePart, ReasoningPart, State
from toolcall_nb.core.usage import read_usage
from toolcall_nb.runs.formats.atif import ATIF
from toolcall_nb.runs.formats.langsmith import ATOF


def call(call_id: str, name: str = "search", **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": call_id, "function_name": name, "arguments": arguments}


def result(content: Any, call_id: str | None = None, **fields: Any) -> dict[str, Any]:
    return {**({"source_call_id": call_id} if call_id else {}), "content": content, **fields}


def step(number: int, source: str, message: Any, *calls: Any, results: Any = (), **fields: Any) -> dict[str, Any]:
    about = {"step_id": number, "timestamp": f"2025-09-01T10:00:{number:02}Z", "source": source, "message": message}
    asked = {"tool_calls": list(calls), "observation": {"results": list(results)}} if calls or results else {}
    return {**about, **asked, **fields}


PICTURE = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
METRICS = {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 50, "cost_usd": 0.25}
ASKS = (call("c1", q="x"), call("c2", q="y"))
TOLD = (result("found", "c1"), result(None, "c2", extra={"score": 1}))
TRAJECTORY = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s1",
    "agent": {"name": "finder", "model_name": "m-1"},
    "steps": [
        step(1, "system", "Be brief."),
        step(2, "user", [{"type": "text", "text": "Find x"}, PICTURE]),
        step(3, "agent", "I look.", *ASKS, results=TOLD, reasoning_content="Search first.", metrics=METRICS),
        step(4, "agent", "Found.", metrics=METRICS, extra={"note": "last"}),
    ],
    "final_metrics": {"total_steps": 4},
}


def test_a_trajectory_is_a_run() -> None:
    run = run_in([TRAJECTORY], "atif")
    assert (run.id, run.title, run.seconds) == ("s1", "finder", 3.0)
    system, user, assistant = run.transcript.messages
    assert (system.text, user.text, assistant.text) == ("Be brief.", "Find x", "I look.\n\nFound.")
    assert isinstance(user.parts[1], FilePart)
    assert isinstance(assistant.parts[0], ReasoningPart)
    first, second = assistant.calls
    assert (first.input, first.output, first.started, first.seconds) == ({"q": "x"}, "found", 2.0, None)
    assert (second.state, second.output) == (State.OUTPUT_AVAILABLE, None)
    assert second.provider_metadata == {"atif": {"result": {"extra": {"score": 1}}}}
    assert run.extra["steps"] == [{"step": 4, "extra": {"note": "last"}}]


def test_usage_and_cost_are_those_of_the_steps() -> None:
    usage = read_usage(run_in([TRAJECTORY], "atif").transcript.messages)
    assert usage.usage == {"inputTokens": 200, "outputTokens": 40, "cachedInputTokens": 100}
    assert {currency: float(amount) for currency, amount in (usage.cost or {}).items()} == {"USD": 0.5}
    assert usage.requests[0].model == "m-1"


def test_a_result_without_a_call_belongs_to_the_only_one_or_is_a_message() -> None:
    one = step(1, "agent", "", call("c1"), results=[result("a")])
    several = step(2, "agent", "", call("c2"), call("c3"), results=[result("b")])
    none = step(3, "agent", "ls", results=[result("c")])
    run = run_in([{**TRAJECTORY, "steps": [one, several, none]}], "atif")
    states = [(each.id, each.state) for each in run.transcript.calls.values()]
    assert states == [("c1", State.OUTPUT_AVAILABLE), ("c2", State.INPUT_AVAILABLE), ("c3", State.INPUT_AVAILABLE)]
    observed = [message.text for message in run.transcript.messages if message.metadata.get("source") == "observation"]
    assert observed == ["b", "c"]


def test_a_result_has_its_texts_and_pictures_in_order() -> None:
    image = {"type": "image", "source": {"media_type": "image/png", "path": "images/a.png"}}
    content = [{"type": "text", "text": "See."}, image]
    step = {
        **{"step_id": 1, "source": "agent", "message": ""},
        "tool_calls": [{"tool_call_id": "c1", "function_name": "look", "arguments": {}}],
        "observation": {"results": [{"source_call_id": "c1", "content": content}]},
    }
    trajectory = {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {}, "steps": [step]}
    [call] = run_in([trajectory], "atif").transcript.calls.values()
    assert call.contents is not None
    text, picture = call.contents
    assert (text["text"], picture["url"]) == ("See.", "images/a.png")


def test_copied_steps_are_marked() -> None:
    run = run_in([{**TRAJECTORY, "steps": [step(1, "user", "Hi", is_copied_context=True)]}], "atif")
    assert run.transcript.messages[0].repeated


def referring(**reference: Any) -> dict[str, Any]:
    results = [result("done", "d1", subagent_trajectory_ref=[reference])]
    steps = [step(1, "agent", "", call("d1", "delegate"), results=results)]
    return {**TRAJECTORY, "session_id": "outer", "steps": steps}


def test_a_trajectory_that_a_result_refers_to_ran_inside_the_call() -> None:
    embedded = {**referring(trajectory_id="t2"), "subagent_trajectories": [{**TRAJECTORY, "trajectory_id": "t2"}]}
    pair = {"parent": referring(session_id="s1"), "child": TRAJECTORY}
    for record in (embedded, pair):
        run = run_in([record], "atif")
        assert [(row[0], row[3]) for row in call_rows(run)] == [("d1", None), ("c1", "d1"), ("c2", "d1")]
        assert nested_texts(run.transcript, "d1") == ["Search first.", "I look.", "Found."]
    assert run_in([referring(session_id="elsewhere")], "atif").id == "outer"


def test_trajectories_that_refer_to_each_other_are_read_once() -> None:
    first, second = referring(session_id="s1"), {**referring(session_id="outer"), "session_id": "s1"}
    runs = runs_in([{"a": first, "b": second}], "atif")
    assert sum(len(run.transcript.calls) for run in runs) >= 1


@given(spoiled([{"parent": referring(session_id="s1"), "child": TRAJECTORY}, TRAJECTORY]))
def test_no_record_makes_it_raise(records: list[Any]) -> None:
    ATIF.recognises(records[:20])
    check_runs(list(ATIF.read(records)))


# ATOF


def scope(second: int, kind: str, uuid: str, category: str, data: Any, parent: str | None = "a", **profile: Any) -> Any:
    about = {"kind": "scope", "scope_category": kind, "atof_version": "0.1", "category": category, "name": uuid}
    time = f"2026-01-02T00:00:{second:02}Z"
    return {**about, "uuid": uuid, "parent_uuid": parent, "timestamp": time, "data": data, "category_profile": profile}


ASKED = {"content": "", "tool_calls": [{"id": "c1", "name": "add", "arguments": {"a": 3}}]}
HISTORY = [{"role": "user", "content": "3 + 4?"}]
SCOPES = [
    scope(0, "start", "a", "agent", {"input": "3 + 4?"}, None),
    scope(1, "start", "l1", "llm", {"messages": HISTORY}, model_name="m-1"),
    scope(2, "end", "l1", "llm", ASKED, model_name="m-1"),
    scope(3, "start", "t1", "tool", {"a": 3}, tool_call_id="c1"),
    scope(5, "end", "t1", "tool", {"result": 7}, tool_call_id="c1"),
    scope(6, "start", "l2", "llm", {"messages": [*HISTORY, {"role": "assistant", **ASKED}]}),
    scope(7, "end", "l2", "llm", {"content": "7"}),
    scope(8, "end", "a", "agent", {"response": "7"}, None),
]


def test_scopes_of_an_event_log_are_read() -> None:
    run = run_in(SCOPES, "atof")
    assert [message.text for message in run.transcript.messages] == ["3 + 4?", "7"]
    [made] = run.transcript.calls.values()
    assert (made.id, made.input, made.output, made.started, made.seconds) == ("c1", {"a": 3}, {"result": 7}, 3.0, 2.0)


@given(spoiled(SCOPES))
def test_no_event_makes_it_raise(records: list[Any]) -> None:
    ATOF.recognises(records[:20])
    check_runs(list(ATOF.read(records)))


EXPECTED = {
    "harbor-atif2otel__trajectory_pass.json": (12, 12),
    "phoenix__parallel_tools_mixed_results.json": (3, 3),
    "phoenix__harbor_terminus2_summarization.json": (7, 7),
    "phoenix__subagent_trajectories.json": (1, 1),
    "NeMo-Agent-Toolkit__exmp02_atof.jsonl": (1, 1),
    "NeMo-Agent-Toolkit__exmp04_atof.jsonl": (1, 1),
}
"""The number of calls, and of those with an output."""


def test_every_file_of_the_corpus_is_read() -> None:
    for path in sorted(corpus("traces/atif").glob("*.json*")):
        if path.name == "MANIFEST.json":
            continue
        records = records_in(path)
        assert format_of(records) is (ATOF if path.suffix == ".jsonl" else ATIF), path.name
        [run] = runs_in(records, "atof" if path.suffix == ".jsonl" else "atif")
        states = [call.state for call in run.transcript.calls.values()]
        assert run.transcript.messages, path.name
        if path.name in EXPECTED:
            assert (len(states), states.count(State.OUTPUT_AVAILABLE)) == EXPECTED[path.name], path.name
