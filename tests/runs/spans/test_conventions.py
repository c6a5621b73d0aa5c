"""The conventions by which instrumentations name what they record: each gives messages, calls, usage and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.span_files import otlp, read_records, span, told
from toolcall_nb.core.events import MISSING
from toolcall_nb.core.transcript import ErrorPart, FilePart, ReasoningPart, Transcript
from toolcall_nb.core.usage import read_usage
from toolcall_nb.runs.formats.base import RecordedRun
from toolcall_nb.runs.formats.spans.conventions import spread_value
from toolcall_nb.runs.formats.spans.values import attribute_names

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Does it rain?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"rain": true}'},
]
ANSWER = {"role": "assistant", "content": "It rains."}
TOLD = [
    ("system", "Be brief."),
    ("user", "Does it rain?"),
    ("assistant", "It rains."),
    ("weather", {"city": "Paris"}, "output-available", {"rain": True}),
]


def read_spans(*spans: dict[str, Any], **more: Any) -> RecordedRun:
    [run] = read_records([otlp(*spans, **more)])
    return run


def read_attributes_of_a_model(attributes: dict[str, Any]) -> RecordedRun:
    """The run of one span, given as an object, so that values may be of any type."""
    [run] = read_records([{"trace_id": "1", "span_id": "a", "name": "x", "attributes": attributes}])
    return run


PARTS = [
    {"role": "user", "parts": [{"type": "text", "content": "Does it rain?"}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"rain": True}}]},
]
GOOGLE = {
    "config": {"system_instruction": "Be brief."},
    "contents": [
        {"role": "user", "parts": [{"text": "Does it rain?"}]},
        {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Paris"}}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "weather", "response": {"rain": True}}}]},
    ],
}
VERCEL = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Does it rain?"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {"city": "Paris"}}],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "c1",
                "toolName": "weather",
                "output": {"type": "json", "value": {"rain": True}},
            }
        ],
    },
]
ANTHROPIC = {
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Does it rain?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": '{"rain": true}'}]},
    ],
}
RESPONSES = {
    "instructions": "Be brief.",
    "messages": [
        {"role": "user", "content": [{"type": "input_text", "text": "Does it rain?"}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Paris"}'},
        {"type": "function_call_output", "call_id": "c1", "output": '{"rain": true}'},
    ],
}
LANGCHAIN = [
    {"lc": 1, "type": "constructor", "id": ["x", "SystemMessage"], "kwargs": {"content": "Be brief."}},
    {"type": "human", "data": {"content": "Does it rain?"}},
    {"type": "ai", "content": "", "tool_calls": [{"id": "c1", "name": "weather", "args": {"city": "Paris"}}]},
    {"type": "tool", "tool_call_id": "c1", "content": '{"rain": true}', "status": "success"},
]


def spread(prefix: str, value: Any) -> dict[str, Any]:
    """A value as attributes with dotted names."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        return {prefix: value}
    return {name: leaf for key, item in items for name, leaf in spread(f"{prefix}.{key}", item).items()}


def openinference(message: dict[str, Any]) -> dict[str, Any]:
    calls = [{"tool_call": {"id": call["id"], "function": call["function"]}} for call in message.get("tool_calls", [])]
    return {"message": {**message, "tool_calls": calls}}


