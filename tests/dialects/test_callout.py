"""The callout dialect: every rule of seed 000 and every decision on callouts, whole and at every cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.support.corpora import corpus
from tests.support.documents import cuts, documents, in_pieces
from tests.support.fixture_files import read_fixtures
from toolcall_nb.core import events as ev
from toolcall_nb.core.call_states import FINAL_STATES
from toolcall_nb.core.events import MISSING, Event
from toolcall_nb.core.transcript import State, TextPart, ToolCall, Transcript
from toolcall_nb.dialects import detector, instructions
from toolcall_nb.dialects.callout import create_stream_chunks
from toolcall_nb.errors import UsageError
from toolcall_nb.markdown import tool_callout_plugin
from toolcall_nb.markdown.scanner import CalloutClosed, Text, scan
from toolcall_nb.markdown.yaml_text import BodyError, load_body
from toolcall_nb.tools import Tool

FIXTURES = read_fixtures("callouts.md")


def detect(*pieces: str) -> list[Event]:
    found = detector("callout")
    return [event for piece in pieces for event in found.feed(piece)] + found.close()


def seen(transcript: Transcript) -> list[Any]:
    """A transcript of one message in the form of the fixtures."""
    parts: list[Any] = []
    for part in transcript.messages[0].parts if transcript.messages else ():
        if isinstance(part, TextPart):
            parts.append(part.text)
        elif isinstance(part, ToolCall):
            about = {"title": part.title, "open": part.open, "error": part.error, "extra": part.extra or None}
            outcome = {key: value for key, value in about.items() if value is not None}
            if part.output is not MISSING:
                outcome["output"] = part.output
            parts.append([part.id, part.name, part.input, outcome])
    return parts


def expected(text: str) -> tuple[list[Any], int]:
    """What a fixture expects: the parts, and the number of diagnostics."""
    parts: list[Any] = []
    diagnostics = 0
    for part in json.loads(text):
        outcome = part if isinstance(part, dict) else part[3] if isinstance(part, list) else {}
        diagnostics += outcome.pop("diagnostics", 0)
        if part != {}:
            parts.append(part)
    return parts, diagnostics


@pytest.mark.parametrize(("title", "text", "wanted"), FIXTURES, ids=[title for title, _, _ in FIXTURES])
def test_example(title: str, text: str, wanted: str) -> None:
    parts, diagnostics = expected(wanted)
    text = text.removesuffix("\n")
    for pieces in ([text], list(text), *([text[:i], text[i:]] for i in range(len(text)))):
        transcript = Transcript.from_events(detect(*pieces))
        assert seen(transcript) == parts
        assert len(transcript.diagnostics) == diagnostics
    assert seen(Transcript.from_markdown(text)) == parts


@settings(max_examples=400)
@given(st.data())
def test_cuts_do_not_matter(data: st.DataObject) -> None:
    text = data.draw(documents())
    whole = detect(text)
    transcript = Transcript.from_events(whole)
    for pieces in (list(text), in_pieces(text, data.draw(cuts(text)))):
        events = detect(*pieces)
        assert Transcript.from_events(events) == transcript
        assert Transcript.from_events(events).diagnostics == transcript.diagnostics
        assert all_text(events) == all_text(whole)


def all_text(events: list[Event]) -> str:
    return "".join(event.delta for event in events if isinstance(event, ev.TextDelta))


@settings(max_examples=400)
@given(documents())
def test_text_and_calls_account_for_every_character(text: str) -> None:
    """What is not in a text delta is the source of a callout that could be read."""
    kept = ""
    for segment in scan(text):
        if isinstance(segment, Text):
            kept += segment.text
        elif isinstance(segment, CalloutClosed):
            try:
                load_body(segment.body)
            except BodyError:
                kept += segment.source
    assert all_text(detect(*text)) == kept


@settings(max_examples=300)
@given(documents())
def test_a_call_starts_once_and_ends_once(text: str) -> None:
    begun: dict[str, int] = {}
    for event in detect(text):
        if isinstance(event, ev.ToolInputStart) and event.tool_call_id not in begun:
            begun[event.tool_call_id] = 0
        if isinstance(event, ev.ToolOutputAvailable | ev.ToolOutputError):
            begun[event.tool_call_id] = begun.get(event.tool_call_id, 0) + 1
    transcript = Transcript.from_events(detect(text))
    for call in transcript.calls.values():
        assert (call.state in FINAL_STATES) <= (begun.get(call.id, 1) >= 1)
    assert len(transcript.calls) == sum(len(message.calls) for message in transcript.messages)


@settings(max_examples=300)
@given(documents())
def test_the_plugin_reads_the_same_calls(text: str) -> None:
    tokens = MarkdownIt("commonmark").use(tool_callout_plugin).parse(text)
    by_plugin = [(t.meta["callout"].id, t.meta["callout"].name) for t in tokens if t.type == "tool_callout"]
    ends = [event for event in detect(text.replace("\0", "\ufffd")) if isinstance(event, ev.ToolInputAvailable)]
    in_stream = [(event.tool_call_id, event.tool_name) for event in ends]
    assert list(dict.fromkeys(i for i, _ in by_plugin)) == list(dict.fromkeys(i for i, _ in in_stream))


def test_the_card_appears_with_the_header_line() -> None:
    found = detector("callout")
    assert found.feed("> [!tool search call_1]") == []
    assert found.feed("\n") == [ev.ToolInputStart("call_1", "search")]
    assert found.feed("> input:\n>   query: ca") == [
        ev.ToolInputDelta("call_1", "query: ca"),
    ]


def test_a_callout_that_cannot_be_read_is_retracted() -> None:
    events = detect("A\n\n> [!tool t c]\n> x: [\n\nB")
    assert [type(event).__name__ for event in events if not isinstance(event, ev.ToolInputDelta)] == [
        *("TextStart", "TextDelta", "TextEnd", "TextStart", "TextDelta", "TextEnd"),
        *(
            "ToolInputStart",
            "Diagnostic",
            "ToolRetracted",
            "TextStart",
            "TextDelta",
            "TextDelta",
            "TextDelta",
            "TextEnd",
        ),
    ]
    transcript = Transcript.from_events(events)
    assert seen(transcript) == ["A\n\n> [!tool t c]\n> x: [\n\nB"]
    assert (transcript.diagnostics[0].line, transcript.diagnostics[0].column) == (4, 3)


def test_an_id_in_the_body_renames_the_call_that_has_begun() -> None:
    events = detect("> [!tool t]\n> id: real\n")
    assert [event for event in events if isinstance(event, ev.ToolRetracted)] == [
        ev.ToolRetracted("tool-call-1", "real")
    ]
    assert list(Transcript.from_events(events).calls) == ["real"]


def test_surrogate_halves_join_and_lone_ones_are_replaced() -> None:
    halves = "😀".encode("utf-16-le")
    first, second = (halves[i : i + 2].decode("utf-16-le", "surrogatepass") for i in (0, 2))
    assert all_text(detect("a" + first, second + "b")) == "a😀b"
    assert all_text(detect("a" + first, "b")) == "a\ufffdb"
    assert not Transcript.from_events(detect("a" + first, second + "b")).diagnostics
    assert all_text(detect(first)) == "\ufffd"


def test_characters_that_cannot_be_shown_are_reported_once_with_their_place() -> None:
    text = "one\r\ntwo \0 three \ud800\n\0\ud800"
    for pieces in ([text], list(text)):
        found = Transcript.from_events(detect(*pieces)).diagnostics
        assert [(each.line, each.column, "U+FFFD" in each.action) for each in found] == [(2, 5, True), (2, 13, True)]


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("> [!tool t]\n> a: " + "[" * 100_000, id="deep"),
        pytest.param(
            "> [!tool t]\n> a: &a [x, x]\n"
            + "".join(
                f"> {n}: &{n} [*{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}]\n"
                for p, n in zip("abcdefgh", "bcdefghi", strict=True)
            ),
            id="billion laughs",
        ),
        pytest.param("> [!tool t]\n> a: " + "x" * 10_000_000, id="10 MB"),
        pytest.param("> [!tool t]\n> a: " + "9" * 100_000, id="a huge number"),
        pytest.param("> [!tool t]\n> a: \0\n", id="NUL"),
        pytest.param("> [!tool t]\n> a: &a [*a]\n", id="an alias of its own parent"),
        pytest.param("> [!tool t]\n> ? {a: 1}\n> : b\n", id="a key that is a mapping"),
        pytest.param("> [!tool t]\n> a: 1\n> ---\n> b: 2\n", id="two documents"),
    ],
)
def test_hostile_bodies_are_calls_or_text(hostile: str) -> None:
    transcript = Transcript.from_events(detect(*(hostile[i : i + 4096] for i in range(0, len(hostile), 4096))))
    calls = transcript.calls
    assert calls or (transcript.messages[0].text == hostile and transcript.diagnostics)


def test_ten_thousand_callouts_are_ten_thousand_calls() -> None:
    text = "".join(f"> [!tool t]\n> input: {n}\n\n" for n in range(10_000))
    assert len(Transcript.from_events(detect(text)).calls) == 10_000


def test_create_stream_chunks_gives_the_sequence_of_the_document() -> None:
    text = "Hello  world\n> [!tool search call_1]\n> input:\n>   query: cats\n> output: 1\n> cost: 2\nAfter"
    deltas = [{"type": "text-delta", "id": "text-1", "delta": piece} for piece in ("Hello", "  ", "world", "\n")]
    call = {"toolCallId": "call_1", "cost": 2}
    assert create_stream_chunks(text) == [
        {"type": "text-start", "id": "text-1"},
        *deltas,
        {"type": "tool-input-available", **call, "toolName": "search", "input": {"query": "cats"}},
        {"type": "tool-output-available", **call, "output": 1},
        {"type": "text-delta", "id": "text-1", "delta": "After"},
        {"type": "text-end", "id": "text-1"},
        {
            "type": "finish",
            "finishReason": "stop",
            "usage": {"inputTokens": 0, "outputTokens": len(text), "totalTokens": len(text)},
        },
    ]


@pytest.mark.parametrize(
    ("body", "chunks"),
    [
        ("", [("tool-input-available", {})]),
        ("> state: input-streaming\n", [("tool-input-available", {})]),
        ("> input:\n", [("tool-input-available", {})]),
        ("> state: output-available\n", [("tool-input-available", {}), ("tool-output-available", None)]),
        ("> output: 0\n> errorText: x\n", [("tool-input-available", {}), ("tool-output-error", "x")]),
        (
            "> state: output-error\n",
            [("tool-input-available", {}), ("tool-output-error", "An unknown tool error occurred.")],
        ),
        ("> errorText: ' '\n> output: 1\n", [("tool-input-available", {}), ("tool-output-available", 1)]),
        ("> - broken\n", []),
    ],
)
def test_create_stream_chunks_of_one_callout(body: str, chunks: list[tuple[str, Any]]) -> None:
    made = [chunk for chunk in create_stream_chunks("> [!tool t c]\n" + body) if chunk["type"].startswith("tool")]
    values = [chunk.get("input", chunk.get("output", chunk.get("errorText"))) for chunk in made]
    assert list(zip([chunk["type"] for chunk in made], values, strict=True)) == chunks


@settings(max_examples=200)
@given(documents())
def test_create_stream_chunks_never_raises_and_loses_no_text(text: str) -> None:
    chunks = create_stream_chunks(text)
    assert (chunks[0]["type"], chunks[-2]["type"], chunks[-1]["type"]) == ("text-start", "text-end", "finish")
    joined = "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")
    assert joined == all_text(detect(text))


def test_instructions_describe_the_tools_and_the_form() -> None:
    def search(query: str) -> str:
        """Search the web."""
        return query

    text = instructions("callout", [Tool.from_function(search)])
    assert text.startswith("# Available Tools\n\n## search\nSearch the web.\n")
    assert "\n> [!tool tool_name call_1]\n> input:\n" in text
    example = text[text.index("> [!tool") :]
    assert seen(Transcript.from_events(detect(example)))[0][:3] == ["call_1", "tool_name", {"param1": "value1"}]


def test_an_unknown_dialect_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match="Did you mean 'callout'"):
        detector("calout")


def test_real_model_text_is_one_text_at_the_real_cuts() -> None:
    with (corpus("llm_text_deltas") / "deltas.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            pieces = [delta for kind, delta in json.loads(line)["deltas"] if kind == "text"]
            events = detect(*pieces)
            assert all_text(events) == "".join(pieces)
            assert not Transcript.from_events(events).calls


def test_states_beyond_the_seed_are_read() -> None:
    for state in State:
        (call,) = Transcript.from_events(detect(f"> [!tool t c]\n> state: {state.value}\n")).calls.values()
        assert call.state == state
