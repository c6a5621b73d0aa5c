"""The steps of a message: where they begin, what is known of them, and what ran inside which call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import texts
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.steps import normal_step_starts, steps_of
from toolcall_nb.core.transcript import (
    ErrorPart,
    Message,
    Part,
    ReasoningPart,
    Role,
    State,
    StepStart,
    TextPart,
    ToolCall,
    Transcript,
)


def call(call_id: str, parent: str | None = None, **fields: Any) -> ToolCall:
    metadata = None if parent is None else {"parent": parent}
    ended = {"state": State.OUTPUT_AVAILABLE, "input": {}, "output": call_id}
    return ToolCall(id=call_id, name="look", tool_metadata=metadata, **{**ended, **fields})


def told(message: Message, parent: str | None = None) -> list[list[str]]:
    return [[getattr(part, "id", None) or part.text for part in step.parts] for step in steps_of(message, parent)]


# Where steps begin


def test_text_after_own_calls_begins_the_next_step_where_nothing_says_so() -> None:
    message = Message("assistant", (TextPart("a"), call("1"), call("2"), ReasoningPart("b"), call("3"), TextPart("c")))
    assert told(message) == [["a", "1", "2"], ["b", "3"], ["c"]]
    assert message.step_starts == ()


def test_a_call_that_the_provider_runs_does_not_end_its_step() -> None:
    message = Message("assistant", (call("1", provider_executed=True), TextPart("a")))
    assert told(message) == [["1", "a"]]


def test_steps_without_text_between_them_are_kept_apart() -> None:
    message = Message("assistant", (call("1"), call("2")), step_starts=(StepStart(at=1),))
    assert told(message) == [["1"], ["2"]]
    assert told(Message("assistant", (call("1"), call("2")))) == [["1", "2"]]


def test_text_after_a_call_of_the_same_reply_stays_with_it() -> None:
    message = Message("assistant", (call("1"), TextPart("a")), step_starts=(StepStart(at=0),))
    assert told(message) == [["1", "a"]]
    assert message != Message("assistant", (call("1"), TextPart("a")))


def test_evident_steps_are_not_stored_unless_more_is_known_of_them() -> None:
    parts = (TextPart("a"), call("1"), TextPart("b"))
    said = Message("assistant", parts, step_starts=(StepStart(at=0), StepStart(at=2)))
    assert said == Message("assistant", parts)
    known = Message("assistant", parts, step_starts=(StepStart(at=0), StepStart(at=2, model="m")))
    assert [start.at for start in known.step_starts] == [0, 2]


def test_an_empty_step_is_kept_where_something_is_known_of_it() -> None:
    start = StepStart(at=1, usage={"inputTokens": 3})
    message = Message("assistant", (TextPart("a"),), step_starts=(start, StepStart(at=1)))
    assert [(step.parts, step.usage) for step in message.steps] == [((TextPart("a"),), None), ((), {"inputTokens": 3})]


def test_the_one_step_of_a_message_has_what_the_message_says_of_it() -> None:
    about = {"model": "m", "usage": {"inputTokens": 2}}
    [step] = Message("assistant", (TextPart("a"),), metadata=about, finish_reason="length").steps
    assert (step.model, step.usage, step.finish_reason, step.response_id) == ("m", {"inputTokens": 2}, "length", None)
    assert Message("assistant", (call("1"),)).steps[0].finish_reason == "tool-calls"
    assert Message("user", ()).steps == ()


# What ran inside a call


NESTED = Message(
    "assistant",
    (
        call("1"),
        TextPart("inner a", parent="1"),
        call("1.1", parent="1"),
        ErrorPart("it broke", parent="1"),
        TextPart("inner b", parent="1"),
        TextPart("outer"),
    ),
    step_starts=(StepStart(at=1, parent="1", agent="writer"), StepStart(at=4, parent="1", agent="writer", model="m")),
)


def test_what_ran_inside_a_call_belongs_to_it_and_not_to_the_answer() -> None:
    assert NESTED.text == "outer"
    assert NESTED.error is None
    assert told(NESTED) == [["1"], ["outer"]]
    assert told(NESTED, "1") == [["inner a", "1.1", "it broke"], ["inner b"]]
    assert [(step.agent, step.model) for step in steps_of(NESTED, "1")] == [("writer", None), ("writer", "m")]


def test_a_reader_can_ask_for_the_top_level_only() -> None:
    top = Transcript((NESTED,)).top_level
    assert top == Transcript((Message("assistant", (call("1"), TextPart("outer"))),))
    later = Message("assistant", (*NESTED.parts[:5], call("2")), step_starts=(StepStart(at=5, model="m"),))
    assert [start.at for start in Transcript((later,)).top_level.messages[0].step_starts] == [0, 1]


def test_a_part_inside_no_call_of_the_message_belongs_to_the_run_itself() -> None:
    assert told(Message("assistant", (TextPart("a", parent="gone"), call("1", parent="1")))) == [["a", "1"]]


# The events


def step(*events: Event, **facts: Any) -> list[Event]:
    return [ev.StartStep(), *events, ev.FinishStep(**facts)]


def ran(call_id: str) -> list[Event]:
    return [ev.ToolInputAvailable(call_id, "look", {}), ev.ToolOutputAvailable(call_id, call_id)]


def test_the_events_say_the_steps() -> None:
    events = [ev.Start(), *step(*ran("1"), model="m"), *step(*ran("2"), response_id="r2", finish_reason="length")]
    [message] = Transcript.from_events([*events, ev.Finish()]).messages
    assert told(message) == [["1"], ["2"]]
    assert [(each.model, each.response_id, each.finish_reason) for each in message.steps] == [
        ("m", None, "tool-calls"),
        (None, "r2", "length"),
    ]


def test_an_end_without_a_beginning_is_that_of_the_first_step() -> None:
    events = [ev.Start(), *ran("1"), ev.FinishStep(model="a"), ev.StartStep(), *ran("2"), ev.FinishStep(model="b")]
    [message] = Transcript.from_events([*events, ev.Finish()]).messages
    assert [(each.model, [c.id for c in each.calls]) for each in message.steps] == [("a", ["1"]), ("b", ["2"])]


def test_a_text_block_ends_with_its_step() -> None:
    delta = ev.TextDelta("t", "a")
    [message] = Transcript.from_events([ev.Start(), *step(delta), *step(delta), ev.Finish()]).messages
    assert told(message) == [["a"], ["a"]]


def test_nested_texts_grow_side_by_side_with_the_text_of_the_run() -> None:
    events: list[Event] = [ev.Start(), ev.TextStart("t"), ev.TextDelta("t", "out"), ev.ToolInputAvailable("1", "x", {})]
    for piece in "ab":
        events += [ev.TextDelta("t", piece, parent="1"), ev.TextDelta("t", piece.upper())]
    [message] = Transcript.from_events([*events, ev.Finish()]).messages
    assert [(part.text, part.parent) for part in message.parts if isinstance(part, TextPart)] == [
        ("out", None),
        ("ab", "1"),
        ("AB", None),
    ]


def test_a_step_that_is_tried_again_leaves_nothing_of_its_first_try() -> None:
    events = [*step(*ran("1"), model="m"), ev.StartStep(), *ran("2"), ev.ResetStep(), *ran("3"), ev.FinishStep()]
    [message] = Transcript.from_events([ev.Start(), *events, ev.Finish()]).messages
    assert told(message) == [["1"], ["3"]]


# The ids of calls


def test_the_same_id_in_a_later_turn_or_step_is_another_call() -> None:
    turn = [ev.Start(), *step(*ran("look:0")), *step(*ran("look:0")), ev.Finish()]
    transcript = Transcript.from_events([*turn, *turn])
    ids = ["look:0", "look:0-2", "look:0-3", "look:0-4"]
    assert [*transcript.calls] == ids
    assert [each.provider_id for each in transcript.calls.values()] == [None, "look:0", "look:0", "look:0"]
    assert all(each.output == "look:0" for each in transcript.calls.values())


def test_events_and_parents_find_the_call_that_has_another_id_here() -> None:
    inner = ev.ToolInputAvailable("b", "look", {}, tool_metadata={"parent": "a"})
    said = ev.TextDelta("t", "said", parent="a")
    turn: list[Event] = [ev.Start(), ev.ToolInputAvailable("a", "x", {}), inner, said]
    transcript = Transcript.from_events([*turn, ev.Finish(), *turn, ev.ToolOutputAvailable("a", 1), ev.Finish()])
    last = transcript.messages[-1]
    assert [(part.parent, getattr(part, "id", None)) for part in last.parts] == [
        (None, "a-2"),
        ("a-2", "b-2"),
        ("a-2", None),
    ]
    assert transcript.calls["a-2"].output == 1
    assert transcript.calls["a"].state is State.INPUT_AVAILABLE


def test_a_result_that_comes_late_is_that_of_the_last_call_with_the_id() -> None:
    asked: list[Event] = [ev.Start(), ev.ToolInputAvailable("a", "x", {}), ev.Finish()]
    transcript = Transcript.from_events([*asked, *asked, ev.ToolOutputAvailable("a", 1)])
    assert [each.state.value for each in transcript.calls.values()] == ["input-available", "output-available"]


def test_calls_of_messages_that_are_put_together_have_ids_of_their_own() -> None:
    one = Transcript((Message("assistant", (call("a"), TextPart("in", parent="a"))),))
    both = one + one
    assert [*both.calls] == ["a", "a-2"]
    assert [part.parent for part in both.messages[1].parts] == [None, "a-2"]
    assert Transcript.from_markdown(both.to_markdown()) == both


# The laws


def starts(count: int) -> st.SearchStrategy[StepStart]:
    return st.builds(
        StepStart,
        at=st.integers(0, count),
        parent=st.sampled_from([None, None, "1", "2"]),
        agent=st.sampled_from([None, None, "writer (a)"]),
        model=st.sampled_from([None, None, "m"]),
        usage=st.sampled_from([None, {"inputTokens": 3}]),
        finish_reason=st.sampled_from([None, "stop", "length"]),
        provider_metadata=st.sampled_from([None, {"p": {"note": ") \\\u2028"}}]),
        extra=st.sampled_from([{}, {"stepName": "plan"}]),
    )


@st.composite
def messages(draw: st.DrawFn) -> Message:
    parent = st.sampled_from([None, None, "1", "2", "gone"])
    part = st.one_of(
        st.builds(TextPart, texts(2), parent=parent),
        st.builds(TextPart, st.sampled_from(["a", "\n\nb\n", "[//]: # (step)", "```\n[//]: # (step)\n```"])),
        st.builds(ReasoningPart, texts(2), parent=parent, extra=st.sampled_from([{}, {"odd": 1}])),
        st.builds(ErrorPart, st.just("broken"), parent=parent),
        st.builds(call, st.sampled_from(["1", "2", "3"]), parent),
    )
    parts: list[Part] = draw(st.lists(part, max_size=5))
    injected, repeated = draw(st.sampled_from([None, None, "", "skill"])), draw(st.booleans())
    role: Role = draw(st.sampled_from(["assistant", "assistant", "user"]))
    begun = tuple(draw(st.lists(starts(len(parts)), max_size=4)))
    return Message(role, tuple(parts), step_starts=begun, injected=injected, repeated=repeated)


@given(st.lists(messages(), max_size=3))
def test_steps_and_nested_runs_read_back(written: list[Message]) -> None:
    transcript = Transcript(tuple(written))
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript
    assert Transcript.from_events(transcript.events()) == transcript


@given(messages())
def test_the_steps_of_a_message_are_all_its_own_parts_in_order(message: Message) -> None:
    assert normal_step_starts(message.parts, message.step_starts) == message.step_starts
    [message] = Transcript((message,)).messages
    [top] = Transcript((message,)).top_level.messages
    assert [part for each in steps_of(message) for part in each.parts] == [*top.parts]
    assert [each.parts for each in steps_of(top)] == [each.parts for each in steps_of(message)]


@pytest.mark.parametrize(
    "text", ["[//]: # (step {oh})", "a\n[//]: # (step)", "```\n[//]: # (step)\n```", "- [//]: # (step)"]
)
def test_a_line_that_is_no_readable_mark_stays_text(text: str) -> None:
    assert Transcript.from_markdown(text).messages == (Message("assistant", (TextPart(text),)),)


def test_no_reader_of_markdown_shows_a_mark() -> None:
    from markdown_it import MarkdownIt

    start = StepStart(at=1, agent="a (b)", provider_metadata={"p": {"odd": "\\) <b> [x] `"}})
    text = Transcript((Message("assistant", (call("1"), call("2")), step_starts=(start,)),)).to_markdown()
    assert text.count("[//]: # (step") == 2
    shown = MarkdownIt("commonmark").render(text)
    assert "step" not in shown
    assert "odd" not in shown
