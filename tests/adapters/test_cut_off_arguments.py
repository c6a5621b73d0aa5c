"""Arguments that are all that had come when a reply was cut off: they are no complete call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.adapter_streams import read_stream
from toolcall_nb.core.run_outcome import cut_off_error
from toolcall_nb.core.transcript import State, Transcript


def anthropic(is_cut: bool) -> list[Any]:
    block = {"type": "tool_use", "id": "c", "name": "remove", "input": {}}
    return [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens" if is_cut else "tool_use"}},
    ]


def google(is_cut: bool) -> list[Any]:
    def chunk(call: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"functionCall": call}]}}
        return {"responseId": "r", "candidates": [{**candidate, **({"finishReason": reason} if reason else {})}]}

    piece = {"jsonPath": "$.path", "stringValue": "/data", "willContinue": is_cut}
    return [
        chunk({"name": "remove", "id": "c", "willContinue": True}),
        chunk({"partialArgs": [piece], "willContinue": is_cut}, "MAX_TOKENS" if is_cut else "STOP"),
    ]


def openai_custom(is_cut: bool) -> list[Any]:
    piece = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "remove", "input": "/data"}}
    choice = {"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": "length" if is_cut else "tool_calls"}
    return [{"object": "chat.completion.chunk", "id": "x", "choices": [choice]}]


def bedrock(is_cut: bool) -> list[Any]:
    return [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c", "name": "remove"}}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "max_tokens" if is_cut else "tool_use"}},
    ]


@pytest.mark.parametrize("stream", [anthropic, google, openai_custom, bedrock])
def test_arguments_that_only_the_end_of_a_cut_off_reply_ended_are_an_error(stream: Any) -> None:
    call = Transcript.from_events(read_stream(stream(True))).calls["c"]
    assert (call.state, call.error) == (State.OUTPUT_ERROR, cut_off_error("length"))
    whole = Transcript.from_events(read_stream(stream(False)))
    assert whole.calls["c"].state is State.INPUT_AVAILABLE
    assert not whole.diagnostics
