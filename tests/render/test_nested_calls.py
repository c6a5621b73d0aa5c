"""Cards of calls that ran inside of other calls are indented and name the call around them, live and static."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tests.support.live_tree import Tree
from toolcall_nb import Transcript
from toolcall_nb.core import events as ev
from toolcall_nb.core.call_nesting import CallNesting
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.render.html_output.live_html import LiveHtml
from toolcall_nb.render.html_output.page import fragment, to_html
from toolcall_nb.render.terminal import TerminalFace
from toolcall_nb.render.text import to_text


def inside(parent: str | None) -> Object | None:
    return None if parent is None else {"parent": parent}


def run(*calls: tuple[str, str | None]) -> list[Event]:
    """A run with these calls: the id, which is also the name, and the id of the call around it."""
    made = [ev.ToolInputAvailable(id, id, {}, tool_metadata=inside(parent)) for id, parent in calls]
    return [ev.Start(), *made, *(ev.ToolOutputAvailable(id, 1) for id, _ in calls), ev.Finish()]


def indents(html: str) -> list[tuple[str, int, str]]:
    """The name of each card, its indent and what it says to be in."""
    found: list[tuple[str, int, str]] = []
    for card in html.split('<div class="tc-call ')[1:]:
        depth = re.match(r'[^"]*tc-in-(\d)', card)
        around = re.search(r'<span class="tc-around">in (.*?)</span>', card)
        name = re.search(r'<b class="tc-name">(.*?)</b>', card)
        assert name is not None
        found.append((name[1], int(depth[1]) if depth else 0, around[1] if around else ""))
    return found


NESTED = run(("plan", None), ("search", "plan"), ("fetch", "search"), ("write", None))


def test_a_card_is_indented_by_the_calls_around_it() -> None:
    expected = [("plan", 0, ""), ("search", 1, "plan"), ("fetch", 2, "search"), ("write", 0, "")]
    assert indents(to_html(Transcript.from_events(NESTED))) == expected


def test_the_live_view_indents_as_the_calls_come() -> None:
    live = LiveHtml()
    for number, event in enumerate(NESTED):
        live.apply(event)
        expected = indents(to_html(Transcript.from_events(NESTED[: number + 1])))
        assert indents(live.html) == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([("a", "gone")], [("a", 0, "")]),
        ([("a", "a")], [("a", 0, "")]),
        ([("b", "a"), ("a", None)], [("b", 1, "a"), ("a", 0, "")]),
        ([(str(n), str(n - 1) if n else None) for n in range(9)], [*((str(n), min(n, 6)) for n in range(9))]),
    ],
)
def test_odd_parents_are_shown_too(
    calls: Sequence[tuple[str, str | None]], expected: Sequence[tuple[str | int, ...]]
) -> None:
    found = indents(to_html(Transcript.from_events(run(*calls))))
    assert [each[: len(expected[0])] for each in found] == expected


_IDS = st.sampled_from("abcd")
_TEXTS = st.builds(lambda id, parent: ev.TextDelta(f"{id} in {parent}", "x", parent=parent), _IDS, _IDS)
_STEPS = st.one_of(
    _TEXTS,
    st.builds(lambda parent, agent: ev.StartStep(parent=parent, agent=agent), st.none() | _IDS, st.none() | _IDS),
    st.builds(
        lambda parent, agent, count: ev.FinishStep(parent=parent, agent=agent, usage={"inputTokens": count}),
        *(st.none() | _IDS, st.none() | _IDS, st.integers(0, 9)),
    ),
    st.builds(lambda parent: ev.Error("No.", parent=parent), st.none() | _IDS),
    st.builds(lambda id: ev.ToolOutputError(id, "No."), _IDS),
    st.builds(lambda parent: ev.SourceUrl("1", "https://a.example", parent=parent), _IDS),
    st.builds(lambda id: ev.ToolRetracted(id), _IDS),
    st.just(ev.ResetStep()),
    st.builds(lambda id, parent: ev.ToolInputStart(id, id, tool_metadata=inside(parent)), _IDS, st.none() | _IDS),
    st.builds(lambda id, parent: ev.ToolInputAvailable(id, id, {}, tool_metadata=inside(parent)), _IDS, _IDS),
    st.builds(lambda id: ev.ToolOutputAvailable(id, 1), _IDS),
    st.builds(lambda id: ev.ToolInputDelta(id, "{"), _IDS),
    st.just(ev.Finish()),
)


@given(st.lists(_STEPS, max_size=14))
@settings(max_examples=300)
def test_the_live_view_equals_the_whole_whatever_is_inside_of_what(steps: list[Event]) -> None:
    live = LiveHtml()
    copy = Tree()
    for event in steps:
        copy.take(live.apply(event))
    copy.take(live.close())
    assert live.html == to_html(live.transcript)
    assert fragment(copy.roots()) == live.html


@given(st.lists(st.tuples(_IDS, st.none() | _IDS), max_size=8))
@settings(max_examples=300)
def test_calls_one_by_one_nest_as_all_at_once(calls: list[tuple[str, str | None]]) -> None:
    made = {id: ToolCall(id=id, name=id, tool_metadata=inside(parent)) for id, parent in calls}
    grown = CallNesting()
    for call in made.values():
        grown.add(call)
    whole = CallNesting(made.values())
    for id in made:
        assert (grown.depth(id), grown.around(id)) == (whole.depth(id), whole.around(id))
        assert grown.inside(id) == whole.inside(id)


# The words of what is inside --------------------------------------------------------------------------------------


def asking() -> list[Event]:
    """A call whose tool runs an agent, which says something, fails once, and has a call that fails."""
    return [
        ev.Start(),
        ev.ToolInputAvailable("c", "ask", {}),
        ev.StartStep(parent="c", agent="helper"),
        ev.TextDelta("t", "I look.\n\nTwice.", parent="c"),
        ev.ToolInputAvailable("i", "look", {}, tool_metadata={"parent": "c"}),
        ev.FinishStep(parent="c", usage={"inputTokens": 1200, "outputTokens": 34}),
        ev.ToolOutputError("i", "Nothing there."),
        ev.Error("The connection was lost.", parent="c"),
        ev.ToolOutputAvailable("c", "No."),
        ev.TextDelta("u", "It is not there."),
        ev.Finish(),
    ]


def test_the_card_counts_what_is_inside_and_an_error_inside_is_not_the_end() -> None:
    transcript = Transcript.from_events(asking())
    html = to_html(transcript)
    assert '<span class="tc-within">helper: 1 call, 2 errors, 1,234 tokens</span>' in html
    assert html.count('<b class="tc-speaker">helper</b>') == 2
    assert (transcript.messages[0].error, transcript.outcome.state) == (None, "done")


def test_a_text_inside_a_call_without_an_agent_is_named_for_the_call() -> None:
    events: list[Event] = [ev.ToolInputAvailable("c", "ask", {}), ev.TextDelta("t", "I look.", parent="c")]
    assert '<b class="tc-speaker">ask</b>' in to_html(Transcript.from_events(events))


def test_plain_text_indents_what_is_inside_also_as_it_comes() -> None:
    expected = """\
AI
  ▸ ask · Completed · helper: 1 call, 2 errors, 1,234 tokens
    Input (none)
    Output
      No.

    helper
      I look.

      Twice.

    ▸ look · Error
      Input (none)
      Error
        Nothing there.

    helper
      Error: The connection was lost.

  It is not there."""
    assert to_text(Transcript.from_events(asking())) == expected
    out = io.StringIO()
    with TerminalFace(Console(file=out, width=200)) as face:
        for event in asking():
            face.apply(event)
    assert out.getvalue().rstrip() == expected
