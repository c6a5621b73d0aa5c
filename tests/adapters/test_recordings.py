"""Every recorded stream and reply, of whichever provider, is recognised, read without an exception, and loses no call.

The calls are compared with an independent reading of the raw body, `tests/support/raw_calls.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import raw_calls, recordings
from tests.support.amazon_event_stream import event_stream_items
from tests.support.corpora import corpus
from tests.support.planted_fields import SAID_ELSEWHERE, unkept_fields
from tests.support.raw_calls import RawCall
from tests.support.recordings import Recording
from toolcall_nb.adapters import events_of
from toolcall_nb.core.transcript import CustomPart, ToolCall, Transcript
from toolcall_nb.sources.sdk_streams import ItemReader

pytestmark = pytest.mark.sampled(4)

_STREAMS = [*recordings.pydantic_ai(), *recordings.vercel_ai()]
"""All streams except the two bodies of MCP, which are not replies of a model."""
_NO_REPLIES = {
    r"MANIFEST\.json$": "the corpus's own list",
    r"^harness-claude-code__": "what an agent's program says to its own bridge",
    r"error\.json$|-error\.1\.json$|-429-": "the body of a refused request, which an SDK raises",
}
_STRICT = ("anthropic", "google", "google_interactions", "bedrock", "cohere")
"""Wires on which the caller's calls equal those of the raw reading; others have further kinds of calls."""

_OF_STRICT = [one for one in _STREAMS if one.wire.removesuffix("_eventstream") in _STRICT]


def _is_reply(path: Path) -> bool:
    return not any(re.search(pattern, path.name) for pattern in _NO_REPLIES)


def _items(recording: Recording) -> list[dict[str, Any]]:
    if recording.path.suffix == ".eventstream":
        return list(event_stream_items(recording.path.read_bytes()))
    return recording.items


def _read(items: list[Any]) -> Transcript:
    adapter = ItemReader()
    return Transcript.from_events([*(event for item in items for event in adapter.take(item)), *adapter.close()])


def _own(transcript: Transcript) -> list[ToolCall]:
    """The calls that the caller is asked to run."""
    return [call for message in transcript.messages for call in message.calls if not call.provider_executed]


