"""The same call and the same message, which a trace tells several times, are in the transcript once."""

from __future__ import annotations

import json
from typing import Any

from tests.support.span_files import otlp, read_records, span, told
from tests.support.trace_records import nested_texts
from toolcall_nb.core.steps import steps_of
from toolcall_nb.core.usage import read_usage
from toolcall_nb.runs.formats.base import RecordedRun

Message = dict[str, Any]


def read_spans(*spans: dict[str, Any]) -> RecordedRun:
    [run] = read_records([otlp(*spans)])
    return run


def text(role: str, content: str) -> Message:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def ask(*calls: tuple[str | None, str, Any]) -> Message:
    """A message of the assistant that asks for calls, each given by id, name and arguments."""
    parts = [{"type": "tool_call", "id": own, "name": name, "arguments": given} for own, name, given in calls]
    return {"role": "assistant", "parts": parts}


def answer(*results: tuple[str | None, Any]) -> Message:
    return {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": own, "response": out} for own, out in results],
    }


def model(span_id: str, at: float, asked: list[Message], said: Message | None, parent: Any = "r", **more: Any) -> Any:
    attributes = {
        "gen_ai.operation.name": "chat",
        **({"gen_ai.input.messages": json.dumps(asked)} if asked else {}),
        **({"gen_ai.output.messages": json.dumps([said])} if said else {}),
        **more,
    }
    return span(span_id, "chat", at, at + 0.5, parent, attributes=attributes)


def tool(span_id: str, at: float, name: str, parent: str = "r", **fields: Any) -> Any:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    for key in ("id", "arguments", "result"):
        if key in fields:
            value = fields[key] if isinstance(fields[key], str) else json.dumps(fields[key])
            attributes[f"gen_ai.tool.call.{key}"] = value
    return span(span_id, name, at, at + fields.get("seconds", 0.25), parent, attributes=attributes)


ROOT = span("r", "run", 0, 100, attributes={"gen_ai.operation.name": "invoke_agent"})
HI = text("user", "Hi")


def test_a_call_is_joined_by_id_over_answer_span_and_history() -> None:
    asked = ask(("c1", "add", {"a": 1}))
    run = read_spans(
        ROOT,
        model("m1", 1, [HI], asked, **{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}),
        tool("t1", 2, "add", id="c1", arguments={"a": 1}, result={"sum": 1}),
        model(
            "m2",
            3,
            [HI, asked, answer(("c1", '{"sum": 1}'))],
            text("assistant", "1"),
            **{"gen_ai.usage.input_tokens": 17},
        ),
    )
    assert told(run.transcript) == [
        ("user", "Hi"),
        ("assistant", "1"),
        ("add", {"a": 1}, "output-available", {"sum": 1}),
    ]
    call = run.transcript.calls["c1"]
    assert (call.started, call.seconds, call.tokens) == (2, 0.25, 5)
    assert read_usage(run.transcript.messages).added == {"c1": 5}


def test_calls_without_ids_are_joined_by_name_and_arguments() -> None:
    asked = ask((None, "add", {"a": 1}), (None, "add", {"a": 2}), (None, "sub", {}))
    run = read_spans(
        ROOT,
        model("m1", 1, [HI], asked),
        tool("t2", 2, "add", arguments={"a": 2}, result="two"),
        tool("t3", 3, "sub", result="three"),
        tool("t1", 4, "add", arguments={"a": 1}, result="one"),
        model("m2", 5, [HI, asked, answer((None, "one"), (None, "two"), (None, "three"))], text("assistant", "ok")),
    )
    assert [(call.input, call.output) for call in run.transcript.calls.values()] == [
        ({"a": 1}, "one"),
        ({"a": 2}, "two"),
        ({}, "three"),
    ]


def test_ids_that_each_answer_counts_anew_are_different_calls() -> None:
    first, second = ask(("add_0", "add", {"a": 1})), ask(("add_0", "add", {"a": 2}))
    history = [HI, first, answer(("add_0", "one")), second, answer(("add_0", "two"))]
    run = read_spans(
        ROOT,
        model("m1", 1, history[:1], first),
        tool("t1", 2, "add", id="adk-1", arguments={"a": 1}, result="one"),
        model("m2", 3, history[:3], second),
        tool("t2", 4, "add", id="adk-2", arguments={"a": 2}, result="two"),
        model("m3", 5, history, text("assistant", "ok")),
    )
    assert [(call.id, call.input, call.output) for call in run.transcript.calls.values()] == [
        ("add_0", {"a": 1}, "one"),
        ("adk-2", {"a": 2}, "two"),
    ]


def test_a_message_that_was_really_said_twice_is_there_twice() -> None:
    history = [HI, text("assistant", "Hello."), HI]
    run = read_spans(
        ROOT, model("m1", 1, history[:1], history[1]), model("m2", 2, history, text("assistant", "Again?"))
    )
    assert told(run.transcript) == [("user", "Hi"), ("assistant", "Hello."), ("user", "Hi"), ("assistant", "Again?")]


