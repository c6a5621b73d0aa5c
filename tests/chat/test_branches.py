"""Running a call again, going on from it, forking, taking back, and asking again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolcall_nb import Chat, read
from toolcall_nb.approvals import Decision
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import State, ToolCall, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.models import MockModel
from toolcall_nb.render import to_html

FORECAST = {"Porto": 21, "Lisbon": 24}


def forecast(city: str) -> int:
    """The forecast for a city."""
    return FORECAST[city]


def made(*script: Any, **options: Any) -> Chat:
    return Chat(MockModel(script=list(script), speed=None), tools=options.pop("tools", [forecast]), **options)


class _Listening:
    """A model that keeps the messages it is asked with."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def stream(self, messages: Any, tools: Any) -> list[ev.Event]:
        self.asked.append([*messages])
        return [ev.TextStart("1"), ev.TextDelta("1", "Fine."), ev.TextEnd("1"), ev.Finish()]


def warm() -> Chat:
    """A chat of two turns; the first has two calls in a row."""
    chat = made(
        ["Porto first.", ("forecast", {"city": "Porto"}, "call_1")],
        [("forecast", {"city": "Lisbon"}, "call_2")],
        "Lisbon is warmer.",
        "You are welcome.",
        "Then it is Porto.",
        "Really Porto.",
    )
    chat.send("Which is warmer?")
    chat.send("Thanks.")
    return chat


def texts(transcript: Transcript) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in transcript]


def test_rerun_gives_both_calls_and_leaves_the_conversation_as_it_is() -> None:
    chat = warm()
    before = chat.transcript
    again = chat.rerun("call_1", {"city": "Lisbon"})
    assert (again.before.output, again.after.output) == (21, 24)
    assert (again.before.id, again.after.id) == ("call_1", "call_1 again")
    assert again.after.input == {"city": "Lisbon"}
    assert again.after.value == 24
    assert again.after.seconds is not None
    assert chat.transcript == before


def test_rerun_without_arguments_runs_the_call_as_it_was() -> None:
    chat = warm()
    assert chat.rerun("call_2").after.input == {"city": "Lisbon"}


def test_rerun_shows_both_calls_in_a_cell() -> None:
    bundle = warm().rerun("call_1", {"city": "Lisbon"})._repr_mimebundle_()
    assert bundle["text/markdown"].count("> [!tool forecast") == 2
    assert "21" in bundle["text/plain"]
    assert "24" in bundle["text/plain"]


def test_going_on_replaces_the_result_and_drops_what_came_after_it() -> None:
    chat = warm()
    FORECAST["Porto"] = 30
    try:
        again = chat.rerun("call_1", go_on=True)
    finally:
        FORECAST["Porto"] = 21
    assert (again.before.output, again.after.output) == (21, 30)
    assert [(call.id, call.output) for call in chat.calls.values()] == [("call_1", 30)]
    (_, answer) = chat.transcript
    assert [type(part).__name__ for part in answer.parts] == ["TextPart", "ToolCall", "TextPart"]
    assert answer.text == "Porto first.\n\nThen it is Porto."


def test_going_on_can_be_taken_back() -> None:
    chat = warm()
    before = chat.transcript
    chat.rerun("call_2", {"city": "Porto"}, go_on=True)
    assert chat.transcript != before
    chat.undo()
    assert chat.transcript == before


def test_going_on_keeps_the_other_calls_of_the_same_request() -> None:
    both = [("forecast", {"city": "Porto"}, "a"), ("forecast", {"city": "Lisbon"}, "b")]
    chat = made(both, [("forecast", {"city": "Porto"}, "later")], "Done.", "Done again.")
    chat.send("?")
    chat.rerun("a", {"city": "Lisbon"}, go_on=True)
    assert [(call.id, call.output) for call in chat.calls.values()] == [("a", 24), ("b", 24)]


