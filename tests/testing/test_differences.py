"""The lines that explain why two transcripts are not equal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb.core.transcript import Message, TextPart, ToolCall, Transcript
from toolcall_nb.testing.differences import compare_transcripts


def transcript(*texts: str) -> Transcript:
    return Transcript(tuple(Message("user", (TextPart(text),)) for text in texts))


def test_only_the_lines_that_differ_and_their_neighbours_are_shown() -> None:
    one, other = transcript("A", "B", "C", "D", "E"), transcript("A", "B", "C", "D", "F")
    lines = compare_transcripts(one, other)
    assert lines is not None
    assert lines[0] == "The two transcripts are not equal (5 messages, 0 tool calls == 5 messages, 0 tool calls)"
    assert [line for line in lines[2:] if line.startswith(("+", "-"))] == ["-> F", "+> E"]
    assert not any("A" in line for line in lines[3:])


def test_other_values_are_left_to_pytest() -> None:
    assert compare_transcripts(ToolCall(id="1", name="f", input={}), "x") is None
    assert compare_transcripts(3, 4) is None


@given(st.text(), st.text())
def test_no_text_raises(one: str, other: str) -> None:
    lines = compare_transcripts(transcript(one), transcript(other))
    assert lines
    assert not any("\x1b" in line for line in lines)