def openllmetry(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "tool_calls": [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", [])]}


def events(name: str) -> list[dict[str, Any]]:
    """The chat as logfire's attribute of events; the answer is a choice or the last message."""
    return [
        *({"event.name": f"gen_ai.{message['role']}.message", **message} for message in CHAT[:3]),
        {"event.name": "gen_ai.tool.message", "id": "c1", "content": '{"rain": true}'},
        {"event.name": name, **({"index": 0, "message": ANSWER} if name == "gen_ai.choice" else ANSWER)},
    ]


MODELS: dict[str, dict[str, Any]] = {
    "genai": {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": '[{"type": "text", "content": "Be brief."}]',
        "gen_ai.input.messages": json.dumps(PARTS),
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "It rains."}]}],
    },
    "openinference": {
        "openinference.span.kind": "LLM",
        **spread("llm.input_messages", [openinference(message) for message in CHAT]),
        **spread("llm.output_messages", [openinference(ANSWER)]),
    },
    "openinference, nested": {
        "openinference": {"span": {"kind": "LLM"}},
        "llm": {
            "input_messages": [openinference(message) for message in CHAT],
            "output_messages": [openinference(ANSWER)],
        },
    },
    "openinference, contents": {
        "openinference.span.kind": "LLM",
        **spread("llm.input_messages", [openinference(message) for message in CHAT]),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": "It rains.",
    },
    "openinference, values": {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps({"messages": CHAT}),
        "output.value": json.dumps({"choices": [{"message": ANSWER, "finish_reason": "stop"}]}),
    },
    "openllmetry": {
        "llm.request.type": "chat",
        **spread("gen_ai.prompt", [openllmetry(message) for message in CHAT]),
        **spread("gen_ai.completion", [openllmetry(ANSWER)]),
    },
    "ai sdk": {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": json.dumps(VERCEL),
        "ai.response.text": "It rains.",
    },
    "adk": {
        "gcp.vertex.agent.llm_request": json.dumps(GOOGLE),
        "gcp.vertex.agent.llm_response": json.dumps({"content": {"role": "model", "parts": [{"text": "It rains."}]}}),
    },
    "logfire, request": {
        "request_data": json.dumps({"messages": CHAT, "model": "m"}),
        "response_data": json.dumps({"message": ANSWER}),
    },
    "logfire, events": {"gen_ai.operation.name": "chat", "events": json.dumps(events("gen_ai.choice"))},
    "logfire, last message": {"gen_ai.operation.name": "chat", "events": events("gen_ai.assistant.message")},
    "langfuse": {
        "langfuse.observation.type": "GENERATION",
        "langfuse.observation.input": CHAT,
        "langfuse.observation.output": ANSWER,
    },
    "anthropic": {"llm.request.type": "chat", "input.value": json.dumps(ANTHROPIC), "output.value": "It rains."},
    "responses": {"llm.request.type": "chat", "input.value": json.dumps(RESPONSES), "output.value": "It rains."},
    "langchain": {"llm.request.type": "chat", "input.value": json.dumps([LANGCHAIN]), "output.value": "It rains."},
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_told_and_answers_the_same_by_each_convention(name: str) -> None:
    assert told(read_attributes_of_a_model(MODELS[name]).transcript) == TOLD


TOOLS: dict[str, dict[str, Any]] = {
    "genai": {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"city": "Paris"}',
        "gen_ai.tool.call.result": '{"rain": true}',
    },
    "adk": {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.id": "c1",
        "gcp.vertex.agent.tool_call_args": '{"city": "Paris"}',
        "gcp.vertex.agent.tool_response": '{"rain": true}',
    },
    "openinference": {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "tool_call.id": "c1",
        "tool.parameters": '{"type": "object", "properties": {}}',
        "input.value": '{"city": "Paris"}',
        "output.value": '{"rain": true}',
    },
    "openinference, parameters": {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "tool.id": "c1",
        "tool.parameters": '{"city": "Paris"}',
        "output.value": '{"rain": true}',
    },
    "openllmetry": {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "weather",
        "gen_ai.tool.call.id": "c1",
        "traceloop.entity.input": '{"city": "Paris"}',
        "traceloop.entity.output": '{"rain": true}',
    },
    "ai sdk": {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "weather",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": '{"city": "Paris"}',
        "ai.toolCall.result": '{"rain": true}',
    },
    "pydantic-ai": {
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.id": "c1",
        "tool_arguments": '{"city": "Paris"}',
        "tool_response": '{"rain": true}',
    },
    "langchain": {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "input.value": '{"city": "Paris"}',
        "output.value": '{"type": "tool", "content": "{\\"rain\\": true}", "tool_call_id": "c1", "status": "success"}',
    },
    "langsmith": {
        "langsmith.span.kind": "tool",
        "tool_name": "weather",
        "tool_call_id": "c1",
        "langfuse.observation.input": {"input": {"city": "Paris"}},
        "langfuse.observation.output": {"rain": True},
    },
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_has_the_same_call_by_each_convention(name: str) -> None:
    run = read_attributes_of_a_model(TOOLS[name])
    assert list(run.transcript.calls) == ["c1"]
    result = '{"rain": true}' if name == "langchain" else {"rain": True}  # the text of a message stays a text
    assert told(run.transcript) == [("weather", {"city": "Paris"}, "output-available", result)]


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 3},
        {
            "gen_ai.usage.prompt_tokens": "20",
            "gen_ai.usage.completion_tokens": "5",
            "gen_ai.usage.cache_read_input_tokens": 3,
        },
        {
            "llm.token_count.prompt": 20,
            "llm.token_count.completion": 5,
            "llm.token_count.prompt_details.cache_read": 3,
        },
        {"ai.usage.promptTokens": 20, "ai.usage.completionTokens": 5, "ai.usage.cachedInputTokens": 3},
    ],
)
def test_usage_is_read_by_each_convention(attributes: dict[str, Any]) -> None:
    run = read_attributes_of_a_model({"gen_ai.operation.name": "chat", "operation.cost": 0.25, **attributes})
    [request] = read_usage(run.transcript.messages).requests
    assert request.usage == {"inputTokens": 20, "outputTokens": 5, "cachedInputTokens": 3}
    assert str((request.cost or {})["USD"]) == "0.25"


