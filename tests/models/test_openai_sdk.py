"""OpenAI's SDK over HTTP: recorded bodies, cut at random, give the same transcript as the raw events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.support.adapter_streams import read_items, read_stream, read_stream_async, read_whole
from tests.support.openai_shapes import CREATED, call_item, chunk, message_item, news, piece, reply, whole_response
from tests.support.recordings import Recording, pydantic_ai, vercel_ai
from tests.support.replay_server import ReplayServer, Reply, cut_at_random
from toolcall_nb.core import events as ev
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.transcript import State, Transcript
from toolcall_nb.sources.sdk_streams import ItemReader

_MOST = 60_000
"""The longest body in bytes; longer ones show nothing new."""


def _of(wire: str) -> list[Recording]:
    both = (*pydantic_ai(wire), *vercel_ai(wire))
    return [one for one in both if one.path.stat().st_size < _MOST and not _fails(one)]


def _fails(recording: Recording) -> bool:
    """Whether the SDK raises in the middle, as it does for an error event."""
    return any(item.get("error") for item in recording.items)


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer(Reply(b"")) as replaying:
        yield replaying


@pytest.fixture
def client(server: ReplayServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def _chat(client: Any) -> Any:
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}], stream=True)


def _responses(client: Any) -> Any:
    return client.responses.create(model="m", input="?", stream=True)


_ASK: dict[str, Callable[[Any], Any]] = {"openai_chat": _chat, "openai_responses": _responses}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("recording", [*_of("openai_chat"), *_of("openai_responses")], ids=str)
def test_the_objects_of_the_sdk_give_the_same_transcript_as_the_raw_events(
    recording: Recording, server: ReplayServer, client: OpenAI
) -> None:
    server.answers(Reply(recording.body, cuts=cut_at_random(recording.body, seed=7)))
    assert read_items(_ASK[recording.wire](client)) == read_items(recording.items)


@pytest.mark.parametrize("recording", [_of("openai_chat")[0], _of("openai_responses")[0]], ids=str)
def test_the_asynchronous_sdk_gives_the_same(recording: Recording, server: ReplayServer) -> None:
    async def ask() -> Transcript:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            stream = await _ASK[recording.wire](client)
            return Transcript.from_events([event async for event in read_stream_async(stream)])

    server.answers(Reply(recording.body, cuts=cut_at_random(recording.body, seed=8)))
    assert asyncio.run(ask()) == read_items(recording.items)


# Without recordings: what is written here, through the same SDK

_CHUNKS = [
    chunk({"role": "assistant", "content": "Hé "}),
    chunk({"content": "😀"}),
    chunk({"tool_calls": [{"type": "function", **piece("", "search", "call_a")}]}),
    *(chunk({"tool_calls": [piece(part)]}) for part in ('{"q": ', '"cats"}')),
    chunk(reason="tool_calls"),
]
_EVENTS = [
    CREATED,
    news("output_item.added", output_index=0, item=message_item("", content=[])),
    news(
        "content_part.added",
        output_index=0,
        content_index=0,
        part={"type": "output_text", "text": "", "annotations": []},
    ),
    news("output_text.delta", output_index=0, content_index=0, item_id="m1", delta="Do", logprobs=[]),
    news("output_text.delta", output_index=0, content_index=0, item_id="m1", delta="ne.", logprobs=[]),
    news("output_text.done", output_index=0, content_index=0, item_id="m1", text="Done.", logprobs=[]),
    news("output_item.done", output_index=0, item=message_item()),
    news("output_item.added", output_index=1, item=call_item("")),
    news("function_call_arguments.delta", output_index=1, item_id="fc", delta='{"q": "cats"}'),
    news("function_call_arguments.done", output_index=1, item_id="fc", arguments='{"q": "cats"}'),
    news("output_item.done", output_index=1, item=call_item()),
    news("completed", response=whole_response(message_item(), call_item())),
]


def _body(items: list[Any]) -> bytes:
    return (
        b"".join(f"data: {json.dumps(item, ensure_ascii=False)}\n\n".encode() for item in items) + b"data: [DONE]\n\n"
    )


@pytest.mark.parametrize(("wire", "items"), [("openai_chat", _CHUNKS), ("openai_responses", _EVENTS)])
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_that_is_cut_anywhere_gives_the_same(
    wire: str, items: list[Any], seed: int, server: ReplayServer, client: OpenAI
) -> None:
    body = _body(items)
    server.answers(Reply(body, cuts=cut_at_random(body, seed)))
    assert read_items(_ASK[wire](client)) == read_items(items)


def test_the_events_of_the_chat_helper_repeat_nothing(server: ReplayServer, client: OpenAI) -> None:
    server.answers(Reply(_body(_CHUNKS)))
    messages: Any = [{"role": "user", "content": "?"}]
    with client.chat.completions.stream(model="m", messages=messages) as stream:
        found = read_items(stream)
        reply_of_it = stream.get_final_completion()
    assert found == read_items(_CHUNKS)
    assert read_whole(reply_of_it).messages[0].parts == found.messages[0].parts


def test_the_events_of_the_responses_helper_repeat_nothing(server: ReplayServer, client: OpenAI) -> None:
    server.answers(Reply(_body(_EVENTS)))
    with client.responses.stream(model="m", input="?") as stream:
        found = read_items(stream)
        response = stream.get_final_response()
    assert found == read_items(_EVENTS)
    assert read_whole(response) == found


def test_the_helpers_snapshots_are_not_read_with_each_event(server: ReplayServer, client: OpenAI) -> None:
    """The snapshot grows with each event: reading it would take quadratic time."""
    server.answers(Reply(_body(_EVENTS)))
    adapter = ItemReader()
    with client.responses.stream(model="m", input="?") as stream:
        for event in stream:
            if hasattr(event, "snapshot"):
                event.snapshot = object()  # what can't be written as JSON
            adapter.take(event)
    assert [type(event) for event in adapter.close()] == [ev.FinishStep, ev.Finish]


def test_whole_objects_of_the_sdk_are_read(server: ReplayServer, client: OpenAI) -> None:
    said = {"role": "assistant", "content": "Hi", "tool_calls": [{"type": "function", **piece("{}", "t", "a")}]}
    whole = {"id": "c", "created": 0, "model": "m", **reply(said)}
    whole["choices"][0]["index"] = 0
    made = ChatCompletion.model_validate(whole)
    assert read_whole(made) == read_whole(whole)
    assert read_items([ChatCompletionChunk.model_validate({"created": 0, **one}) for one in _CHUNKS]) == read_items(
        _CHUNKS
    )


def _kept(stream: Any) -> tuple[Transcript, Exception | None]:
    """The transcript of a stream, and the exception that it raised."""
    builder = TranscriptBuilder()
    try:
        for event in read_stream(stream):
            builder.apply(event)
    except Exception as error:
        return builder.transcript, error
    return builder.transcript, None


def test_the_reply_before_an_error_event_is_kept(server: ReplayServer, client: OpenAI) -> None:
    server.answers(Reply(_body([*_CHUNKS[:2], {"error": {"message": "Too long"}}])))
    found, error = _kept(_chat(client))
    assert isinstance(error, openai.APIError)
    assert found.messages[0].text == "Hé 😀"


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses"])
def test_a_connection_lost_at_any_byte_keeps_the_reply_so_far(wire: str, server: ReplayServer, client: OpenAI) -> None:
    body = _body(_CHUNKS if wire == "openai_chat" else _EVENTS)
    whole, _ = _kept(_stream_of(wire, body, None, server, client))
    for end in range(0, len(body), 37):
        found, _ = _kept(_stream_of(wire, body, end, server, client))
        assert all(call.id == "call_a" for call in found.calls.values())
        assert all(call.state in (State.INPUT_AVAILABLE, State.OUTPUT_ERROR) for call in found.calls.values())
        assert not found.messages or whole.messages[0].text.startswith(found.messages[0].text)


def _stream_of(wire: str, body: bytes, end: int | None, server: ReplayServer, client: OpenAI) -> Iterator[Any]:
    server.answers(Reply(body, lost_after=end))
    yield from _ASK[wire](client)
