"""Tests of a watch with OpenTelemetry's own instrumentation of the OpenAI client.

Runs in an environment that has this instrumentation alone: see tests/watching/test_official_instrumentation.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from opentelemetry.instrumentation import openai_v2

from toolcall_nb.core.transcript import Message, State
from toolcall_nb.watching.session import WatchSession

sys.path.insert(0, str(Path(__file__).parent))

from sdk_replies import CALLING, COMPLETION, sse  # type: ignore[import-not-found]  # the tests are no package here

INSTRUMENTOR: Any = openai_v2.OpenAIInstrumentor()  # type: ignore[no-untyped-call]  # it has no types
ASKED: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How is Oslo?"}]


@pytest.fixture(autouse=True)
def no_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch shows messages also where they may not be exported."""
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)


def client(*replies: httpx2.Response) -> openai.OpenAI:
    left = iter(replies)
    transport = httpx2.MockTransport(lambda _: next(left))
    return openai.OpenAI(api_key="none", base_url="http://test/v1", http_client=httpx2.Client(transport=transport))


def told(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def test_requests_show_with_their_messages_and_tokens() -> None:
    session = WatchSession()
    session.begin()
    assert INSTRUMENTOR.is_instrumented_by_opentelemetry
    client(httpx2.Response(200, json=COMPLETION)).chat.completions.create(model="tiny", messages=ASKED)
    session.end()
    assert not INSTRUMENTOR.is_instrumented_by_opentelemetry
    messages = session.transcript.messages
    assert told(messages) == [("system", "Be brief."), ("user", "How is Oslo?"), ("assistant", "It is sunny.")]
    assert messages[-1].metadata["usage"] == {"inputTokens": 3, "outputTokens": 4}
    assert session.unseen == []


def test_a_loop_is_one_conversation_and_its_calls_get_their_results() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
    asking: Any = {"role": "assistant", "content": None, "tool_calls": [call]}
    first = {**COMPLETION, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": asking}]}
    answers = client(httpx2.Response(200, json=first), httpx2.Response(200, json=COMPLETION))
    result: Any = {"role": "tool", "tool_call_id": "call_1", "content": "clear"}
    session = WatchSession()
    session.begin()
    answers.chat.completions.create(model="tiny", messages=ASKED)
    answers.chat.completions.create(model="tiny", messages=[*ASKED, asking, result])
    session.end()
    assert told(session.transcript.messages) == [
        ("system", "Be brief."),
        ("user", "How is Oslo?"),
        ("assistant", "It is sunny."),
    ]
    (seen,) = session.calls.values()
    assert (seen.id, seen.name, seen.input, seen.output) == ("call_1", "weather", {"city": "Oslo"}, "clear")
    assert seen.state is State.OUTPUT_AVAILABLE


def test_a_stream_shows_when_it_was_read() -> None:
    session = WatchSession()
    session.begin()
    answers = client(httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=sse(CALLING)))
    for _ in answers.chat.completions.create(model="tiny", messages=ASKED, stream=True):
        pass
    session.end()
    assert told(session.transcript.messages)[-1] == ("assistant", "Let me look.")
    (seen,) = session.calls.values()
    assert (seen.name, seen.input) == ("weather", {"city": "Oslo"})