def test_messages_in_events_of_a_span_are_read() -> None:
    written = [
        {"name": "gen_ai.user.message", "attributes": [{"key": "content", "value": {"stringValue": "Hi"}}]},
        {
            "name": "gen_ai.choice",
            "attributes": [{"key": "message", "value": {"stringValue": '{"content": "Hello."}'}}],
        },
    ]
    run = read_spans(span("a", "chat", attributes={"gen_ai.operation.name": "chat"}, events=written))
    assert told(run.transcript) == [("user", "Hi"), ("assistant", "Hello.")]


def test_messages_in_the_bodies_of_events_are_read() -> None:
    body = {"input": {"messages": [{"role": "user", "content": "Hi"}]}, "output": {"messages": [{"content": "Hello."}]}}
    given = {"trace_id": "1", "span_id": "a", "attributes": {"gen_ai.operation.name": "chat"}}
    [run] = read_records([{"spans": [{**given, "span_events": [{"event_name": "x", "body": body}]}]}])
    assert told(run.transcript) == [("user", "Hi"), ("assistant", "Hello.")]


def test_the_attributes_of_langfuses_sdk_have_usage_costs_and_errors() -> None:
    name = "langfuse.observation"
    model = {
        f"{name}.type": "generation",
        f"{name}.model.name": "m-1",
        f"{name}.output": '{"role": "assistant", "content": "It rains."}',
        f"{name}.usage_details": '{"input": 20, "output": 5, "input_cache_read": 3}',
        f"{name}.cost_details": '{"total": 0.25}',
    }
    tool = {f"{name}.type": "tool", f"{name}.level": "ERROR", f"{name}.status_message": "no such city"}
    run = read_spans(span("a", "ask", 0, 1, attributes=model), span("b", "weather", 1, 2, attributes=tool))
    [request] = read_usage(run.transcript.messages).requests
    assert request.usage == {"inputTokens": 20, "outputTokens": 5, "cachedInputTokens": 3}
    assert (request.model, str((request.cost or {})["USD"])) == ("m-1", "0.25")
    assert [(call.name, call.error) for call in run.transcript.calls.values()] == [("weather", "no such city")]


def event(name: str, **attributes: str) -> dict[str, Any]:
    return {"name": name, "attributes": [{"key": key, "value": {"stringValue": v}} for key, v in attributes.items()]}


