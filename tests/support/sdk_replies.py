"""Clients of real SDKs that answer with the replies written here; they use no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx2  # the SDKs' HTTP client

__all__ = ["CALLING", "COMPLETION", "MESSAGES", "anthropic_client", "async_openai_client", "openai_client", "sse"]


def _chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}


def _call(**fields: Any) -> dict[str, Any]:
    return {"index": 0, "type": "function", **fields}


CALLING = [
    _chunk(role="assistant", content="Let me "),
    _chunk(content="look."),
    _chunk(tool_calls=[_call(id="call_7", function={"name": "weather", "arguments": ""})]),
    _chunk(tool_calls=[_call(function={"arguments": '{"city": '})]),
    _chunk(tool_calls=[_call(function={"arguments": '"Oslo"}'})]),
    _chunk("tool_calls"),
]
"""The chunks of an OpenAI chat completion: some text and a tool call."""

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "It is sunny."}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "How is Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_7", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_7", "content": "Sunny"},
    {"role": "assistant", "content": "It is sunny."},
]

_CLAUDE: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
     "model": "claude", "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is sunny."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]  # fmt: skip


def sse(chunks: Sequence[dict[str, Any]], *, named: bool = False) -> str:
    """Returns the body of an event stream; ``named`` adds event names, as Anthropic does."""
    frames = [(f"event: {chunk['type']}\n" if named else "") + f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join(frames) + ("" if named else "data: [DONE]\n\n")


def openai_client(chunks: Sequence[dict[str, Any]] = CALLING) -> Any:
    """Returns a real client that streams these chunks and returns `COMPLETION` for requests without streaming."""
    import openai

    return openai.OpenAI(
        api_key="none",
        base_url="http://test/v1",
        http_client=httpx2.Client(transport=httpx2.MockTransport(_answer(chunks))),
    )


def async_openai_client(chunks: Sequence[dict[str, Any]] = CALLING) -> Any:
    """Returns the asynchronous form of `openai_client`."""
    import openai

    transport = httpx2.MockTransport(_answer(chunks))
    return openai.AsyncOpenAI(
        api_key="none", base_url="http://test/v1", http_client=httpx2.AsyncClient(transport=transport)
    )


def anthropic_client() -> Any:
    """Returns a real client that streams the text "It is sunny."."""
    import anthropic

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=sse(_CLAUDE, named=True))

    return anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))


def _answer(chunks: Sequence[dict[str, Any]]) -> Callable[[httpx2.Request], httpx2.Response]:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if json.loads(request.content).get("stream"):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=sse(chunks))
        return httpx2.Response(200, json=COMPLETION)

    return answer