def test_what_an_answer_did_not_record_comes_from_the_next_history() -> None:
    asked = ask(("c1", "add", {"a": 1}))
    run = read_spans(
        ROOT,
        model("m1", 1, [HI], None),
        tool("t1", 2, "add", id="c1"),
        model("m2", 3, [HI, text("assistant", "I add."), asked, answer(("c1", "one"))], text("assistant", "1")),
    )
    assert told(run.transcript) == [
        ("user", "Hi"),
        ("assistant", "I add."),
        ("assistant", "1"),
        ("add", {"a": 1}, "output-available", "one"),
    ]


def test_a_history_from_before_the_trace_comes_first() -> None:
    before = [text("user", "Add."), ask(("c0", "add", {})), answer(("c0", "zero")), text("assistant", "0")]
    run = read_spans(ROOT, model("m1", 1, [*before, HI], text("assistant", "Hello.")))
    assert [message.role for message in run.transcript.messages] == ["user", "assistant", "user", "assistant"]
    assert run.transcript.calls["c0"].output == "zero"
    assert run.transcript.calls["c0"].started is None


def test_a_result_whose_call_is_not_in_the_file_is_kept() -> None:
    run = read_spans(
        ROOT,
        model("m1", 1, [answer(("c9", "late")), HI], text("assistant", "ok")),
        model("m2", 2, [answer(("c9", "late")), HI, text("assistant", "ok")], text("assistant", "ok?")),
    )
    assert [(call.id, call.output) for call in run.transcript.calls.values()] == [("c9", "late")]


def test_a_tool_that_no_model_asked_for_is_a_call_at_its_time() -> None:
    run = read_spans(
        ROOT,
        model("m1", 1, [HI], text("assistant", "One.")),
        tool("t1", 2, "save", arguments={"x": 1}, result="saved"),
        model("m2", 3, [HI, text("assistant", "One.")], text("assistant", "Two.")),
    )
    parts = [getattr(part, "text", getattr(part, "name", "")) for part in run.transcript.messages[-1].parts]
    assert parts == ["One.", "save", "Two."]


def test_two_runs_of_one_call_are_both_kept() -> None:
    run = read_spans(
        ROOT,
        model("m1", 1, [HI], ask(("c1", "add", {"a": 1}))),
        tool("t1", 2, "add", id="c1", arguments={"a": 1}, result="first"),
        tool("t2", 3, "add", id="c1", arguments={"a": 1}, result="second"),
    )
    assert [(call.id, call.output) for call in run.transcript.calls.values()] == [("c1", "first"), ("c1-1", "second")]


def test_spans_of_one_request_inside_each_other_count_once() -> None:
    inner = {"gen_ai.usage.input_tokens": 10, "gen_ai.response.model": "m-1"}
    run = read_spans(
        ROOT,
        model("outer", 1, [HI], text("assistant", "Hello."), **{"gen_ai.usage.input_tokens": 10}),
        model("middle", 1.1, [], None, parent="outer"),
        model("inner", 1.2, [], None, parent="middle", **inner),
    )
    assert told(run.transcript) == [("user", "Hi"), ("assistant", "Hello.")]
    assert read_usage(run.transcript.messages).usage == {"inputTokens": 10}
    assert run.transcript.messages[-1].metadata["model"] == "m-1"


def test_a_loop_of_requests_is_no_request_of_its_own() -> None:
    asked = ask(("c1", "add", {}))
    run = read_spans(
        span(
            "loop",
            "ai.generateText",
            0,
            9,
            attributes={
                "ai.operationId": "ai.generateText",
                "ai.prompt": '{"prompt": "Hi"}',
                "ai.response.text": "Done.",
                "ai.usage.inputTokens": 30,
            },
        ),
        model("m1", 1, [HI], asked, parent="loop", **{"gen_ai.usage.input_tokens": 10}),
        tool("t1", 2, "add", parent="loop", id="c1", result="one"),
        model(
            "m2",
            3,
            [HI, asked, answer(("c1", "one"))],
            text("assistant", "Done."),
            "loop",
            **{"gen_ai.usage.input_tokens": 20},
        ),
    )
    assert told(run.transcript) == [("user", "Hi"), ("assistant", "Done."), ("add", {}, "output-available", "one")]
    assert read_usage(run.transcript.messages).usage == {"inputTokens": 30}


def test_the_spans_of_a_client_and_a_server_are_one_call() -> None:
    server = tool("t2", 2.1, "add", parent="t1")
    server["attributes"].append({"key": "mcp.method.name", "value": {"stringValue": "tools/call"}})
    run = read_spans(
        ROOT, model("m1", 1, [HI], ask(("c1", "add", {}))), tool("t1", 2, "add", id="c1", result="1"), server
    )
    assert list(run.transcript.calls) == ["c1"]


