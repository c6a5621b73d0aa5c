"""`assert_calls` compares the calls of a run with those that are expected, and shows both sides where they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb import Chat, MockModel
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.testing import assert_calls, assert_outcome
from toolcall_nb.testing.call_assertions import first_matches


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"{name}-{arguments}", name=name, input=arguments)


WEATHER, SELECT, NOTE = call("weather", city="Oslo"), call("sql", q="select 1"), call("note", text="x")
RUN = [WEATHER, SELECT, NOTE]


def passes(run: Sequence[ToolCall], expected: Sequence[Any], **options: Any) -> bool:
    try:
        assert_calls(run, expected, **options)
    except AssertionError:
        return False
    return True


def message_of(run: Any, expected: Sequence[Any], **options: Any) -> str:
    with pytest.raises(AssertionError) as error:
        assert_calls(run, expected, **options)
    return str(error.value)


# Order --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "orders"),
    [
        ([WEATHER, SELECT, NOTE], {"strict", "subsequence", "any", "superset", "subset"}),
        ([NOTE, WEATHER, SELECT], {"any", "superset", "subset"}),
        ([WEATHER, NOTE], {"subsequence", "superset"}),
        ([NOTE, WEATHER], {"superset"}),
        ([], {"subsequence", "superset"}),
        ([WEATHER, SELECT, NOTE, NOTE], {"subset"}),
        ([WEATHER, SELECT, SELECT], set()),
    ],
)
def test_each_order_allows_what_it_says(expected: Sequence[ToolCall], orders: set[str]) -> None:
    names = ("strict", "subsequence", "any", "superset", "subset")
    assert {order for order in names if passes(RUN, expected, order=order)} == orders


@pytest.mark.parametrize("order", ["any", "superset", "subset"])
def test_the_answer_does_not_depend_on_the_order_of_the_expected_calls(order: str) -> None:
    run = [call("sql", q="a"), call("sql", q="a", limit=1)]
    wanted = [("sql", {"q": "a"}), ("sql", {"q": "a", "limit": 1})]
    for one in permutations(wanted):
        for other in permutations(run):
            assert passes(other, one, order=order, args="subset")


def test_a_later_match_is_found_when_an_earlier_one_would_use_it_up() -> None:
    run = [call("sql", q="a"), call("sql", q="b"), call("sql", q="a")]
    assert passes(run, [("sql", {"q": "a"}), ("sql", {"q": "a"})], order="subsequence")
    assert not passes(run, [("sql", {"q": "b"}), ("sql", {"q": "b"})], order="subsequence")


@given(st.text("ab", max_size=4), st.text("ab", max_size=8))
def test_a_subsequence_is_found_if_there_is_one(expected: str, actual: str) -> None:
    rest = iter(actual)
    is_there = all(letter in rest for letter in expected)
    found = first_matches(len(expected), len(actual), lambda one, other: expected[one] == actual[other])
    assert (len(found) == len(expected)) is is_there


# Arguments ----------------------------------------------------------------------------------------------------

DEEP = [call("find", filters=[{"name": "a", "min": 1}], limit=3)]


@pytest.mark.parametrize(
    ("expected", "rules"),
    [
        ({"filters": [{"name": "a", "min": 1}], "limit": 3}, {"exact", "subset", "ignore"}),
        ({"filters": [{"name": "a"}]}, {"subset", "ignore"}),
        ({"limit": True}, {"ignore"}),
        ({"limit": 3.0, "filters": ANY}, {"exact", "subset", "ignore"}),
        ({}, {"subset", "ignore"}),
        ({"filters": []}, {"ignore"}),
        ({"offset": None}, {"ignore"}),
    ],
)
def test_each_rule_compares_arguments_as_it_says(expected: Any, rules: set[str]) -> None:
    names = ("exact", "subset", "ignore")
    assert {rule for rule in names if passes(DEEP, [("find", expected)], args=rule)} == rules


def test_only_the_listed_fields_count() -> None:
    assert passes(DEEP, [("find", {"limit": 3, "filters": "?"})], args=["limit", "offset"])
    assert not passes(DEEP, [("find", {"limit": 4})], args=["limit"])
    assert not passes(DEEP, [("find", {"limit": 3, "offset": 1})], args={"limit", "offset"})


def test_a_function_compares_the_arguments() -> None:
    def is_about(expected: Any, actual: Any) -> bool:
        return bool(expected["q"].lower() == actual["q"].lower())

    assert passes([SELECT], [("sql", {"q": "SELECT 1"})], args=is_about)
    assert not passes([SELECT], [("sql", {"q": "SELECT 2"})], args=is_about)
    assert passes([SELECT], [("sql", lambda arguments: "select" in arguments["q"])])
    assert not passes([SELECT], [("sql", lambda arguments: "drop" in arguments["q"])])


def test_each_tool_may_have_a_rule_of_its_own() -> None:
    rules: Any = {"sql": "ignore"}
    assert passes(RUN, [WEATHER, ("sql", {"q": "?"}), NOTE], args=rules)
    assert not passes(RUN, [("weather", {"city": "?"}), "sql", NOTE], args=rules)


def test_a_name_alone_allows_any_arguments() -> None:
    assert passes(RUN, ["weather", ("sql",), "note"])
    assert not passes(RUN, ["weather", "sqll", "note"])


def test_not_a_number_is_equal_to_itself() -> None:
    assert passes([call("f", x=math.nan)], [("f", {"x": math.nan})])


# The run ------------------------------------------------------------------------------------------------------


def sql(q: str) -> int:
    """Runs a query."""
    return len(q)


def test_a_run_is_a_chat_a_transcript_a_message_or_calls() -> None:
    chat = Chat(MockModel(script=[("sql", {"q": "a"}), ("sql", {"q": "b"}), "Done."]), tools=[sql])
    message = chat.send("Go.")
    expected = [("sql", {"q": "a"}), ("sql", {"q": "b"})]
    for run in (chat, chat.transcript, message, chat.calls, list(chat.calls.values()), iter(chat.calls.values())):
        assert_calls(run, expected)


def test_calls_with_the_same_id_in_two_messages_are_two_calls() -> None:
    one, other = ToolCall(id="1", name="a", input={}), ToolCall(id="1", name="b", input={})
    assert_calls(Transcript((Message("assistant", (one,)), Message("assistant", (other,)))), ["a", "b"])


def test_a_call_without_complete_arguments_has_none() -> None:
    open_call = ToolCall(id="1", name="sql", state=State.INTERRUPTED, input_text='{"q": "sel')
    assert passes([open_call], [("sql", {})])
    assert not passes([open_call], [("sql", {"q": "select 1"})])


@pytest.mark.parametrize(
    ("run", "expected", "options", "says"),
    [
        ("text", [], {}, "A run is a transcript, a chat, a message or a list of tool calls, but got 'text'"),
        ([TextPart("x")], [], {}, "A run is"),
        (RUN, [("sql", "select 1")], {}, "An expected call is a name, or a tuple (name, arguments)"),
        (RUN, [3], {}, "An expected call is"),
        (RUN, [], {"order": "sorted"}, "order is one of strict, subsequence, any, superset, subset, but is 'sorted'"),
        (RUN, [WEATHER], {"args": "some"}, "args is one of exact, subset, ignore, a list of fields, or a function"),
        (RUN, [WEATHER], {"args": 3}, "args is one of"),
    ],
)
def test_wrong_use_is_refused(run: Any, expected: Any, options: Any, says: str) -> None:
    with pytest.raises(UsageError) as error:
        assert_calls(run, expected, **options)
    assert says in str(error.value)


# The message --------------------------------------------------------------------------------------------------


def test_a_failure_shows_both_sides_aligned() -> None:
    run = [WEATHER, call("sql", q="select 1"), call("search", query="y")]
    shown = message_of(run, [WEATHER, NOTE, ("sql", {"q": "select 2"})])
    assert shown == (
        "The calls of the run are not as expected (these and no others, in this order).\n"
        "= as expected, ~ other arguments, - missing, + not expected\n"
        "\n"
        "   1 = weather(city='Oslo')\n"
        "     - note(text='x')\n"
        "   2 ~ sql(q='select 1')\n"
        "         q:\n"
        "           expected: 'select 2'\n"
        "           actual:   'select 1'\n"
        "   3 + search(query='y')"
    )


def test_calls_that_are_allowed_have_no_sign() -> None:
    shown = message_of(RUN, [("sql", {"q": "select 2"})], order="superset")
    assert "   1   weather(city='Oslo')\n   2 ~ sql(q='select 1')" in shown
    shown = message_of([WEATHER], [("sql", {}), ("weather", {"city": "Rome"})], order="subset")
    assert "sql" not in shown


def test_the_same_calls_in_another_order_are_reported_as_such() -> None:
    assert message_of([SELECT, WEATHER], [WEATHER, SELECT]).endswith("expected, in another order.")
    assert "another order" not in message_of([SELECT], [WEATHER])


def test_one_call_more_at_the_beginning_leaves_the_others_aligned() -> None:
    calls = [call("sql", q=f"{n}") for n in range(400)]
    shown = message_of([call("sql", q="more"), *calls], calls)
    assert shown.endswith(
        "   1 + sql(q='more')\n"
        "   2 = sql(q='0')\n"
        "   3 = sql(q='1')\n"
        "     = 396 more\n"
        " 400 = sql(q='398')\n"
        " 401 = sql(q='399')"
    )


def test_a_run_without_calls_says_so() -> None:
    assert "The run has no calls." in message_of([], [WEATHER])


def test_only_the_places_that_differ_are_shown() -> None:
    texts = ["\n".join(["same"] * 40 + [f"{end}"] + ["rest"] * 40) for end in ("one", "two")]
    expected = {"q": texts[0], "filters": [1, {"a": 2}], "gone": 1}
    shown = message_of([call("f", q=texts[1], filters=[1, {"a": 3}], new=[])], [("f", expected)])
    assert "q, line 41:\n           expected: 'one'\n           actual:   'two'" in shown
    assert "filters[1].a:\n           expected: 2\n           actual:   3" in shown
    assert "gone:\n           expected: 1\n           actual:   (nothing)" in shown
    assert "new:\n           expected: (nothing)\n           actual:   []" in shown


def test_a_long_line_is_shown_where_it_differs() -> None:
    one, other = "x" * 5_000 + "A", "x" * 5_000 + "B"
    shown = message_of([call("f", q=one)], [("f", {"q": other})])
    assert "A'" in shown
    assert "B'" in shown
    assert len(shown) < 1_000


def test_many_differences_are_not_all_shown() -> None:
    run = [call("f", **{f"x{n}": n for n in range(100)})]
    shown = message_of(run, [("f", {f"x{n}": -n for n in range(100)})])
    assert "There are more differences." in shown
    assert len(shown) < 2_000


def test_a_function_that_says_no_is_named() -> None:
    assert "the function for the arguments says no" in message_of([SELECT], [("sql", lambda arguments: False)])
    assert "the function for the arguments says no" in message_of([SELECT], [SELECT], args=lambda one, other: False)


def test_the_calls_of_a_repeated_message_do_not_count() -> None:
    call = ToolCall(id="c1", name="f", input={})
    assert_calls(Transcript((Message("assistant", (call,), repeated=True),)), [])


# How a run ended


def test_the_outcome_of_a_run_is_asserted() -> None:
    answered = Transcript((Message("assistant", (TextPart("Hi"),)),))
    assert_outcome(answered)
    assert_outcome(Message("assistant", (TextPart("Hi"),), aborted="stopped"), "stopped")
    chat = Chat(MockModel(script=[ValueError("busy")]))
    chat.send("?")
    assert_outcome(chat, "error")
    with pytest.raises(AssertionError, match=r"should have ended as done, but its end is error: .*busy"):
        assert_outcome(chat)
    with pytest.raises(AssertionError, match=r"should have ended as limit, but its end is done\.$"):
        assert_outcome(answered, "limit")
    with pytest.raises(AssertionError, match="a run without messages"):
        assert_outcome(Transcript())


def test_a_word_that_is_no_outcome_is_refused() -> None:
    with pytest.raises(UsageError, match="but not as 'fine'"):
        assert_outcome(Transcript(), "fine")
    with pytest.raises(UsageError, match="A run is a transcript"):
        assert_outcome(7)
