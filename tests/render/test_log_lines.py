"""The log of a tool: the newest lines are visible, earlier ones folded; a live view sends a line twice at most."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.render.samples import body, call, saying
from tests.support.documents import in_pieces
from tests.support.live_tree import Tree, after
from tests.support.live_view_checks import assert_shows_whole_transcript
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import State
from toolcall_nb.render.html_output.live_html import LiveHtml
from toolcall_nb.render.html_output.nodes import Patch
from toolcall_nb.render.html_output.page import fragment, to_html
from toolcall_nb.render.log_lines import LogLines
from toolcall_nb.render.text import to_text

RUNNING = State.INPUT_AVAILABLE


def lines(count: int, start: int = 1) -> str:
    return "".join(f"line {number}\n" for number in range(start, start + count))


def text_of(log: LogLines) -> tuple[str, str]:
    """What is folded and what is shown."""
    folded, newest = ("".join(text for group in part for _, text in group.entry.tokens) for part in log.parted())
    return folded, newest


def printing(*pieces: str) -> LiveHtml:
    return after(ev.ToolInputAvailable("c", "f", {}), *(ev.ToolLog("c", piece) for piece in pieces))


def size(patches: Iterable[Patch]) -> int:
    return len(json.dumps(list(patches)))


# Lines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one", "one"),
        ("one\ntwo\n", "one\ntwo\n"),
        ("10%\r20%\r", "20%"),
        ("10%\r20%\r30%\ndone", "30%\ndone"),
        ("\x1b[31mred\x1b[0m\n", "red\n"),
        ("\r", ""),
        ("\n", "\n"),
        ("x" * 4_001 + "\n", "x" * 4_000 + " … 1 more character\n"),
    ],
)
def test_lines_are_shown_as_they_would_stand_in_a_terminal(text: str, shown: str) -> None:
    assert text_of(LogLines(text)) == ("", shown)


def test_the_newest_lines_are_shown_and_earlier_ones_folded() -> None:
    folded, newest = text_of(LogLines(lines(1_000)))
    assert folded + newest == lines(1_000)
    assert 80 <= newest.count("\n") <= 120


def test_lines_older_than_the_fold_are_counted() -> None:
    log = LogLines(lines(100_000))
    folded, newest = text_of(log)
    assert len(folded) + len(newest) < 210_000
    assert log.lost + (folded + newest).count("\n") == 100_000
    assert newest.endswith("line 100000\n")


@given(st.text(st.sampled_from("ab\r\n\x1b[m")), st.lists(st.integers(0, 40), max_size=6))
def test_cuts_of_the_log_do_not_matter(text: str, cuts: list[int]) -> None:
    log = LogLines()
    for piece in in_pieces(text * 20, sorted(cuts)):
        log.add(piece)
    whole = LogLines(text * 20)
    assert [[group.entry.tokens for group in part] for part in log.parted()] == [
        [group.entry.tokens for group in part] for part in whole.parted()
    ]


# The card -------------------------------------------------------------------------------------------------------


def test_the_log_stands_between_the_input_and_the_output() -> None:
    html = body(saying(call(log="working\n", output="done")))
    assert re.search(r">Input</b>.*>Printed</b>.*working\n.*>Output</b>.*done", html, re.DOTALL)


def test_without_a_log_there_is_no_section() -> None:
    assert "Printed" not in body(saying(call(), call(log="\r")))


def test_earlier_lines_are_in_a_fold_that_is_counted() -> None:
    html = body(saying(call(RUNNING, log=lines(200))))
    assert '<details class="tc-more"><summary>120 earlier lines</summary><pre tabindex="0"><span>line 1\n' in html
    assert html.index("line 200") < html.index("120 earlier lines") < html.index("line 120\n")


def test_lines_that_are_not_shown_are_counted_and_their_place_named() -> None:
    html = body(saying(call(RUNNING, log=lines(100_000))))
    said = re.search(
        r"([\d,]+) earlier lines <span>([\d,]+) lines before these: chat.calls\[&#39;call_1&#39;\].log", html
    )
    assert said is not None
    shown = html.count("line ", html.index("Printed"))
    assert int(said[2].replace(",", "")) == 100_000 - shown


def test_control_characters_are_harmless() -> None:
    html = body(saying(call(log="a\x1b]0;title\x07\x08\x00<b>\n")))
    marks = "".join(f'<span class="u">&lt;U+000{code}&gt;</span>' for code in (8, 0))
    assert f"<span>a{marks}&lt;b&gt;\n</span>" in html


# Live -----------------------------------------------------------------------------------------------------------


def test_one_more_line_is_one_splice_with_only_that_line() -> None:
    live = printing("one\n")
    assert live.apply(ev.ToolLog("c", "two\n")) == [["splice", "m0.p0.l.0", len("<span>one\n"), 0, "two\n"]]


def test_a_progress_bar_changes_only_its_own_line() -> None:
    live = printing("loading\n", " 10%")
    patches = live.apply(ev.ToolLog("c", "\r 20%"))
    assert [patch[:2] + patch[3:] for patch in patches] == [["splice", "m0.p0.l.0", 1, "2"]]


def test_the_first_line_adds_the_section() -> None:
    live = printing()
    assert [patch[:3] for patch in live.apply(ev.ToolLog("c", "one"))] == [
        ["insert", "m0.p0.l", "m0.p0.d"],
        ["insert", "m0.p0.l.0", "m0.p0.l"],
    ]


def test_a_thousand_lines_cost_as_much_each_as_a_hundred() -> None:
    live = printing()
    costs = [size(live.apply(ev.ToolLog("c", f"line {number:06}\n"))) for number in range(3_000)]
    assert sum(costs[2_000:]) < 1.1 * sum(costs[1_000:2_000])
    assert sum(costs[1_000:2_000]) < 1_000 * (2 * len("line 000000\n") + 80)


def test_a_line_is_drawn_without_drawing_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    live = printing("one\n")

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("toolcall_nb.render.html_output.live_parts.card_node", fail)
    assert live.apply(ev.ToolLog("c", "two\n"))


@given(
    st.lists(
        st.one_of(
            st.builds(ev.ToolLog, st.just("c"), st.text(st.sampled_from("ab\n\r\ud83d\ude00\x1b[m"), max_size=9)),
            st.builds(ev.ToolLog, st.just("c"), st.just(lines(50))),
            st.just(ev.ToolOutputAvailable("c", "so far", preliminary=True, display={"text/html": "<b>x</b>"})),
            st.just(ev.ToolOutputAvailable("c", "so far\n" * 300, preliminary=True, model_text="so")),
            st.sampled_from([ev.ToolInterrupted("c"), ev.ToolOutputError("c", "no", traceback="at")]),
        ),
        max_size=12,
    )
)
@settings(max_examples=150)
def test_live_equals_whole_for_a_call_that_prints(events: list[ev.Event]) -> None:
    live, tree = LiveHtml(), Tree()
    for event in (ev.ToolInputAvailable("c", "f", {}), *events, ev.Finish()):
        tree.take(live.apply(event))
        assert live.html == fragment(tree.roots())
        assert_shows_whole_transcript(live)


def test_live_equals_whole_after_every_line() -> None:
    live, tree = printing(), Tree()
    tree.take(live.snapshot())
    for number in range(400):
        tree.take(live.apply(ev.ToolLog("c", f"line {number}\n")))
        assert live.html == fragment(tree.roots())
        assert_shows_whole_transcript(live)


def test_a_call_of_an_earlier_message_can_still_print() -> None:
    live = after(ev.ToolInputAvailable("c", "f", {}), ev.ToolLog("c", "one\n"), ev.Finish(), ev.Start())
    live.apply(ev.ToolLog("c", "two\n"))
    assert "one\ntwo\n" in live.html
    assert live.html == to_html(live.transcript)


def test_an_opened_fold_stays_open_as_lines_arrive() -> None:
    live = printing(lines(200))
    opened = {"log of c": True}
    assert live.set_open("log of c", True) == [
        ["splice", "m0.p0.fold-log", len('<details class="tc-more"'), 0, " open"]
    ]
    live.apply(ev.ToolLog("c", lines(100, 201)))
    assert_shows_whole_transcript(live, opened)
    assert '<details class="tc-more" open><summary>200 earlier lines' in live.html


# Plain text -----------------------------------------------------------------------------------------------------


def test_in_plain_text_the_lines_have_a_mark_and_earlier_ones_are_counted() -> None:
    text = to_text(saying(call(log=lines(200))))
    assert "    Printed\n      … 120 earlier lines\n      │ line 121\n" in text
    assert "      │ line 200" in text
