"""Every field of every item is kept: in its place, or with its step; or a diagnostic counts it.

`toolcall_nb.adapters.fields_in_use.TRANSPORT` names what is not kept, of any provider. What else a reader leaves out is
named in `tests.support.planted_fields`: it is said elsewhere in the same reply, or it repeats the request.
"""

from __future__ import annotations

from typing import Any

import anthropic.types.beta as claude
import pytest
from google.genai import types as gemini
from google.genai._gaos.types.interactions import interactionsseevent, step, stepdeltadata
from mistralai.client.models import CompletionChunk
from mistralai.client.models.conversationevents import ConversationEventsData
from openai.types import responses
from openai.types.chat import ChatCompletionChunk

from tests.adapters import test_anthropic, test_google, test_openai, test_openai_responses, test_other_providers
from tests.adapters.conversation import CONVERSATION
from tests.adapters.test_adapters import WHOLES
from tests.adapters.test_steps import _INTERACTION
from tests.support.adapter_streams import read_items, read_whole
from tests.support.planted_fields import (
    OF_THE_REQUEST,
    SAID_ELSEWHERE,
    Item,
    alternatives,
    text_of,
    unkept_fields,
    unkept_texts,
)
from toolcall_nb.adapters.assembler import MOST_VALUES
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.core import events as ev

STREAMS: dict[str, list[Item]] = {
    "anthropic": test_anthropic._STREAM,
    "bedrock": test_other_providers._BEDROCK,
    "cohere": test_other_providers._COHERE,
    "google": test_google._STREAM,
    "google-interactions": _INTERACTION,
    "mistral": CONVERSATION,
    "ollama": test_other_providers._OLLAMA,
    "openai-chat": test_openai._STREAM,
    "openai-responses": test_openai_responses._STREAM,
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_field_that_no_reader_knows_is_kept_wherever_it_is(name: str) -> None:
    assert unkept_fields(STREAMS[name], read_items, SAID_ELSEWHERE) == []


_REPLIES = [pytest.param(thing, id=name) for name, thing in WHOLES if name in STREAMS and isinstance(thing, dict)]


@pytest.mark.parametrize("reply", _REPLIES)
def test_a_field_of_a_whole_reply_that_no_reader_knows_is_kept(reply: Item) -> None:
    assert unkept_fields([reply], lambda replies: read_whole(replies[0]), ()) == []


# The fields that the SDKs declare -----------------------------------------------------------------------------

_BEGIN = {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}}


def _alone(item: Item) -> list[Item]:
    return [item]


def _block(item: Item) -> list[Item]:
    return [_BEGIN, item, {"type": "content_block_stop", "index": item.get("index")}]


def _step(item: Item) -> list[Item]:
    return [{"event_type": "step.start", "index": 0, "step": item}, {"event_type": "step.stop", "index": 0}]


def _delta(item: Item) -> list[Item]:
    return [{"event_type": "step.delta", "index": 0, "delta": item}, {"event_type": "step.stop", "index": 0}]


def _content(name: str) -> Any:
    return lambda item: [{"candidates": [{"content": {"parts": [{name: item}]}}]}]


def _output_item(item: Item) -> list[Item]:
    return [{"type": "response.output_item.done", "output_index": 0, "item": item}]


def _response(item: Item) -> list[Item]:
    return [{"type": "response.completed", "response": {**item, "output": []}}]


_ECHOES = (*(name.partition(".")[2] for name in OF_THE_REQUEST), "output", "prompt_cache", "safety_identifier", "user")
_DECLARED: list[tuple[Any, Any, tuple[str, ...]]] = [
    (_block, claude.BetaRawMessageStreamEvent, ()),
    (_alone, ChatCompletionChunk, ()),
    (_alone, CompletionChunk, ("object",)),
    (_response, responses.Response, _ECHOES),
    (_output_item, responses.ResponseOutputItem, ("result",)),  # of a picture that could not be made
    (_alone, interactionsseevent.InteractionSSEEvent, ("interaction.object", "interaction_id", "delta.arguments")),
    (_step, step.Step, ()),
    (_delta, stepdeltadata.StepDeltaData, ("arguments",)),  # without their call
    (_alone, ConversationEventsData, ()),
    *((_content(name), field.annotation, ("args",)) for name, field in gemini.Part.model_fields.items()),
]