def test_content_blocks_of_bedrock_in_the_events_of_models_and_tools_are_read() -> None:
    called = [{"text": "I look."}, {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Paris"}}}]
    result = {"toolUseId": "c1", "status": "success", "content": [{"text": '{"rain": true}'}]}
    chat, hi = {"gen_ai.operation.name": "chat"}, event("gen_ai.user.message", content='[{"text": "Does it rain?"}]')
    first = [hi, event("gen_ai.choice", message=json.dumps(called), finish_reason="tool_use")]
    second = [
        *(hi, event("gen_ai.assistant.message", content=json.dumps(called))),
        event("gen_ai.tool.message", content=json.dumps([{"toolResult": result}])),
        event(
            "gen_ai.choice", message='[{"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": "It rains."}]'
        ),
    ]
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1"}
    ran = [
        event("gen_ai.tool.message", role="tool", content='{"city": "Paris"}', id="c1"),
        event("gen_ai.choice", message='[{"text": "{\\"rain\\": true}"}]', id="c1"),
    ]
    model = [
        span("a", "chat", 0, 1, attributes=chat, events=first),
        span("c", "chat", 3, 4, attributes=chat, events=second),
    ]
    alone = span("b", "x", 1, 2, attributes=tool, events=ran)
    said = [("user", "Does it rain?"), ("assistant", "I look."), ("assistant", "It rains.")]
    call = ("weather", {"city": "Paris"}, "output-available", {"rain": True})
    for spans, expected in ((model, [*said, call]), ([*model, alone], [*said, call]), ([alone], [call])):
        assert told(read_spans(*spans).transcript) == expected


def test_content_that_was_not_recorded_leaves_names_ids_and_usage() -> None:
    run = read_spans(
        span("a", "chat", 0, 1, attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9}),
        span("b", "x", 1, 2, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}),
        logs=[{"traceId": "1", "spanId": "a", "eventName": "gen_ai.user.message", "body": {"stringValue": "<elided>"}}],
    )
    assert told(run.transcript) == [("weather", MISSING, "output-available", None)]
    assert read_usage(run.transcript.messages).usage == {"inputTokens": 9}


def test_parts_of_other_kinds_are_kept() -> None:
    parts = [
        {"type": "reasoning", "content": "Hm."},
        {"type": "uri", "uri": "https://example.org/a.png", "mime_type": "image/png"},
        {"type": "blob", "content": "aGk=", "mime_type": "text/plain"},
        {"type": "hologram", "depth": 3},
    ]
    answer = [{"role": "assistant", "parts": parts}]
    run = read_attributes_of_a_model({"gen_ai.operation.name": "chat", "gen_ai.output.messages": answer})
    found = run.transcript.messages[0].parts
    assert found[0] == ReasoningPart("Hm.")
    assert found[1:3] == (
        FilePart("https://example.org/a.png", "image/png"),
        FilePart("data:text/plain;base64,aGk=", "text/plain"),
    )
    assert found[3].kind == "otel.hologram"
    assert found[3].provider_metadata == {"otel": {"type": "hologram", "depth": 3}}


def test_tools_of_the_provider_have_their_result() -> None:
    parts = [
        {"type": "server_tool_call", "name": "search", "server_tool_call": {"type": "web", "query": "rain"}},
        {"type": "server_tool_call_response", "server_tool_call_response": {"found": 3}},
    ]
    answer = [{"role": "assistant", "parts": parts}]
    run = read_attributes_of_a_model({"gen_ai.operation.name": "chat", "gen_ai.output.messages": answer})
    [call] = run.transcript.calls.values()
    assert (call.name, call.input, call.output, call.provider_executed) == (
        "search",
        {"query": "rain"},
        {"found": 3},
        True,
    )


ERRORS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"status": {"code": 2, "message": "no such city"}}, {}, "no such city"),
    ({"status": {"code": "STATUS_CODE_ERROR"}}, {"error.type": "KeyError"}, "KeyError"),
    ({}, {"error.type": "timeout"}, "timeout"),
    ({}, {"gen_ai.tool.call.result": '{"isError": true, "content": [{"text": "no such city"}]}'}, "no such city"),
    ({}, {"gen_ai.tool.call.result": '{"error": "no such city"}'}, "no such city"),
    (
        {"status": {"code": 2, "message": "E"}},
        {"error.type": "E", "gen_ai.tool.call.result": '{"error": "why"}'},
        "why",
    ),
]


@pytest.mark.parametrize(("fields", "attributes", "error"), ERRORS)
def test_a_tool_that_failed_says_why(fields: dict[str, Any], attributes: dict[str, Any], error: str) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", **attributes}
    [call] = read_spans(span("a", "x", attributes=tool, **fields)).transcript.calls.values()
    assert (call.state.value, call.error) == ("output-error", error)


