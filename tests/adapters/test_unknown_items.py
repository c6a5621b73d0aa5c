"""Unknown items of a stream are reported to the user once; keep-alives are ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.adapter_streams import read_items, read_whole
from toolcall_nb.adapters.recognise import recognise_source
from toolcall_nb.core.sdk_objects import SourceKind
from toolcall_nb.core.transcript import CustomPart, ErrorPart, TextPart, Transcript
from toolcall_nb.sources.player import play_events

Item = dict[str, Any]

STREAMS: dict[str, list[Item]] = {
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r", "model": "m"}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
    ],
    "openai": [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}],
    "anthropic": [
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    ],
    "google": [{"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]}],
}
UNKNOWN = {"wholly": "unknown"}
SIGNS: list[Item] = [
    {"type": "keepalive"},
    {"type": "keepalive", "sequence_number": 3},
    {"type": "ping"},
    {"type": "heartbeat", "timestamp": 1.5},
]


def shown(items: list[Item]) -> Transcript:
    return Transcript.from_events(play_events(iter(items)))


def notes(transcript: Transcript) -> list[str]:
    return [part.text for message in transcript.messages for part in message.parts if isinstance(part, ErrorPart)]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(("times", "begins"), [(1, "One item of the stream was left out."), (3, "3 items of the str")])
def test_unknown_items_are_reported_once_with_their_number(name: str, times: int, begins: str) -> None:
    transcript = shown([*STREAMS[name], *[UNKNOWN] * times])
    assert transcript.messages[-1].text == "Hi"
    [note] = notes(transcript)
    assert note.startswith(begins)
    assert "A mapping with 'wholly'" in note


def test_unknown_items_of_several_kinds_are_listed_in_the_details() -> None:
    transcript = shown([*STREAMS["openai"], UNKNOWN, {"other": 1}, UNKNOWN])
    [error] = [part for part in transcript.messages[-1].parts if isinstance(part, ErrorPart)]
    assert error.details is not None
    first, second = error.details.splitlines()
    assert ("'wholly'" in first, "(2 times)" in first, "'other'" in second) == (True, True, True)


@pytest.mark.parametrize("sign", SIGNS, ids=str)
@pytest.mark.parametrize("name", STREAMS)
def test_a_keepalive_is_ignored_anywhere(name: str, sign: Item) -> None:
    items = STREAMS[name]
    readers: list[Callable[[list[Item]], Transcript]] = [read_items, shown]
    for reader in readers:
        for place in range(len(items) + 1):
            transcript = reader([*items[:place], sign, *items[place:]])
            assert not transcript.diagnostics
            assert [part for message in transcript.messages for part in message.parts] == [TextPart("Hi")]
    assert recognise_source([sign, *items]).kind is SourceKind.STREAM


def test_an_item_with_other_fields_is_no_keepalive() -> None:
    assert notes(shown([*STREAMS["openai"], {"type": "ping", "text": "Hello?"}]))


@pytest.mark.parametrize("place", range(4))
def test_a_list_of_openais_items_with_an_unknown_one_is_read(place: int) -> None:
    items: list[Item] = [
        {"role": "user", "content": "Go."},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
    ]
    items.insert(place, {"type": "brand_new", "x": 1})
    assert recognise_source(items).kind is SourceKind.WHOLE
    transcript = read_whole(items)
    [call] = transcript.calls.values()
    assert (call.name, call.output) == ("f", "1")
    custom = [part for message in transcript.messages for part in message.parts if isinstance(part, CustomPart)]
    assert [(part.kind, (part.provider_metadata or {})["openai"]["x"]) for part in custom] == [("openai.brand_new", 1)]


def test_a_list_of_unknown_items_is_not_recognised_as_openais() -> None:
    assert recognise_source([{"type": "brand_new"}, {"type": "another"}]).kind is SourceKind.NOTHING
