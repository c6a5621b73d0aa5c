"""Tool results that name no call id, in every form of messages: they belong to calls by name and order."""

from __future__ import annotations

from typing import Any

import pytest

from toolcall_nb import read
from toolcall_nb.core.transcript import State

_MISSING = object()
_CALLS = ("look", "see", "look")
_BY_NAME = (("see", "S"), ("look", "first"), ("look", "second"))
_BY_ORDER = ("first", "S", "second")


def _with_id(field: str, value: Any, fields: dict[str, Any]) -> dict[str, Any]:
    return fields if value is _MISSING else {**fields, field: value}


def _openai(call_id: Any, results: list[dict[str, Any]]) -> list[Any]:
    functions = [{"type": "function", "function": {"name": name, "arguments": "{}"}} for name in _CALLS]
    calls = [_with_id("id", call_id, function) for function in functions]
    results = [_with_id("tool_call_id", call_id, {"role": "tool", **result}) for result in results]
    return [{"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": calls}, *results]


def _ollama(call_id: Any) -> list[Any]:
    return _openai(call_id, [{"tool_name": name, "content": text} for name, text in _BY_NAME])


def _openai_with_names(call_id: Any) -> list[Any]:
    return _openai(call_id, [{"name": name, "content": text} for name, text in _BY_NAME])


def _openai_without_names(call_id: Any) -> list[Any]:
    return _openai(call_id, [{"content": text} for text in _BY_ORDER])


def _openai_calls_with_ids(call_id: Any) -> list[Any]:
    messages = _ollama(call_id)
    messages[1]["tool_calls"] = [{**call, "id": f"c{n}"} for n, call in enumerate(messages[1]["tool_calls"])]
    return messages


def _responses(call_id: Any) -> list[Any]:
    calls = [{"type": "function_call", "name": name, "arguments": "{}"} for name in _CALLS]
    outputs = [{"type": "function_call_output", "output": text} for text in _BY_ORDER]
    items = [_with_id("call_id", call_id, item) for item in (*calls, *outputs)]
    return [{"role": "user", "content": "?"}, *items]


def _anthropic(call_id: Any) -> list[Any]:
    calls = [_with_id("id", call_id, {"type": "tool_use", "name": name, "input": {}}) for name in _CALLS]
    results = [_with_id("tool_use_id", call_id, {"type": "tool_result", "content": text}) for text in _BY_ORDER]
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def _bedrock(call_id: Any) -> list[Any]:
    calls = [{"toolUse": _with_id("toolUseId", call_id, {"name": name, "input": {}})} for name in _CALLS]
    texts = [{"content": [{"text": text}], "status": "success"} for text in _BY_ORDER]
    results = [{"toolResult": _with_id("toolUseId", call_id, text)} for text in texts]
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def _langchain(call_id: Any) -> list[Any]:
    calls = [_with_id("id", call_id, {"type": "tool_call", "name": name, "args": {}}) for name in _CALLS]
    results = [{"type": "tool", "name": name, "content": text} for name, text in _BY_NAME]
    return [
        {"type": "ai", "content": "", "tool_calls": calls},
        *(_with_id("tool_call_id", call_id, result) for result in results),
    ]


def _gemini(call_id: Any) -> list[Any]:
    calls = [{"functionCall": _with_id("id", call_id, {"name": name, "args": {}})} for name in _CALLS]
    results = [
        {"functionResponse": _with_id("id", call_id, {"name": name, "response": {"result": text}})}
        for name, text in _BY_NAME
    ]
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]


def _pydantic_ai(call_id: Any) -> list[Any]:
    calls = [{"part_kind": "tool-call", "tool_name": name, "args": {}} for name in _CALLS]
    results = [{"part_kind": "tool-return", "tool_name": name, "content": text} for name, text in _BY_NAME]
    return [
        {"kind": "response", "parts": [_with_id("tool_call_id", call_id, call) for call in calls]},
        {"kind": "request", "parts": [_with_id("tool_call_id", call_id, result) for result in results]},
    ]


@pytest.mark.parametrize("call_id", [_MISSING, "", None], ids=["missing", "empty", "null"])
@pytest.mark.parametrize(
    "messages",
    [
        *(_ollama, _openai_with_names, _openai_without_names, _openai_calls_with_ids, _responses),
        *(_anthropic, _bedrock, _langchain, _gemini, _pydantic_ai),
    ],
)
def test_results_without_ids_belong_to_calls_by_name_and_order(messages: Any, call_id: Any) -> None:
    transcript = read(messages(call_id))
    calls = list(transcript.calls.values())
    outputs = [call.output["result"] if isinstance(call.output, dict) else call.output for call in calls]
    assert list(zip([call.name for call in calls], outputs, strict=True)) == list(zip(_CALLS, _BY_ORDER, strict=True))
    assert all(call.state is State.OUTPUT_AVAILABLE for call in calls)
    assert not transcript.diagnostics


def test_a_result_of_another_name_is_not_given_to_a_call_and_stays_in_view() -> None:
    call = {"function": {"name": "see", "arguments": {}}}
    messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_name": "look", "content": "found"}]
    transcript = read(messages)
    assert [call.state for call in transcript.calls.values()] == [State.INPUT_AVAILABLE]
    assert "found" in transcript.to_markdown()
