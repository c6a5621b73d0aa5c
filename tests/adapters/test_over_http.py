"""The real SDKs over HTTP: their objects for a recorded body read like the raw events of that body."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import pytest
from google import genai
from google.genai import types
from mistralai.client import Mistral

from tests.adapters.conversation import CONVERSATION
from tests.support.adapter_streams import read_items, read_stream_async, read_whole
from tests.support.recordings import Recording, pydantic_ai, vercel_ai
from tests.support.replay_server import ReplayServer, Reply, cut_at_random
from toolcall_nb.core.transcript import Transcript

# Anthropic ----------------------------------------------------------------------------------------------------

_ANTHROPIC = [
    one
    for one in vercel_ai("anthropic")
    if "duplicate" not in one.name and "spliced" not in one.name and "programmatic" not in one.name
]


def _ask(client: Any, **more: Any) -> Any:
    messages = [{"role": "user", "content": "?"}]
    return client.messages.create(model="claude-x", max_tokens=9, messages=messages, **more)


def _anthropic(server: ReplayServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="key", max_retries=0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("recording", _ANTHROPIC, ids=str)
def test_the_objects_of_anthropics_sdk_read_like_the_raw_events(recording: Recording) -> None:
    reply = Reply(recording.body, cuts=cut_at_random(recording.body, seed=5))
    with ReplayServer(reply) as server, _anthropic(server) as client, _ask(client, stream=True) as stream:
        assert read_items(stream) == read_items(recording.items)


@pytest.mark.parametrize("name", ["anthropic-json-tool.2", "anthropic-web-search-tool.1", "anthropic-clear-thinking.1"])
def test_events_of_anthropics_helper_are_not_doubled(name: str) -> None:
    recording = next(one for one in _ANTHROPIC if one.name.endswith(name))
    with ReplayServer(Reply(recording.body)) as server, _anthropic(server) as client:
        messages: Any = [{"role": "user", "content": "?"}]
        with client.messages.stream(model="claude-x", max_tokens=9, messages=messages) as stream:
            found = read_items(stream)
            whole = read_whole(stream.get_final_message())
    assert found == read_items(recording.items)
    assert [(call.id, call.input) for call in whole.calls.values()] == [
        (call.id, call.input) for call in found.calls.values()
    ]


def test_anthropics_asynchronous_sdk_gives_the_same() -> None:
    recording = next(one for one in _ANTHROPIC if one.name.endswith("anthropic-json-tool.2"))

    async def ask(url: str) -> Transcript:
        client = anthropic.AsyncAnthropic(base_url=url, api_key="key", max_retries=0)
        async with client, await _ask(client, stream=True) as stream:
            return Transcript.from_events([event async for event in read_stream_async(stream)])

    with ReplayServer(Reply(recording.body)) as server:
        assert asyncio.run(ask(server.url)) == read_items(recording.items)


# Google -------------------------------------------------------------------------------------------------------

_GOOGLE = [*vercel_ai("google"), *pydantic_ai("google")]


def _google(url: str) -> genai.Client:
    return genai.Client(api_key="key", http_options=types.HttpOptions(base_url=url))


def _body(recording: Recording) -> bytes:
    return recording.body.replace(b"\r\n", b"\n") if recording.path.suffix == ".txt" else recording.body


@pytest.mark.sampled(3)
@pytest.mark.parametrize("recording", _GOOGLE, ids=str)
def test_the_objects_of_googles_sdk_read_like_the_raw_responses(recording: Recording) -> None:
    body = _body(recording)
    with ReplayServer(Reply(body, cuts=cut_at_random(body, seed=3))) as server, _google(server.url) as client:
        stream = client.models.generate_content_stream(model="gemini-x", contents="?")
        assert read_items(stream) == read_items([_without_service_tier(item) for item in recording.items])


def _without_service_tier(item: Any) -> Any:
    """The chunk as google-genai has it, whose types lack this field."""
    usage = {name: value for name, value in item.get("usageMetadata", {}).items() if name != "serviceTier"}
    return {**item, "usageMetadata": usage} if usage else item


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")  # google-genai's own
def test_googles_asynchronous_sdk_gives_the_same() -> None:
    recording = next(one for one in _GOOGLE if one.name.endswith("google-tool-call"))

    async def ask(url: str) -> Transcript:
        async with _google(url).aio as client:
            stream = await client.models.generate_content_stream(model="gemini-x", contents="?")
            return Transcript.from_events([event async for event in read_stream_async(stream)])

    with ReplayServer(Reply(recording.body)) as server:
        assert asyncio.run(ask(server.url)) == read_items(recording.items)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("recording", vercel_ai("google_interactions"), ids=str)
def test_the_interactions_of_googles_sdk_read_like_the_raw_events(recording: Recording) -> None:
    with ReplayServer(Reply(recording.body)) as server, _google(server.url) as client:
        stream: Any = client.interactions.create(model="gemini-x", input="?", stream=True)
        assert read_items(stream) == read_items(recording.items)


# Mistral ------------------------------------------------------------------------------------------------------


def test_mistrals_sdk_gives_the_same() -> None:
    body = "".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in CONVERSATION)
    with ReplayServer(Reply(body)) as server, Mistral(api_key="key", server_url=server.url) as client:
        stream = client.beta.conversations.start_stream(inputs="?", model="mistral-x")
        with stream:
            assert read_items(stream) == read_items(CONVERSATION)
