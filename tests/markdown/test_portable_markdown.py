"""The portable Markdown form of a transcript: it reads well, and it reads back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.corpora import corpus
from tests.support.documents import documents
from tests.support.strategies import json_values, texts, transcripts
from toolcall_nb.core.events import MISSING
from toolcall_nb.core.transcript import (
    Approval,
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    ReasoningPart,
    SourceUrlPart,
    State,
    TextPart,
    ToolCall,
    Transcript,
)


@settings(max_examples=600)
@given(transcripts(), st.dictionaries(texts(1), json_values(), max_size=2))
def test_what_is_written_reads_back_equal(transcript: Transcript, metadata: dict[str, object]) -> None:
    transcript = Transcript(transcript.messages, metadata)
    written = transcript.to_markdown()
    read = Transcript.from_markdown(written)
    assert read == transcript
    assert read.to_markdown() == written
    assert {trouble.message for trouble in read.diagnostics} <= {"a NUL character"}


_ODD_TEXTS = st.one_of(texts(3), st.sampled_from(["\ud800", "a\udc00b", " ", "", " x ", "\t"]))
_JSON = st.one_of(json_values(), st.tuples(json_values()), st.dictionaries(st.integers(), json_values(), max_size=1))
_OBJECTS = st.dictionaries(_ODD_TEXTS, _JSON, max_size=2)
_SOME = {"id": _ODD_TEXTS, "name": _ODD_TEXTS, "title": st.none() | _ODD_TEXTS, "extra": _OBJECTS}
_MADE: list[st.SearchStrategy[Any]] = [
    st.builds(TextPart, _ODD_TEXTS, st.none() | _OBJECTS),
    st.builds(ReasoningPart, _ODD_TEXTS, st.none() | _OBJECTS),
    st.builds(SourceUrlPart, _ODD_TEXTS, _ODD_TEXTS, st.none() | _ODD_TEXTS, st.none() | _OBJECTS),
    st.builds(FilePart, _ODD_TEXTS, _ODD_TEXTS, st.none() | _OBJECTS, st.booleans()),
    st.builds(DataPart, _ODD_TEXTS, _JSON, st.none() | _ODD_TEXTS),
    st.builds(CustomPart, _ODD_TEXTS, st.none() | _OBJECTS),
    st.builds(ErrorPart, _ODD_TEXTS, st.none() | _ODD_TEXTS),
    st.builds(ToolCall, **_SOME, input_text=_ODD_TEXTS),
    st.builds(ToolCall, **_SOME, input=_JSON, input_text=_ODD_TEXTS, provider_metadata=st.none() | _OBJECTS),
    st.builds(ToolCall, **_SOME, input=_JSON, state=st.just(State.OUTPUT_AVAILABLE), display=st.none() | _OBJECTS),
    st.builds(
        ToolCall, **_SOME, output=_JSON, state=st.just(State.OUTPUT_AVAILABLE), model_text=st.none() | _ODD_TEXTS
    ),
    st.builds(ToolCall, **_SOME, input=_JSON, state=st.just(State.OUTPUT_ERROR), error=st.none() | _ODD_TEXTS),
]


@settings(max_examples=600)
@given(
    st.lists(st.one_of(_MADE), max_size=3, unique_by=lambda part: getattr(part, "id", id(part))),
    st.none() | _ODD_TEXTS,
    _OBJECTS,
    st.sampled_from([None, "", "stop", "length", "odd\udfff"]),
    st.none() | _ODD_TEXTS,
)
def test_a_message_that_a_program_makes_reads_back_equal(
    parts: list[Any], message_id: str | None, metadata: dict[str, Any], reason: str | None, aborted: str | None
) -> None:
    if not all(part.is_final for part in parts if isinstance(part, ToolCall)):
        aborted = None  # a message that was stopped has no open call
    message = Message("assistant", parts, message_id, metadata, reason, aborted)  # type: ignore[arg-type]  # a list
    transcript = Transcript((message,), metadata)
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


def test_a_blank_id_or_name_is_corrected_when_the_call_is_made() -> None:
    made = ToolCall(id="a\ud800", name=" ", title="\udfff")
    assert (made.id, made.name, made.title) == ("a\ufffd", "tool", "\ufffd")
    assert ToolCall(id="", name="f").id == "tool-call"
    assert ToolCall(id="1", name="f", input={"a": 1}).state is State.INPUT_AVAILABLE
    assert ToolCall(id="1", name="f", state=State.OUTPUT_AVAILABLE).output is None
    assert ToolCall(id="1", name="f", state=State.OUTPUT_ERROR).error == ""


@settings(max_examples=300)
@given(transcripts())
def test_a_transcript_is_rebuilt_from_its_events(transcript: Transcript) -> None:
    assert Transcript.from_events(transcript.events()) == transcript


@settings(max_examples=300)
@given(documents())
def test_any_text_is_a_transcript_and_is_stable_once_written(text: str) -> None:
    read = Transcript.from_markdown(text)
    assert Transcript.from_markdown(read.to_markdown()) == read


@settings(max_examples=200)
@given(st.lists(texts(), min_size=1, max_size=4))
def test_neighbouring_texts_stay_apart(parts: list[str]) -> None:
    transcript = Transcript((Message("assistant", tuple(TextPart(text) for text in parts)),))
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


def test_a_conversation_reads_well() -> None:
    transcript = Transcript(
        (
            Message("system", (TextPart("Be brief."),)),
            Message("user", (TextPart("Which city is warmest?\n\nAnswer in one line."),)),
            Message(
                "assistant",
                (
                    ReasoningPart("Look at the forecast."),
                    TextPart("I'll look."),
                    ToolCall(
                        id="call_1",
                        name="forecast",
                        state=State.OUTPUT_AVAILABLE,
                        input={"city": "Porto", "at": "08:39", "note": "two\nlines\n"},
                        output=[{"day": "Mon", "high": 24.1}],
                    ),
                    ToolCall(id="call 2", name="forecast", state=State.OUTPUT_ERROR, input={}, error="no answer"),
                    TextPart("**Porto**."),
                ),
            ),
        ),
        {"model": "mock"},
    )
    assert transcript.to_markdown() == (
        "---\ntoolcall_nb: 1\nmodel: mock\n---\n\n"
        "> [!system]\n> Be brief.\n\n"
        "> [!user]\n> Which city is warmest?\n>\n> Answer in one line.\n\n"
        "> [!reasoning]\n> Look at the forecast.\n\n"
        "I'll look.\n\n"
        "> [!tool forecast call_1]\n> state: output-available\n> input:\n>   city: Porto\n"
        '>   at: "08:39"\n>   note: |\n>     two\n>     lines\n'
        "> output:\n>   - day: Mon\n>     high: 24.1\n\n"
        '> [!tool forecast "call 2"]\n> state: output-error\n> input: {}\n> errorText: no answer\n\n'
        "**Porto**.\n"
    )
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


EVERY_STATE = [
    ToolCall(id="1", name="t"),
    ToolCall(id="2", name="t", input_text='{"city": "Po'),
    ToolCall(id="3", name="t", state=State.INPUT_AVAILABLE, input=None),
    ToolCall(id="4", name="t", state=State.APPROVAL_REQUESTED, input=1, approval=Approval(id="a")),
    ToolCall(
        id="5",
        name="t",
        state=State.APPROVAL_RESPONDED,
        input=[],
        approval=Approval(id="b", approved=True, reason="fine", is_automatic=True, signature="s"),
    ),
    ToolCall(id="6", name="t", state=State.OUTPUT_AVAILABLE, input={}, output=None, title=" odd title ", open=False),
    ToolCall(id="7", name="t", state=State.OUTPUT_AVAILABLE, input={}, output="", title="A title", open=True),
    ToolCall(id="8", name="t", state=State.OUTPUT_ERROR, input={}, error=""),
    ToolCall(id="9", name="t", state=State.OUTPUT_DENIED, input={}, approval=Approval(id="c", approved=False)),
    ToolCall(id="10", name="t", state=State.INTERRUPTED, input={}, output="preliminary"),
    ToolCall(id="11", name="t", state=State.OUTPUT_AVAILABLE, input=MISSING, output=1, extra={"state": "x", "id": 2}),
    ToolCall(id="12\n", name="a\rb", state=State.INPUT_AVAILABLE, input={}, extra={"elapsed": 1, "type": "function"}),
]


@pytest.mark.parametrize("call", EVERY_STATE, ids=lambda call: f"{call.id.strip()}-{call.state}")
def test_every_state_of_a_call_reads_back(call: ToolCall) -> None:
    transcript = Transcript((Message("assistant", (call,)),))
    read = Transcript.from_markdown(transcript.to_markdown())
    assert read == transcript
    assert read.diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        "> [!tool search call_1]\n> input: {}\n",
        "```\nan open fence",
        "<!-- an open comment",
        "> [!user]\n> not a user",
        "---\ntitle: not front matter\n---\n",
        "ends in blank lines\n\n\n",
        "\n\nbegins with blank lines",
        "a carriage return\r",
        "",
        "   ",
        "nul \0 and bell \a",
    ],
)
def test_text_that_looks_like_something_else_stays_text(text: str) -> None:
    call = ToolCall(id="c", name="t", state=State.INPUT_AVAILABLE, input={})
    transcript = Transcript(
        (Message("user", (TextPart(text),)), Message("assistant", (TextPart(text), call, TextPart(text))))
    )
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


def test_the_fields_of_a_message_are_kept() -> None:
    messages = (
        Message("user", (TextPart("look at this"), FilePart("data:image/png;base64,AAAA", "image/png")), id="m1"),
        Message("assistant", (), metadata={"model": "m"}, finish_reason="length"),
        Message("assistant", (TextPart("a"), ErrorPart("no connection")), aborted="stopped by the user"),
        Message("assistant", (ErrorPart("no key", 'HTTP 401\n\n{\n  "error": "> [!tool x]"\n}\n'), ErrorPart("", ""))),
        Message("assistant", (SourceUrlPart("s1", "https://example.com", "A page"),), aborted=""),
        Message("user", ()),
    )
    transcript = Transcript(messages)
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


def test_a_document_without_callouts_is_one_message() -> None:
    assert Transcript.from_markdown("Hello\n").messages == (Message("assistant", (TextPart("Hello"),)),)
    assert Transcript.from_markdown("") == Transcript()


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_make_no_difference_to_calls(ending: str) -> None:
    text = "Before\n\n> [!tool search call_1] \n> input:\n>   query: cats\n\nAfter\n".replace("\n", ending)
    call = ToolCall(id="call_1", name="search", state=State.INPUT_AVAILABLE, input={"query": "cats"})
    parts = (TextPart("Before"), call, TextPart("After"))
    assert Transcript.from_markdown(text).messages == (Message("assistant", parts),)


def test_places_in_diagnostics_count_the_front_matter() -> None:
    read = Transcript.from_markdown("---\ntoolcall_nb: 1\na: b\n---\n\nText\n\n> [!tool t]\n> a: 1\n> b: [\n")
    assert read.metadata == {"a": "b"}
    (diagnostic,) = read.diagnostics
    assert (diagnostic.line, diagnostic.action) == (10, "It was kept as text.")


def test_a_lone_surrogate_is_replaced_and_reported() -> None:
    read = Transcript.from_markdown("one\ntwo \ud800 three \ud83d\ude00")
    assert read.messages[0].text == "one\ntwo \ufffd three 😀"
    assert [(d.line, "U+FFFD" in d.action) for d in read.diagnostics] == [(2, True)]


def test_a_change_in_one_value_changes_one_line() -> None:
    def written(high: float) -> list[str]:
        output = {"rows": [{"day": "Mon", "high": high}, {"day": "Tue", "high": 1.0}]}
        call = ToolCall(id="c", name="t", state=State.OUTPUT_AVAILABLE, input={"a": 1}, output=output)
        return Transcript((Message("assistant", (call,)),)).to_markdown().split("\n")

    one, other = written(24.1), written(24.2)
    assert len(one) == len(other)
    assert sum(a != b for a, b in zip(one, other, strict=True)) == 1


def test_long_chats_read_back() -> None:
    for path in sorted(corpus("transcripts").glob("*"))[:12]:
        text = path.read_bytes()[:60_000].decode("utf-8", "replace")
        read = Transcript.from_markdown(text)
        assert Transcript.from_markdown(read.to_markdown()) == read, path.name


def test_model_text_reads_back() -> None:
    import json

    with (corpus("llm_text_deltas") / "deltas.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            text = "".join(delta for kind, delta in json.loads(line)["deltas"] if kind == "text")
            call = ToolCall(id="c", name="t", state=State.INPUT_AVAILABLE, input={})
            transcript = Transcript((Message("assistant", (TextPart(text), call, TextPart(text))),))
            assert Transcript.from_markdown(transcript.to_markdown()) == transcript


def test_two_neighbouring_texts_stay_plain_and_separate() -> None:
    parts = (TextPart("one"), TextPart("two\n\nthree"))
    transcript = Transcript((Message("assistant", parts),))
    assert transcript.to_markdown() == "one\n\n> [!text]\n\ntwo\n\nthree\n"
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript
