"""Two equal runs have other ids and other times. They are the same to ``diff(…, ignore="timings,ids,text")``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import agents as openai_agents
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import Agent

from tests.agents import scripted_claude as claude
from tests.agents import scripted_langgraph as langgraph
from tests.agents import scripted_llama_index as llama_index
from tests.agents import scripted_openai as openai
from tests.agents import scripted_pydantic_ai as pydantic_ai
from tests.agents import scripted_smolagents as smolagents
from tests.support import provider_replays, recordings
from tests.support.recordings import Recording
from tests.support.replay_server import ReplayServer, Reply
from toolcall_nb import Chat, Transcript, diff
from toolcall_nb.core.transcript import DataPart, Message, TextPart
from toolcall_nb.sources.sdk_streams import ItemReader

pytestmark = llama_index.WITHOUT_FIELD_WARNINGS

IGNORED = "timings,ids,text"
UUID_END = "4067-41e9-8bad-9b1deb4d3b7d"

# Providers ----------------------------------------------------------------------------------------------------

WIRE_IDS = {
    *("id", "item_id", "call_id", "previous_response_id", "response_id", "responseId", "request_id", "tool_call_id"),
    *(
        "tool_use_id",
        "tool_id",
        "toolUseId",
        "interaction_id",
        "conversation_id",
        "system_fingerprint",
        "thoughtSignature",
    ),
    *("signature", "encrypted_content", "obfuscation", "thought_signature", "container_id"),
}
WIRE_TIMES = {"created", "created_at", "completed_at", "createTime", "expires_at", "total_duration", "latencyMs"}


def renewed(value: Any) -> Any:
    """The JSON of a wire as another run would have it: each id and each time is another one."""
    if isinstance(value, list):
        return [renewed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _renewed_field(key, item) for key, item in value.items()}


def _renewed_field(key: str, value: Any) -> Any:
    if key in WIRE_IDS and isinstance(value, str) and value:
        return f"{value}AnOther"
    if key in WIRE_TIMES and isinstance(value, int | float):
        return value + 7
    return renewed(value)


def read(items: list[Any]) -> Transcript:
    adapter = ItemReader()
    return Transcript.from_events([*(event for item in items for event in adapter.take(item)), *adapter.close()])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "recording",
    [one for one in (*recordings.pydantic_ai(), *recordings.vercel_ai()) if one.path.suffix != ".eventstream"],
    ids=str,
)
def test_two_replies_of_a_provider_that_differ_in_ids_and_times_are_equal(recording: Recording) -> None:
    difference = diff(read(recording.items), read(renewed(recording.items)), ignore=IGNORED)
    assert not difference, difference.to_text()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("recording", recordings.pydantic_ai("openai_chat", "openai_responses", "anthropic"), ids=str)
def test_two_answers_of_a_model_that_differ_in_ids_and_times_are_equal(recording: Recording) -> None:
    def other(match: re.Match[bytes]) -> bytes:
        return b"data: " + json.dumps(renewed(json.loads(match[1]))).encode()

    bodies = (recording.body, re.sub(rb"(?m)^data: ?(\{.*\})(?=\r?$)", other, recording.body))
    name, suffix = provider_replays.name_for(recording)
    with ReplayServer(*map(Reply, bodies)) as server:
        model = provider_replays.model_at(server, name, suffix)
        one, two = (Transcript.from_events(provider_replays.read(model)[0]) for _ in bodies)
    difference = diff(one, two, ignore=IGNORED)
    assert not difference, difference.to_text()


# Agents -------------------------------------------------------------------------------------------------------


def _claude(number: int) -> Any:
    def script() -> Any:
        yield claude.assistant(claude.use(f"toolu_{number}", "Bash", command="ls"))
        yield claude.outcome(f"toolu_{number}", "a.txt")
        yield claude.assistant(claude.text("One file."))
        yield claude.result(f"session-{number}", duration_ms=number, total_cost_usd=0.01 * number, uuid=f"u{number}")

    return claude.chat_of(script)[0]


def _langgraph(number: int) -> Any:
    return Chat(langgraph.remembering(langgraph.calls("add", {"x": 1, "y": 2}), "Three.", saver=InMemorySaver())[0])


def _llama_index(number: int) -> Any:
    made, _ = llama_index.agent(llama_index.called("add", x=1, y=2), llama_index.said("Three."), name="adder")
    return Chat(made)


def _openai(number: int) -> Any:
    model = openai.script([openai.call("weather", f"c{number}", city="Lyon")], "It is sunny.")
    return Chat(openai_agents.Agent(name="forecaster", model=model, tools=[openai.weather]))


def _pydantic_ai(number: int) -> Any:
    script = pydantic_ai.Scripted(weather=pydantic_ai.LYON)
    return Chat(Agent(script.model, tools=[pydantic_ai.weather], name="forecaster"))


def _smolagents(number: int) -> Any:
    return Chat(smolagents.adder(smolagents.Scripted(*smolagents.REPLIES)))


@pytest.mark.parametrize(
    "chat_of",
    [_claude, _langgraph, _llama_index, _openai, _pydantic_ai, _smolagents],
    ids=lambda make: make.__name__[1:],
)
def test_two_equal_runs_of_an_agent_are_equal(chat_of: Callable[[int], Any]) -> None:
    one, two = (chat_of(number) for number in (1, 2))
    for chat in (one, two):
        chat.send("Go.")
        chat.send("And again?") if chat_of is _langgraph else None
    difference = diff(one, two, ignore=IGNORED)
    assert not difference, difference.to_text()
    assert diff(one.transcript, Transcript(two.transcript.messages[:-1]), ignore=IGNORED)


# What still counts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"model": "gpt-5"}, {"model": "gpt-5-mini"}),
        ({"agent": "planner"}, {"agent": "writer"}),
        ({"providerMetadata": {"openai": {"serviceTier": "flex"}}}, {"providerMetadata": {"openai": {}}}),
        ({"modelId": "a"}, {"modelId": "b"}),
        ({"choice": 0}, {"choice": 1}),
        ({"thread": "the whole story of a"}, {"thread": "the whole story of b"}),
        ({"run": {"title": "first"}}, {"run": {"title": "second"}}),
        ({"note": "2026-01-01T10:00:00Z is early"}, {"note": "2026-01-01T10:00:00Z is late"}),
    ],
)
def test_other_metadata_still_counts(a: dict[str, Any], b: dict[str, Any]) -> None:
    one, two = (Transcript((Message("assistant", (TextPart("Hi."),), metadata=fields),)) for fields in (a, b))
    assert diff(one, two, ignore=IGNORED)


@pytest.mark.parametrize(
    ("a", "b", "ignored"),
    [
        ({"responseId": "resp_1"}, {"responseId": "resp_2"}, "ids"),
        ({"responseId": "resp_1"}, {}, "ids"),
        ({"created": 1}, {"created": 2}, "timings"),
        ({"createdAt": "2026-01-01T10:00:00Z"}, {"createdAt": "2026-01-01T10:00:01Z"}, "timings"),
        (
            {"url": "/runs/8d8ac610-566d-4ef0-9c22-186b2a5ed793"},
            {"url": "/runs/2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d"},
            "ids",
        ),
        ({"otel": {"trace_id": "a", "span": "b"}}, {"otel": {"trace_id": "c", "span": "d"}}, "ids"),
        ({"langgraph": {"thread": "a", "checkpoint": "b"}}, {"langgraph": {"thread": "c", "checkpoint": "d"}}, "ids"),
    ],
)
def test_an_id_or_a_time_in_metadata_counts_unless_it_is_ignored(a: Any, b: Any, ignored: str) -> None:
    one, two = (Transcript((Message("assistant", (TextPart("Hi."),), metadata=fields),)) for fields in (a, b))
    assert diff(one, two, ignore="timings" if ignored == "ids" else "ids")
    assert not diff(one, two, ignore=ignored)


def test_an_id_in_a_data_part_is_an_id_and_the_rest_of_it_counts() -> None:
    def run(**data: str) -> Transcript:
        return Transcript((Message("assistant", (DataPart("step", data),)),))

    assert not diff(run(run_id="a", stage="plan"), run(run_id="b", stage="plan"), ignore=IGNORED)
    assert diff(run(run_id="a", stage="plan"), run(run_id="b", stage="act"), ignore=IGNORED)