def test_the_model_gets_the_new_result() -> None:
    model = _Listening()
    chat = Chat(model, tools=[forecast])
    call = ToolCall(id="c", name="forecast", input={"city": "Porto"}, state=State.OUTPUT_AVAILABLE, output=1)
    chat.load(
        Transcript.from_events([*_said("user", "?"), ev.Start(), *_events(call), ev.Finish()]),
    )
    chat.rerun("c", {"city": "Lisbon"}, go_on=True)
    (messages,) = model.asked
    assert messages[-1].calls[0].output == 24


def _said(role: str, text: str) -> list[ev.Event]:
    return [ev.Start(role=role), ev.TextStart("1"), ev.TextDelta("1", text), ev.TextEnd("1"), ev.Finish()]


def _events(call: ToolCall) -> list[ev.Event]:
    return [ev.ToolInputAvailable(call.id, call.name, call.input), ev.ToolOutputAvailable(call.id, call.output)]


@pytest.mark.parametrize(
    ("call", "arguments", "says"),
    [
        ("call_9", None, "There is no call 'call_9'. Did you mean"),
        ("call_1", {"town": "Porto"}, "the arguments of 'forecast' are wrong"),
        ("call_1", "Porto", "wrong"),
    ],
)
@pytest.mark.parametrize("go_on", [False, True])
def test_a_call_that_cannot_run_again_is_named_and_nothing_changes(
    call: str, arguments: Any, says: str, go_on: bool
) -> None:
    chat = warm()
    before = chat.transcript
    with pytest.raises(UsageError, match=says):
        chat.rerun(call, arguments or {"city": "Porto"}, go_on=go_on)
    assert chat.transcript == before


def test_a_tool_that_is_gone_is_named() -> None:
    chat = warm()
    chat.tools = []
    before = chat.transcript
    with pytest.raises(UsageError, match="There is no tool 'forecast'"):
        chat.rerun("call_1", go_on=True)
    assert chat.transcript == before


def test_a_call_whose_arguments_never_became_complete_needs_new_ones() -> None:
    chat = made("Fine.")
    chat.load(Transcript.from_events([ev.Start(), ev.ToolInputStart("c", "forecast"), ev.ToolInputDelta("c", '{"ci')]))
    with pytest.raises(UsageError, match="never became complete"):
        chat.rerun("c")
    assert chat.rerun("c", {"city": "Porto"}).after.output == 21


@pytest.mark.parametrize("go_on", [False, True])
def test_a_person_is_asked_again(go_on: bool) -> None:
    asked: list[Any] = []

    def ask(call: ToolCall) -> Decision:
        asked.append(call.input)
        return Decision(len(asked) == 1)

    chat = made([("forecast", {"city": "Porto"}, "c")], "Fine.", "Not now.", approval_mode="ask", ask_approval=ask)
    chat.send("?")
    again = chat.rerun("c", {"city": "Lisbon"}, go_on=go_on)
    assert asked == [{"city": "Porto"}, {"city": "Lisbon"}]
    assert again.after.state is State.OUTPUT_DENIED


def test_a_fork_goes_on_from_before_a_call_and_leaves_its_origin() -> None:
    chat = warm()
    before = chat.transcript
    fork = chat.fork(before="call_2")
    assert texts(fork.transcript) == [("user", "Which is warmer?"), ("assistant", "Porto first.")]
    assert [*fork.calls] == ["call_1"]
    assert fork.transcript.metadata == {"forkedFrom": {"thread": "main", "before": "call_2"}}
    assert fork.send("And now?").text == "Then it is Porto."
    assert chat.transcript == before


def test_a_fork_of_the_whole_and_of_the_first_messages() -> None:
    chat = warm()
    assert chat.fork().transcript.messages == chat.transcript.messages
    assert texts(chat.fork(2).transcript) == texts(chat.transcript[:2])
    with pytest.raises(UsageError, match="There is no call 'x'"):
        chat.fork("x")


def test_undo_takes_one_turn_after_another_back() -> None:
    chat = warm()
    assert chat.undo() == "Thanks."
    assert [message.role for message in chat.transcript] == ["user", "assistant"]
    assert chat.undo() == "Which is warmer?"
    assert not chat.transcript
    with pytest.raises(UsageError, match="Nothing was asked"):
        chat.undo()