def test_an_exception_gives_the_error_and_the_traceback_of_a_tool() -> None:
    said = {"exception.type": "lib.CityError", "exception.message": "no Rome", "exception.stacktrace": "Traceback …"}
    event = {"name": "exception", "attributes": [{"key": key, "value": {"stringValue": v}} for key, v in said.items()]}
    given = span("a", "x", attributes={"gen_ai.tool.name": "weather"}, events=[event], status={"code": 2})
    [call] = read_spans(given).transcript.calls.values()
    assert (call.error, call.traceback) == ("CityError: no Rome", "Traceback …")


def errors_in(transcript: Transcript) -> list[str]:
    return [part.text for message in transcript.messages for part in message.parts if isinstance(part, ErrorPart)]


def test_a_model_that_failed_leaves_its_error_in_the_message() -> None:
    failed = {"code": 2, "message": "overloaded"}
    run = read_spans(
        span("r", "run", status=failed),
        span("a", "chat", 0, 1, "r", attributes={"gen_ai.operation.name": "chat"}, status=failed),
    )
    assert errors_in(run.transcript) == ["overloaded"]


def test_a_model_that_failed_without_a_word_says_so() -> None:
    run = read_spans(span("a", "chat", attributes={"gen_ai.operation.name": "chat"}, status={"code": 2}))
    assert errors_in(run.transcript) == ["The span ended with an error and does not say which."]


def test_an_exception_that_was_handled_is_no_error() -> None:
    handled = {"name": "exception", "attributes": [{"key": "exception.message", "value": {"stringValue": "retry"}}]}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    [call] = read_spans(span("a", "x", attributes=tool, events=[handled], status={"code": 1})).transcript.calls.values()
    assert call.state.value == "output-available"


def test_a_run_that_failed_outside_of_models_and_tools_says_so() -> None:
    run = read_spans(span("r", "run", status={"code": 2, "message": "out of memory"}))
    assert errors_in(run.transcript) == ["out of memory"]


def test_the_spans_around_say_how_a_run_began_and_ended_where_models_do_not() -> None:
    root = {"gen_ai.operation.name": "invoke_agent", "input.value": "Hello?", "output.value": "Bye."}
    tool = {"gen_ai.tool.name": "weather", "gen_ai.operation.name": "execute_tool"}
    run = read_spans(span("r", "agent", 0, 9, attributes=root), span("t", "x", 1, 2, "r", attributes=tool))
    assert told(run.transcript) == [
        ("user", "Hello?"),
        ("assistant", "Bye."),
        ("weather", MISSING, "output-available", None),
    ]


def test_a_whole_history_on_the_span_of_an_agent_is_read() -> None:
    run = read_attributes_of_a_model({"pydantic_ai.all_messages": json.dumps([*PARTS, ANSWER]), "model_name": "m"})
    assert told(run.transcript) == TOLD[1:]


def test_attributes_without_a_place_are_kept_and_counted() -> None:
    run = read_attributes_of_a_model(
        {"gen_ai.operation.name": "chat", "gen_ai.request.temperature": 0.5, "my.tag": "x"}
    )
    assert run.extra["spans"][0]["attributes"] == {"gen_ai.request.temperature": 0.5, "my.tag": "x"}
    assert run.transcript.diagnostics[-1].message == (
        "2 attributes have no place in a transcript, for example 'gen_ai.request.temperature'."
    )


WORDS = st.lists(st.sampled_from(["llm", "input", "0", "1", "role"]), min_size=1, max_size=4).map(".".join)
VALUES = st.recursive(
    st.sampled_from([None, "", "a", 1]),
    lambda inner: st.dictionaries(st.sampled_from(["input", "0", "role"]), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(WORDS, VALUES, max_size=6), st.lists(WORDS, max_size=6).map(tuple))
def test_every_name_of_a_table_with_a_value_is_among_the_names_of_the_attributes(
    attributes: dict[str, Any], table: tuple[str, ...]
) -> None:
    found = attribute_names(attributes)[table]
    assert found == tuple(name for name in table if name in found)
    assert [name for name in table if spread_value(attributes, name) is not None and name not in found] == []
    assert attribute_names(dict(attributes))[table] is found


def test_names_of_attributes_without_a_value_are_not_looked_for() -> None:
    assert attribute_names({"llm.input.0.role": "user", "model": "m"})[("input", "llm.input", "mode")] == ("llm.input",)