def _classes(annotation: Any) -> list[Any]:
    named = [cls for cls in alternatives(annotation) if hasattr(cls, "model_fields")]
    return [cls for cls in named if not cls.__name__.startswith("Unknown")]


@pytest.mark.parametrize(
    ("wrap", "cls", "others"),
    [
        pytest.param(wrap, cls, others, id=cls.__name__)
        for wrap, annotation, others in _DECLARED
        for cls in _classes(annotation)
    ],
)
def test_every_text_that_an_sdk_declares_is_kept(wrap: Any, cls: Any, others: tuple[str, ...]) -> None:
    unkept = unkept_texts(wrap, cls, read_items)
    assert sorted(path for path in unkept if not path.startswith(others)) == []


# What becomes of the fields -----------------------------------------------------------------------------------


def _reply(*deltas: Item, **fields: Any) -> list[Item]:
    return [{"object": "chat.completion.chunk", "id": "r", "choices": [{"delta": delta}], **fields} for delta in deltas]


def _kept(items: list[Item]) -> dict[str, Any]:
    [step] = read_items(items).messages[0].steps
    kept: dict[str, Any] = (step.start.provider_metadata or {})["openai"]
    return kept


def test_an_unread_field_is_kept_with_the_step_under_its_path() -> None:
    usage = {"prompt_tokens": 3, "prompt_tokens_details": {"audio_tokens": 2}, "cost": 0.5}
    items = _reply({"content": "Hi"}, system_fingerprint="fp", usage=usage)
    assert _kept(items) == {
        "system_fingerprint": "fp",
        "usage.prompt_tokens_details.audio_tokens": 2,
        "usage.cost": 0.5,
    }


def test_the_values_of_several_items_are_kept_and_equal_ones_once() -> None:
    items = _reply(*({"content": "x", "mood": mood} for mood in ("calm", "calm", "glad")))
    assert _kept(items) == {"mood": ["calm", "glad"]}


def test_of_counts_that_grow_the_latest_is_kept() -> None:
    items = [chunk for cost in (1, 2, 3) for chunk in _reply({"content": "x"}, usage={"cost": cost})]
    assert _kept(items) == {"usage.cost": 3}


def test_of_a_great_many_values_the_number_of_the_others_is_reported() -> None:
    transcript = read_items(_reply(*({"content": "x", "mood": n + 1} for n in range(MOST_VALUES + 5))))
    [diagnostic] = transcript.diagnostics
    assert (diagnostic.message, diagnostic.action) == ("The field 'mood' had 5 more values.", ev.LEFT_OUT)


@pytest.mark.parametrize("nothing", [None, "", 0, False, [], {}])
def test_a_field_that_says_nothing_is_left_out(nothing: Any) -> None:
    transcript = read_items(_reply({"content": "Hi", "mood": nothing}))
    assert "mood" not in text_of(transcript)


def test_a_further_citation_of_a_source_is_kept() -> None:
    cited = [{"type": "url_citation", "url": "https://a.example", "start_index": n} for n in (1, 2)]
    assert _kept(_reply({"content": "Hi", "annotations": cited})) == {"citations": cited[1]}


def test_an_object_of_an_unknown_type_is_not_looked_at_since_it_is_kept_whole() -> None:
    used = in_use(parts=in_use(kinds={"text": in_use("text"), "*_call": in_use("name")}))
    parts = [{"type": "text", "text": "a", "x": 1}, {"type": "a_call", "name": "n", "y": 2}, {"type": "new", "z": 3}]
    assert used.unread({"parts": parts}) == [("parts.x", 1, False), ("parts.y", 2, False)]


def test_names_are_known_in_camel_case_and_in_snake_case() -> None:
    used = in_use("finishReason")
    assert used.unread({"finishReason": "A", "finish_reason": "B", "finish_message": "C"}) == [
        ("finish_message", "C", False)
    ]