def test_a_loaded_conversation_is_taken_back_to_before_its_last_prompt() -> None:
    chat = made()
    chat.load(warm().transcript)
    assert chat.undo() == "Thanks."
    assert len(chat.transcript) == 2


def test_retry_puts_a_new_answer_in_the_place_of_the_last_one() -> None:
    chat = warm()
    before = chat.transcript
    assert chat.retry().text == "Then it is Porto."
    assert texts(chat.transcript[:3]) == texts(before[:3])
    assert len(chat.transcript) == 4
    chat.undo()
    assert chat.transcript == before


def test_retry_sends_the_files_again() -> None:
    model = _Listening()
    chat = Chat(model)
    picture = ev.File("data:image/png;base64,AAAA", "image/png")
    for _ in chat.stream("What is it?", files=[picture]):
        pass
    chat.retry()
    first, second = (messages[-1].parts for messages in model.asked)
    assert first == second
    assert len(first) == 2


# Steps and nested calls ---------------------------------------------------------------------------------------------


class _Agent(_Listening):
    """An agent whose one reply has two steps: a call that failed, with calls inside of it, then an answer."""

    may_run_calls = True

    def stream(self, messages: Any, tools: Any) -> list[ev.Event]:
        self.asked.append([*messages])
        if len(self.asked) > 1:
            return super().stream(messages, tools)
        return [
            ev.TextStart("1"),
            ev.TextDelta("1", "I ask."),
            ev.ToolInputAvailable("outer", "ask", {}),
            ev.StartStep(parent="outer", agent="inner"),
            ev.TextStart("i", parent="outer"),
            ev.TextDelta("i", "Inside.", parent="outer"),
            ev.ToolLog("outer", "half"),
            ev.ToolInputAvailable("first", "forecast", {"city": "Porto"}, tool_metadata={"parent": "outer"}),
            ev.ToolOutputAvailable("first", 21),
            ev.ToolInputAvailable("second", "forecast", {"city": "Lisbon"}, tool_metadata={"parent": "outer"}),
            ev.ToolOutputAvailable("second", 24),
            ev.FinishStep(parent="outer", model="m-0"),
            ev.ToolOutputError("outer", "too late"),
            ev.FinishStep(model="m-1", response_id="r-1"),
            ev.StartStep(),
            ev.TextStart("2"),
            ev.TextDelta("2", "It failed."),
            ev.Finish(finish_reason="stop", message_metadata={"model": "m-2"}),
        ]


def test_a_fork_before_an_inner_call_has_the_outer_call_as_it_was_then() -> None:
    chat = Chat(_Agent(), tools=[forecast])
    chat.send("?")
    assert chat.calls["outer"].error == "too late"
    fork = chat.fork("second")
    outer, first = fork.calls.values()
    assert (outer.state, outer.error, outer.log, outer.seconds) == (State.INTERRUPTED, None, "", None)
    assert (first.state, first.output, first.parent) == (State.OUTPUT_AVAILABLE, 21, "outer")
    assert [
        (start.parent, start.agent, start.model, start.response_id) for start in fork.transcript[1].step_starts
    ] == [("outer", "inner", None, None)]  # the replies of both steps were cut
    assert [part.text for part in fork.transcript[1].parts if part.parent == "outer" and hasattr(part, "text")] == [
        "Inside."
    ]


def test_a_fork_keeps_what_is_known_of_the_steps_before_it() -> None:
    first = [ev.ToolInputAvailable("1", "forecast", {"city": "Porto"}), ev.FinishStep(response_id="r-1")]
    second = [ev.ToolInputAvailable("2", "forecast", {"city": "Porto"}), ev.FinishStep(response_id="r-2")]
    replies = iter([first, second, [ev.TextDelta("1", "Done.")]])
    chat = Chat(_Replies(replies), tools=[forecast])
    chat.send("?")
    assert [step.response_id for step in chat.fork("2").transcript[1].steps] == ["r-1"]


class _Replies(_Listening):
    def __init__(self, replies: Any) -> None:
        super().__init__()
        self._replies = replies

    def stream(self, messages: Any, tools: Any) -> list[ev.Event]:
        self.asked.append([*messages])
        reply: list[ev.Event] = next(self._replies)
        return reply