def _unfolded(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Anthropic's ``message_start`` may hold whole blocks: each as a block of its own, for the raw reading."""
    found = []
    for item in items:
        found.append(item)
        content = item["message"].get("content") or [] if item.get("type") == "message_start" else []
        for place, block in enumerate(content):
            found.append({"type": "content_block_start", "index": place, "content_block": block})
    return found


def _assert_same(own: list[ToolCall], raw: list[RawCall], strict: bool) -> None:
    if not strict:
        named = {call.id for call in raw}
        own = [call for call in own if call.id in named] if None not in named else own
    assert [(call.name, call.input) for call in own] == [(call.name, call.arguments) for call in raw]
    assert [call.id for call in own if call.id] == [one.id or call.id for call, one in zip(own, raw, strict=True)]
    assert len({call.id for call in own}) == len(own)


@pytest.mark.parametrize("recording", _STREAMS, ids=str)
def test_a_recorded_stream_is_read_with_the_calls_and_the_text_that_it_holds(recording: Recording) -> None:
    items = _items(recording)
    transcript = _read(items)
    assert not transcript.diagnostics
    wire = recording.wire.removesuffix("_eventstream")
    _assert_same(_own(transcript), raw_calls.calls(wire, _unfolded(items)), wire in _STRICT)
    said = raw_calls.text(wire, items)
    assert _squeezed(said) in _squeezed("".join(message.text for message in transcript.messages))


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("recording", _STREAMS, ids=str)
def test_a_field_that_is_planted_into_a_recorded_stream_is_kept(recording: Recording) -> None:
    assert unkept_fields(_items(recording), _read, SAID_ELSEWHERE) == []


@pytest.mark.parametrize("recording", _OF_STRICT, ids=str)
def test_a_recorded_stream_may_be_cut_off_anywhere(recording: Recording) -> None:
    items = _items(recording)
    step = max(1, len(items) // 12)
    whole = [call.id for call in _read(items).calls.values()]
    for end in range(1, len(items), step):
        cut = _read(items[:end])
        assert len(cut.messages) == 1
        assert [call.id for call in cut.calls.values()] == whole[: len(cut.calls)]


def _replies() -> list[Any]:
    files = [*corpus("streams_vercel_ai").glob("*.json"), *corpus("nonstream_json").glob("*.json")]
    return [pytest.param(path, id=path.stem) for path in sorted(files) if _is_reply(path)]


@pytest.mark.parametrize("path", _replies())
def test_a_recorded_reply_is_read_with_the_calls_that_it_holds(path: Path) -> None:
    given = json.loads(path.read_text("utf-8"))
    reply = given["response"] if "uri" in given else given
    transcript = Transcript.from_events(events_of(reply))
    assert not transcript.diagnostics
    raw = _calls_of_reply(reply)
    named = {call.id for call in raw}
    own = [call for call in _own(transcript) if call.id in named or None in named]
    _assert_same(own, raw, strict=True)


def _calls_of_reply(reply: Mapping[str, Any]) -> list[RawCall]:
    """Reads the caller's calls in a complete reply independently, by the keys in each provider's documentation."""
    found = []
    for block in reply.get("content") or []:
        if block["type"] == "tool_use":
            found.append(RawCall(block["id"], block["name"], block["input"]))
    for part in ((reply.get("candidates") or [{}])[0].get("content") or {}).get("parts") or []:
        if call := part.get("functionCall"):
            found.append(RawCall(call.get("id"), call["name"], call.get("args") or {}))
    output = reply.get("output")
    for block in output["message"]["content"] if isinstance(output, dict) else []:
        if use := block.get("toolUse"):
            found.append(RawCall(use["toolUseId"], use["name"], use["input"]))
    for step in reply.get("steps") or []:
        if step["type"] == "function_call":
            found.append(RawCall(step["id"], step["name"], step["arguments"]))
    for item in output if isinstance(output, list) else []:
        if item["type"] == "function_call":
            found.append(RawCall(item["call_id"], item["name"], _value(item["arguments"])))
    messages = [choice.get("message") or {} for choice in reply.get("choices") or []]
    for message in [*messages, reply.get("message") or {}]:
        for call in message.get("tool_calls") or []:
            function = call["function"]
            found.append(RawCall(call.get("id") or None, function["name"], _value(function["arguments"])))
    return found


def _value(arguments: Any) -> Any:
    try:
        return arguments if not isinstance(arguments, str) else json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments


def _requests() -> list[Any]:
    """The lists of messages with calls that were sent to Anthropic, Google and Bedrock."""
    found = []
    for path in sorted(corpus("nonstream_json").glob("*.json")):
        if path.name.startswith(("anthropic__", "google__", "bedrock__")):
            request = json.loads(path.read_text("utf-8"))["request"]
            messages = request.get("messages") or request["contents"]
            if _calls_of_list(messages):
                found.append(pytest.param(messages, id=path.stem))
    return found


def _calls_of_list(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Returns name and arguments of the calls in such a list, read by the keys of each provider."""
    blocks = [block for one in messages for block in one.get("parts") or one["content"] if isinstance(block, dict)]
    found = []
    for block in blocks:
        use = block.get("functionCall") or block.get("toolUse") or block
        if use is not block or str(block.get("type")).endswith("tool_use"):
            found.append((use["name"], use.get("input", use.get("args")) or {}))
    return found


@pytest.mark.parametrize("messages", _requests())
def test_a_recorded_list_has_all_its_calls_with_their_results(messages: list[dict[str, Any]]) -> None:
    transcript = Transcript.from_events(events_of(messages))
    assert not transcript.diagnostics
    assert [(call.name, call.input) for call in transcript.calls.values()] == _calls_of_list(messages)
    assert all(call.is_final for call in transcript.calls.values())
    said = [part for one in transcript.messages if one.role == "assistant" for part in one.parts]
    assert not any(isinstance(part, CustomPart) for part in said)
