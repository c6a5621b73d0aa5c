"""A transcript is written as messages of OpenAI, Anthropic and the AI SDK, which read back as the same conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runs import claude_code_sessions as claude_code
from tests.runs import codex_sessions as codex
from tests.runs import inspect_samples as inspect_logs
from tests.support.strategies import transcripts
from toolcall_nb.adapters import events_of
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import Message, Part, ReasoningPart, State, TextPart, ToolCall, Transcript
from toolcall_nb.runs.formats.claude_code import CLAUDE_CODE
from toolcall_nb.runs.formats.codex import CODEX
from toolcall_nb.runs.formats.inspect_logs import INSPECT
from toolcall_nb.runs.formats.message_bodies import read_conversation

RUNS = {
    "claude-code": (CLAUDE_CODE, claude_code.SESSION),
    "claude-code agents": (CLAUDE_CODE, [claude_code.TASK, *claude_code.INSIDE, claude_code.TASK_DONE]),
    "codex": (CODEX, codex.SESSION),
    "inspect": (INSPECT, [inspect_logs.log()]),
}


def gist(transcript: Transcript) -> list[Any]:
    """What every form keeps: the roles, the texts, and of each call its id, name, input and the text of its result."""
    return [
        (message.role, message.text, [_call_gist(call) for call in message.calls if call.parent is None])
        for message in transcript.messages
    ]


def _call_gist(call: ToolCall) -> tuple[Any, ...]:
    return call.id, call.name, call.input, call.error if call.state is State.OUTPUT_ERROR else format_result(call)


def from_openai(transcript: Transcript) -> Transcript:
    return Transcript.from_events(events_of(transcript.to_openai()))


def from_anthropic(transcript: Transcript) -> Transcript:
    return read_conversation(transcript.to_anthropic())[0]


def from_ui(transcript: Transcript) -> Transcript:
    return Transcript.from_events(events_of(transcript.to_ui_messages()))


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_other_programs_read_back(name: str) -> None:
    known, records = RUNS[name]
    [run] = known.read(records)
    wanted = gist(run.transcript)
    assert gist(from_anthropic(run.transcript)) == wanted
    assert gist(from_ui(run.transcript)) == wanted
    assert _asked(gist(from_openai(run.transcript))) == _asked(wanted)


def _asked(told: list[Any]) -> list[Any]:
    """What OpenAI's form keeps: it does not tell errors from outputs."""
    return [(role, text, [call[:3] for call in calls]) for role, text, calls in told]


_TEXTS = st.text("ab<é\n", min_size=1, max_size=8).filter(lambda text: bool(text.strip()))
_CALLS = st.builds(
    lambda name, given, output, failed: ToolCall(
        id="c",
        name=name,
        input=given,
        state=State.OUTPUT_ERROR if failed else State.OUTPUT_AVAILABLE,
        **({"error": output} if failed else {"output": output}),
    ),
    st.sampled_from(["weather", "sql_query"]),
    st.dictionaries(st.sampled_from("xy"), st.one_of(st.integers(), _TEXTS, st.none(), st.lists(st.booleans()))),
    _TEXTS,
    st.booleans(),
)
_ANSWERS = st.lists(st.one_of(_CALLS, _TEXTS.map(TextPart)), min_size=1, max_size=6)


@st.composite
def conversations(draw: st.DrawFn) -> Transcript:
    """Conversations in which every call has an id of its own and has ended."""
    messages, number = [], 0
    for _ in range(draw(st.integers(1, 4))):
        messages.append(Message("user", (TextPart(draw(_TEXTS)),)))
        parts: list[Part] = []
        for part in draw(_ANSWERS):
            number += 1
            parts.append(ToolCall(**{**_fields(part), "id": f"call_{number}"}) if isinstance(part, ToolCall) else part)
        messages.append(Message("assistant", tuple(parts)))
    return Transcript(tuple(messages))


def _fields(call: ToolCall) -> dict[str, Any]:
    return {name: getattr(call, name) for name in ("name", "input", "state", "output", "error")}


@given(conversations())
def test_any_conversation_of_texts_and_calls_reads_back(transcript: Transcript) -> None:
    assert gist(from_anthropic(transcript)) == gist(transcript)
    assert from_ui(transcript) == Transcript(
        tuple(Message(each.role, each.parts, f"message-{number}") for number, each in enumerate(transcript.messages, 1))
    )
    assert _asked(gist(from_openai(transcript))) == _asked(gist(transcript))


@given(transcripts())
def test_every_transcript_can_be_written(transcript: Transcript) -> None:
    request = transcript.to_anthropic()
    blocks = [block for message in request["messages"] for block in message["content"]]
    asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    told = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert sorted(asked) == sorted(told)
    assert len(set(asked)) == len(asked)
    assert all(message["content"] for message in request["messages"])
    assert isinstance(transcript.to_openai(), list)
    assert len(transcript.to_ui_messages()) == len(transcript.messages)


def test_calls_that_ran_inside_another_call_were_not_requested_by_the_model() -> None:
    inner = ToolCall(id="i", name="grep", input={}, output="", tool_metadata={"parent": "o"})
    outer = ToolCall(id="o", name="agent", input={}, state=State.OUTPUT_AVAILABLE, output="done")
    transcript = Transcript((Message("assistant", (outer, inner)),))
    assert list(from_openai(transcript).calls) == ["o"]
    assert list(from_anthropic(transcript).calls) == ["o"]
    assert list(from_ui(transcript).calls) == ["o", "i"]


def test_the_system_prompt_and_signed_reasoning_are_in_a_request_of_anthropic() -> None:
    signed = ReasoningPart("Hm.", {"anthropic": {"signature": "s"}})
    answer = Message("assistant", (ReasoningPart("Unsigned."), signed, TextPart("Hi")))
    request = Transcript((Message("system", (TextPart("Be brief."),)), answer)).to_anthropic()
    assert request["system"] == "Be brief."
    assert [block["type"] for block in request["messages"][0]["content"]] == ["thinking", "text"]


def test_ids_have_only_characters_that_anthropic_allows() -> None:
    calls = [ToolCall(id=call_id, name="f", input=7, output="") for call_id in ("a:b", "a.b", "a_b")]
    request = Transcript((Message("assistant", tuple(calls)),)).to_anthropic()
    blocks = request["messages"][0]["content"]
    assert [block["id"] for block in blocks] == ["a_b", "a_b_2", "a_b_3"]
    assert blocks[0]["input"] == {"input": 7}