def test_adks_span_around_parallel_calls_is_no_call() -> None:
    run = read_spans(
        ROOT,
        model("m1", 1, [HI], ask(("c1", "add", {}))),
        tool("t0", 2, "(merged tools)", result="[]"),
        tool("t1", 2, "add", parent="t0", id="c1", result="1"),
    )
    assert list(run.transcript.calls) == ["c1"]


def sub_agents() -> list[dict[str, Any]]:
    """Two agents at the same time, each inside a call; the second one has an agent of its own."""
    first, second = ask(("a1", "search", {"q": "x"})), ask(("b1", "deeper", {}))
    return [
        ROOT,
        model("m1", 1, [HI], ask(("a", "agent", {"task": "A"}), ("b", "agent", {"task": "B"}))),
        tool("ta", 2, "agent", id="a", result="A done", seconds=6),
        tool("tb", 2.1, "agent", id="b", result="B done", seconds=6),
        model(
            "ma1",
            3,
            [text("system", "You search."), text("user", "A")],
            first,
            "ta",
            **{"gen_ai.usage.input_tokens": 7},
        ),
        model("mb1", 3.1, [text("user", "B")], second, "tb"),
        tool("ta1", 4, "search", "ta", id="a1", result="x!"),
        tool("tb1", 4.1, "deeper", "tb", id="b1", result="deep", seconds=1),
        model("mc1", 4.2, [text("user", "Deeper")], ask(("c1", "search", {"q": "y"})), "tb1"),
        tool("tc1", 4.5, "search", "tb1", id="c1", result="y!"),
        model("ma2", 5, [text("user", "A"), first, answer(("a1", "x!"))], text("assistant", "A done"), "ta"),
        model("mb2", 6, [text("user", "B"), second, answer(("b1", "deep"))], text("assistant", "B done"), "tb"),
        model("m2", 9, [HI], text("assistant", "All done.")),
    ]


def test_the_calls_of_sub_agents_follow_the_call_that_they_ran_inside_of() -> None:
    run = read_spans(*sub_agents())
    assert [(call.id, call.parent) for call in run.transcript.calls.values()] == [
        ("a", None),
        ("a1", "a"),
        ("b", None),
        ("b1", "b"),
        ("c1", "b1"),
    ]
    assert [message.role for message in run.transcript.messages] == ["user", "assistant"]
    assert run.transcript.messages[-1].text == "All done."


def test_a_sub_agent_leaves_its_texts_prompts_and_usage() -> None:
    run = read_spans(*sub_agents())
    call = run.transcript.calls["a"]
    assert (call.log, nested_texts(run.transcript, "a")) == ("", ["A done"])
    assert call.extra["messages"] == [{"role": "system", "text": "You search."}]  # the arguments have the prompt
    assert read_usage(run.transcript.messages).usage == {"inputTokens": 7}


def test_the_steps_of_a_sub_agent_say_what_each_request_used() -> None:
    message = read_spans(*sub_agents()).transcript.messages[-1]
    steps = steps_of(message, "a")
    assert [(step.text, [call.id for call in step.calls], step.usage) for step in steps] == [
        ("", ["a1"], {"inputTokens": 7}),
        ("A done", [], None),
    ]
    assert [(step.started, step.seconds) for step in steps] == [(3.0, 0.5), (5.0, 0.5)]


def test_a_transfer_to_another_agent_stays_in_the_run() -> None:
    hand = ask(("h", "transfer_to_billing", {}))
    retold = {
        "role": "user",
        "parts": [
            {"type": "text", "content": "For context:"},
            {"type": "text", "content": "[triage] called tool `transfer_to_billing` with parameters: {}"},
        ],
    }
    run = read_spans(
        ROOT,
        span("a1", "invoke_agent triage", 1, 2, "r", attributes={"gen_ai.operation.name": "invoke_agent"}),
        model("m1", 1.1, [HI], hand, "a1"),
        span("a2", "invoke_agent billing", 3, 9, "r", attributes={"gen_ai.operation.name": "invoke_agent"}),
        model("m2", 3.1, [HI, retold], text("assistant", "Refunded."), "a2"),
    )
    assert told(run.transcript) == [
        ("user", "Hi"),
        ("assistant", "Refunded."),
        ("transfer_to_billing", {}, "input-available", run.transcript.calls["h"].output),
    ]
    assert run.transcript.diagnostics[0].message == "1 message tells an agent what another one did."


def test_a_tool_whose_parent_is_lost_is_joined_by_its_id() -> None:
    run = read_spans(
        ROOT,
        model("m1", 1, [HI], ask(("a", "agent", {}))),
        tool("ta", 2, "agent", id="a", result="done", seconds=5),
        model("ma1", 3, [text("user", "A")], ask(("a1", "search", {})), "ta"),
        tool("ta1", 4, "search", "lost", id="a1", result="x!"),
    )
    assert [(call.id, call.parent, call.output) for call in run.transcript.calls.values()] == [
        ("a", None, "done"),
        ("a1", "a", "x!"),
    ]
