"""The end of a run on the wires that have calls: no call stays in a state that says that its arguments arrive."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.adapter_streams import read_stream
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import State, Transcript
from toolcall_nb.wire import decoder

_AG_UI: list[Any] = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"pa'},
]
_UI: list[Any] = [
    {"type": "start"},
    {"type": "tool-input-start", "toolCallId": "c", "toolName": "look"},
    {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"pa'},
]
_ENDS: dict[str, list[tuple[list[Any], list[Any]]]] = {
    "ag-ui": [
        (_AG_UI, [{"type": "RUN_ERROR", "message": "Lost."}]),
        (_AG_UI, [{"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}]),
        (_AG_UI, []),
    ],
    "ui": [
        (_UI, [{"type": "error", "errorText": "Lost."}, "[DONE]"]),
        (_UI, [{"type": "error", "errorText": "Lost."}, {"type": "finish"}, "[DONE]"]),
        (_UI, []),
    ],
}


@pytest.mark.parametrize(
    ("wire", "begun", "end"), [(wire, begun, end) for wire, ends in _ENDS.items() for begun, end in ends]
)
def test_a_call_that_the_end_of_its_run_cut_off_is_interrupted(wire: str, begun: list[Any], end: list[Any]) -> None:
    reader = decoder(wire)
    lines = [item if isinstance(item, str) else json.dumps(item) for item in (*begun, *end)]
    transcript = Transcript.from_events(
        [*reader.feed("".join(f"data: {line}\n\n" for line in lines).encode()), *reader.close()]
    )
    assert transcript.calls["c"].state is State.INTERRUPTED
    assert transcript.calls["c"].input_text == '{"pa'
    assert not transcript.diagnostics


@pytest.mark.parametrize("end", [[], [{"type": "error", "errorText": "Lost."}]], ids=["no end", "error"])
def test_a_call_that_the_end_of_a_list_of_chunks_cut_off_is_interrupted(end: list[Any]) -> None:
    transcript = Transcript.from_events(read_stream([*_UI, *end]))
    assert transcript.calls["c"].state is State.INTERRUPTED
    assert not transcript.diagnostics


def _anthropic(error: bool) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"pa'}
    return [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        *([{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}] if error else []),
    ]


def _openai(error: bool) -> list[dict[str, Any]]:
    piece = {"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": '{"pa'}}
    chunk = {"object": "chat.completion.chunk", "id": "x", "choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}
    return [chunk, *([{"error": {"message": "Overloaded", "type": "server_error"}}] if error else [])]


def _responses(error: bool) -> list[dict[str, Any]]:
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "look", "arguments": ""}
    return [
        {"type": "response.created", "response": {"id": "r", "object": "response"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc", "delta": '{"pa'},
        *([{"type": "error", "code": "server_error", "message": "Overloaded"}] if error else []),
    ]


@pytest.mark.parametrize("error", [True, False], ids=["error", "no end"])
@pytest.mark.parametrize("stream", [_anthropic, _openai, _responses])
def test_a_call_that_a_provider_s_error_cut_off_has_ended_with_what_was_written(stream: Any, error: bool) -> None:
    transcript = Transcript.from_events(read_stream(stream(error)))
    call = transcript.calls["c"]
    assert (call.state, call.input) == (State.OUTPUT_ERROR, '{"pa')
    assert not transcript.diagnostics
    assert any(isinstance(event, ev.Error) for event in read_stream(stream(error))) is error