def test_a_call_that_goes_on_keeps_its_step_and_the_steps_before_it() -> None:
    def known(name: str, tokens: int) -> ev.FinishStep:
        return ev.FinishStep(response_id=name, usage={"inputTokens": tokens})

    def call(call_id: str) -> ev.ToolInputAvailable:
        return ev.ToolInputAvailable(call_id, "forecast", {"city": "Porto"})

    text = [ev.TextStart("t"), ev.TextDelta("t", "And:"), ev.TextEnd("t")]
    replies = [[call("1"), known("r-1", 1)], [call("2"), *text, call("3"), *text, known("r-2", 2)]]
    answers = [[ev.TextDelta("1", "Done.")], [ev.TextDelta("1", "Again."), known("r-3", 4)]]
    model = _Replies(iter([*replies, *answers]))
    chat = Chat(model, tools=[forecast])
    chat.send("?")
    chat.rerun("2", {"city": "Lisbon"}, go_on=True)
    steps = chat.transcript[-1].steps
    assert [(step.response_id, step.text, [(call.id, call.output) for call in step.calls]) for step in steps] == [
        ("r-1", "", [("1", 21)]),
        ("r-2", "And:", [("2", 24), ("3", 21)]),
        ("r-3", "Again.", []),
    ]
    assert chat.usage == {"inputTokens": 7} == chat.transcript[-1].metadata["usage"]
    assert [len(step.calls) for step in model.asked[-1][-1].steps] == [1, 2]


def test_the_model_never_sees_an_inner_call_so_the_chat_cannot_go_on_from_it() -> None:
    chat = Chat(_Agent(), tools=[forecast])
    chat.send("?")
    before = chat.transcript
    with pytest.raises(UsageError, match="'second' ran inside of 'outer'"):
        chat.rerun("second", go_on=True)
    assert chat.transcript is before
    assert chat.rerun("second", {"city": "Porto"}).after.output == 21


# Calls that share the provider's id ---------------------------------------------------------------------------


def look(number: int) -> int:
    """A tool."""
    return number * 10


def looked() -> Chat:
    """A chat of two turns, the second with two steps, whose calls all have the id ``look:0``."""
    calls = [[("look", {"number": number}, "look:0")] for number in (1, 2, 3)]
    chat = made(calls[0], "One.", calls[1], calls[2], "Two, three.", "More.", tools=[look])
    chat.send("One?")
    chat.send("Two and three?")
    return chat


OUTPUTS = {"look:0": 10, "look:0-2": 20, "look:0-3": 30}


def test_each_call_is_there_under_an_id_of_its_own_with_its_times_and_its_row() -> None:
    chat = looked()
    assert {name: call.output for name, call in chat.calls.items()} == OUTPUTS
    assert all(call.seconds is not None for call in chat.calls.values())
    frame = chat.calls.df
    assert [*frame["id"]] == [*OUTPUTS]
    assert [*frame["turn"]] == [1, 3, 3]


def test_each_is_there_in_what_is_saved_and_shown(tmp_path: Path) -> None:
    chat = looked()
    for suffix in (".md", ".json", ".jsonl"):
        chat.transcript.write(tmp_path / f"run{suffix}")
        assert {name: call.output for name, call in read(tmp_path / f"run{suffix}").calls.items()} == OUTPUTS
    for name in OUTPUTS:
        assert to_html(chat.transcript, opened={name: True}).count("<details open>") == 1


@pytest.mark.parametrize("call_id", OUTPUTS)
def test_each_runs_again_and_can_be_forked_from(call_id: str) -> None:
    chat = looked()
    assert chat.rerun(call_id, {"number": 7}).before.output == OUTPUTS[call_id]
    fork = chat.fork(before=call_id)
    assert [*fork.calls] == [*OUTPUTS][: [*OUTPUTS].index(call_id)]
    fork.load(chat.transcript)
    assert {name: call.output for name, call in fork.calls.items()} == OUTPUTS
