"""The mock model is deterministic and calls the given tools; the faults change its stream as they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import jsonschema  # type: ignore[import-untyped] # comes with JupyterLab, without types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb import dialects, models
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall, Transcript
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models import MockModel, Model, Pace, as_live, pieces, with_faults
from toolcall_nb.models.mock.arguments import arguments_for
from toolcall_nb.models.mock.scenarios import SCENARIOS
from toolcall_nb.models.mock.text_calls import with_calls
from toolcall_nb.testing import faults
from toolcall_nb.tools import Registry, Tool


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius", days: int = 3) -> str:
    """The weather forecast for a city."""
    return city


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def search(query: str, limit: int = 5) -> str:
    """Search the web."""
    return query


def calculator(expression: str) -> str:
    """Evaluate arithmetic."""
    return expression


def now() -> str:
    """What time it is."""
    return "12:00"


TOOLS = tuple(Registry([get_weather, add, search, calculator, now]).values())


def user(text: str) -> Message:
    return Message("user", (TextPart(text),))


def reply(model: Model, prompt: str, *more: Message, tools: Sequence[Tool] = TOOLS) -> Message:
    return Transcript.from_events(model.stream([user(prompt), *more], tools)).messages[-1]


every_dialect = pytest.mark.parametrize("dialect", dialects.DIALECTS)


def detected(dialect: str, text: str) -> Transcript:
    found = dialects.detector(dialect)
    return Transcript.from_events([*found.feed(text), *found.close()])


def calls(prompt: str, scenario: str = "auto", **options: Any) -> list[tuple[str, Any]]:
    return [(c.name, c.input) for c in reply(MockModel(scenario=scenario, speed=None, **options), prompt).calls]


# What it calls ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What's the weather in Oslo?", [("get_weather", {"city": "Oslo"})]),
        (
            "weather in Oslo in fahrenheit for 2 days",
            [("get_weather", {"city": "Oslo", "unit": "fahrenheit", "days": 2})],
        ),
        (
            "Compare the weather in San Francisco and Paris",
            [("get_weather", {"city": "San Francisco"}), ("get_weather", {"city": "Paris"})],
        ),
        ("Weather in Rome", [("get_weather", {"city": "Rome"})]),
        ("add 2 and 3.5", [("add", {"a": 2, "b": 3.5})]),
        ('search for "cats and dogs" with limit 3', [("search", {"query": "cats and dogs", "limit": 3})]),
        ("Use the calculator: what is (3+4)*2?", [("calculator", {"expression": "(3+4)*2"})]),
        ("What is it now?", [("now", {})]),
        (
            "Add 17 and 25, and search",
            [("add", {"a": 17, "b": 25}), ("search", {"query": "Add 17 and 25, and search"})],
        ),
        ("hello", [("get_weather", {"city": "Paris"})]),
    ],
)
def test_the_tool_and_its_arguments_come_from_the_prompt(prompt: str, expected: Any) -> None:
    assert calls(prompt) == expected


def test_call_makes_one_call_and_parallel_several() -> None:
    assert len(calls("weather in Oslo and Rome", "call")) == 1
    assert len(calls("weather in Oslo and Rome", "parallel")) == 2
    assert [name for name, _ in calls("weather in Oslo", "parallel")] == ["get_weather", "add"]
    alone = MockModel(scenario="parallel", speed=None)
    assert len(reply(alone, "hello", tools=TOOLS[:1]).calls) == 2


def test_failing_calls_with_invalid_arguments() -> None:
    ((name, arguments),) = calls("weather in Oslo", "failing")
    assert name == "get_weather"
    assert "city: is missing" in str(TOOLS[0].run(arguments).error)
    ((name, arguments),) = calls("what is it now", "failing")
    assert "no_such_argument" in str(TOOLS[-1].run(arguments).error)
    model = MockModel(scenario="failing", speed=None)
    assert [call.name for call in reply(model, "hello", tools=()).calls] == ["no_such_tool"]


@pytest.mark.parametrize("width", [1, 2])
def test_a_schema_of_endless_values_does_not_stop_the_mock(width: int) -> None:
    names = ["x", "y"][:width]
    node = {"type": "object", "required": names, "properties": {name: {"$ref": "#/$defs/node"} for name in names}}
    arguments = arguments_for(
        {"type": "object", "required": ["a"], "properties": {"a": node}, "$defs": {"node": node}}, ""
    )
    assert arguments["a"]["x"]["x"]


def test_long_and_text_make_no_calls() -> None:
    long = reply(MockModel(scenario="long", speed=None), "hello")
    assert not long.calls
    for block in ("| Model |", "```python", "1. Collect", "$$", "- [x]", "> [!NOTE]"):
        assert block in long.text
    assert not reply(MockModel(scenario="text", speed=None), "weather in Oslo").calls


def test_reasoning_comes_before_the_rest() -> None:
    found = [
        type(part).__name__ for part in reply(MockModel(scenario="reasoning", speed=None), "weather in Oslo").parts
    ]
    assert found == ["ReasoningPart", "TextPart", "ToolCall"]


def test_without_tools_the_reply_says_how_to_make_one() -> None:
    message = reply(MockModel(speed=None), "weather in Oslo", tools=())
    assert not message.calls
    assert "@tool" in message.text


def test_the_reply_after_results_summarises_them() -> None:
    done = Message(
        "assistant",
        (
            ToolCall(id="1", name="get_weather", state=State.OUTPUT_AVAILABLE, input={"city": "Oslo"}, output={"t": 3}),
            ToolCall(id="2", name="add", state=State.OUTPUT_ERROR, error="ValueError: a ` tick"),
            ToolCall(id="3", name="now", state=State.OUTPUT_DENIED),
            ToolCall(id="4", name="now", state=State.INTERRUPTED),
            ToolCall(id="5", name="now", state=State.OUTPUT_AVAILABLE, output=list(range(1000))),
        ),
    )
    message = reply(MockModel(speed=None), "?", done)
    assert not message.calls
    for line in (
        "- **get_weather** for Oslo gave `t: 3`.",
        "- **add** failed: ``ValueError: a ` tick``.",
        "- **now** was not allowed to run.",
        "- **now** did not finish.",
        "- **now** gave `[0, 1, 2, … 1000 in all]`.",
    ):
        assert line in message.text


@given(st.integers(), st.text(), st.sampled_from(list(SCENARIOS)))
def test_the_same_seed_and_messages_give_the_same_stream(seed: int, prompt: str, scenario: str) -> None:
    first, second = (list(MockModel(seed, scenario, speed=None).stream([user(prompt)], TOOLS)) for _ in range(2))
    assert first == second


@given(st.text(), st.sampled_from(["auto", "call", "parallel", "reasoning"]))
def test_its_arguments_are_always_valid(prompt: str, scenario: str) -> None:
    tools = {tool.name: tool for tool in TOOLS}
    for name, arguments in calls(prompt, scenario):
        jsonschema.Draft202012Validator(tools[name].parameters).validate(arguments)
        assert tools[name].run(arguments).error is None


def test_a_seed_changes_the_words() -> None:
    assert len({reply(MockModel(seed, speed=None), "weather in Oslo").text for seed in range(20)}) > 1


def test_ids_count_the_calls_of_the_conversation() -> None:
    earlier = Message("assistant", (ToolCall(id="call_1", name="x", state=State.OUTPUT_AVAILABLE, output=1),))
    messages = [user("hello"), earlier, user("weather in Oslo and Rome")]
    found = Transcript.from_events(MockModel(speed=None).stream(messages, TOOLS)).calls
    assert list(found) == ["call_2", "call_3"]


@every_dialect
def test_in_a_text_dialect_it_writes_calls_in_its_text(dialect: str) -> None:
    message = reply(MockModel(speed=None, dialect=dialect), "weather in Oslo and Rome")
    assert not message.calls
    read = detected(dialect, message.text)
    assert [(c.name, c.input, c.state) for c in read.calls.values()] == [
        ("get_weather", {"city": "Oslo"}, State.INPUT_AVAILABLE),
        ("get_weather", {"city": "Rome"}, State.INPUT_AVAILABLE),
    ]
    assert not read.diagnostics


@every_dialect
@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_the_calls_are_the_same_in_each_dialect(dialect: str, scenario: str) -> None:
    prompt = "weather in Oslo and Rome"
    message = reply(MockModel(scenario=scenario, speed=None, dialect=dialect), prompt)
    read = [(call.name, call.input) for call in detected(dialect, message.text).calls.values()]
    assert read == calls(prompt, scenario)


@every_dialect
def test_in_a_text_dialect_it_summarises_results_in_text(dialect: str) -> None:
    done = Message(
        "assistant",
        (
            TextPart("I ask."),
            ToolCall(id="1", name="now", state=State.OUTPUT_AVAILABLE, input={"city": "Oslo"}, output={"t": 3}),
            ToolCall(id="2", name="add", state=State.OUTPUT_ERROR, input={}, error="ValueError: bad"),
            ToolCall(id="3", name="add", state=State.OUTPUT_AVAILABLE, input={}, output="five"),
        ),
    )
    request = dialects.find_dialect(dialect).write_history([user("?"), done])
    message = Transcript.from_events(MockModel(speed=None, dialect=dialect).stream(request, TOOLS)).messages[-1]
    for line in ("- **now** for Oslo gave `t: 3`.", "- **add** failed: `ValueError: bad`.", "- **add** gave `five`."):
        assert line in message.text
    again = [*request, message, user("weather in Oslo")]
    asked = Transcript.from_events(MockModel(speed=None, dialect=dialect).stream(again, TOOLS)).messages[-1]
    assert [call.name for call in detected(dialect, asked.text).calls.values()] == ["get_weather"]


def test_a_user_s_message_after_a_reply_is_no_result() -> None:
    for dialect in dialects.DIALECTS:
        messages = [user("hello"), Message("assistant", (TextPart("Hi."),)), user("weather in Oslo")]
        assert with_calls(dialect, messages) == messages


# How fast ---------------------------------------------------------------------------------------------------


def test_without_speed_it_never_waits() -> None:
    waits: list[float] = []
    for speed in (None, 0, float("inf")):
        list(MockModel(speed=speed, sleep=waits.append).stream([user("hello")], TOOLS))
    assert waits == []


def test_twice_the_speed_waits_half_as_long() -> None:
    slow: list[float] = []
    fast: list[float] = []
    list(MockModel(speed=1, sleep=slow.append).stream([user("hello")], TOOLS))
    list(MockModel(speed=2, sleep=fast.append).stream([user("hello")], TOOLS))
    assert sum(slow) == pytest.approx(2 * sum(fast))
    assert all(0 < wait < 1 for wait in slow)


def test_a_speed_below_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="A speed is a number above 0"):
        Pace(-1.0)


@given(st.text())
def test_the_pieces_join_to_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text
    assert all(len(piece) <= 8 for piece in pieces(text))


def test_inputs_grow_as_json_text() -> None:
    found = list(as_live([ev.ToolInputAvailable("1", "f", {"city": "São Paulo"})], Pace(None)))
    assert isinstance(found[0], ev.ToolInputStart)
    assert "".join(e.input_text_delta for e in found if isinstance(e, ev.ToolInputDelta)) == '{"city": "São Paulo"}'
    assert len(found) > 6
    assert found[-1] == ev.ToolInputAvailable("1", "f", {"city": "São Paulo"})


# Models by name ---------------------------------------------------------------------------------------------


def test_a_model_is_found_by_its_name() -> None:
    for name in models.model_names():
        if name.endswith(":"):
            continue  # a provider
        assert isinstance(models.model(name), MockModel)
    own = MockModel()
    assert models.model(own) is own


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("mack", r"no model 'mack'. Did you mean 'mock'\? There are: mock, mock:auto"),
        ("mock:nope", "no scenario 'nope'. There are: auto, call"),
        ("", "no model ''"),
        (3, "A model is a name, an object with stream"),
    ],
)
def test_an_unknown_model_is_refused_with_the_known_names(wrong: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        models.model(wrong)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(UsageError, match="no dialect 'klingon'"):
        MockModel(dialect="klingon")


# Faults -----------------------------------------------------------------------------------------------------

PROMPT = "weather in Oslo and Rome 👍🏽"


def spoiled(*these: faults.Fault, dialect: str = "native") -> list[Event]:
    return list(MockModel(speed=None, dialect=dialect, faults=these).stream([user(PROMPT)], TOOLS))


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.delta for event in events if isinstance(event, ev.TextDelta))


@pytest.mark.parametrize("dialect", ["native", *dialects.DIALECTS])
@pytest.mark.parametrize("fault", [faults.cut(1), faults.cut(3), faults.random_cuts(4)])
def test_cuts_change_only_the_pieces(fault: faults.Fault, dialect: str) -> None:
    whole, cut = spoiled(dialect=dialect), spoiled(fault, dialect=dialect)
    assert text_of(cut) == text_of(whole)
    assert len(cut) != len(whole)
    assert Transcript.from_events(cut) == Transcript.from_events(whole)


def test_a_cut_of_one_separates_surrogate_pairs() -> None:
    events = faults.cut(1).apply(iter([ev.TextDelta("1", "a👍")]))
    assert [event.delta for event in events if isinstance(event, ev.TextDelta)] == ["a", "\ud83d", "\udc4d"]


def test_random_cuts_are_the_same_for_the_same_seed() -> None:
    assert spoiled(faults.random_cuts(1)) == spoiled(faults.random_cuts(1)) != spoiled(faults.random_cuts(2))


def test_ids_are_duplicated_or_missing() -> None:
    def ids(events: list[Event]) -> set[str]:
        return {getattr(event, "tool_call_id") for event in events if hasattr(event, "tool_call_id")}  # noqa: B009

    assert ids(spoiled(faults.duplicate_id("x"))) == {"x"}
    assert ids(spoiled(faults.missing_id())) == {""}
    assert text_of(spoiled(faults.duplicate_id("x"), dialect="callout")).count("> [!tool get_weather x]\n") == 2
    for dialect in ("signature", "json"):
        ids_read = [*detected(dialect, text_of(spoiled(faults.duplicate_id("x"), dialect=dialect))).calls]
        assert ids_read == ["x", "tool-call-2"]
        assert text_of(spoiled(faults.missing_id(), dialect=dialect)) == text_of(spoiled(dialect=dialect))
    assert text_of(spoiled(faults.missing_id(), dialect="callout")).count("> [!tool get_weather]\n") == 2


def test_malformed_calls_break_off() -> None:
    errors = [event for event in spoiled(faults.malformed_call()) if isinstance(event, ev.ToolInputError)]
    assert [error.input for error in errors] == ['{"city": "Oslo', '{"city": "Rome']
    for dialect in dialects.DIALECTS:
        read = detected(dialect, text_of(spoiled(faults.malformed_call(), dialect=dialect)))
        assert not read.calls
        assert len(read.diagnostics) == 2


@given(st.integers(0, 60), st.sampled_from([1, 2, 7]))
def test_faulty_ends_keep_the_events_before_them(after: int, size: int) -> None:
    whole = spoiled(faults.cut(size))
    assert spoiled(faults.cut(size), faults.truncate(after)) == whole[:after]
    assert spoiled(faults.cut(size), faults.abort(after)) == [*whole[:after], ev.Abort(reason="fault")]
    stream = faults.disconnect(after).apply(iter(whole))
    kept: list[Event] = []
    with pytest.raises(ModelError, match="connection to the model was lost"):
        kept.extend(_into(stream, kept))
    assert kept == whole[:after]


def _into(stream: Iterator[Event], kept: list[Event]) -> list[Event]:
    for event in stream:
        kept.append(event)
    return []


def test_a_stall_waits_once() -> None:
    waits: list[float] = []
    assert spoiled(faults.stall(9.5, after=2, sleep=waits.append)) == spoiled()
    assert waits == [9.5]


def test_a_cut_of_size_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1 unit"):
        faults.cut(0)


def test_any_model_can_have_faults() -> None:
    class Own:
        name = "own"

        def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
            yield ev.TextDelta("1", "abc")

    model = with_faults(Own(), faults.cut(2), faults.truncate(1))
    assert list(model.stream([], [])) == [ev.TextDelta("1", "ab")]
    assert models.model_name(model) == "own"
