"""Folds: the rest of a text, the input as the model wrote it, the result that it was sent, tracebacks."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from tests.fixtures.render.samples import LONG, body, call, saying
from tests.support.live_tree import Tree, after
from tests.support.secret_samples import made_up_key
from toolcall_nb.core import events as ev
from toolcall_nb.core.result_text import format_output, truncate_text
from toolcall_nb.core.transcript import Approval, State
from toolcall_nb.redaction.masked_values import masked_value
from toolcall_nb.render.html_output.live_html import LiveHtml
from toolcall_nb.render.html_output.page import fragment, to_html
from toolcall_nb.render.text import to_text
from toolcall_nb.tools import Tool

LINES = "".join(f"line {number}\n" for number in range(1, 1_001))


def folds(html: str) -> dict[str, str]:
    """What the folds are called, and what is in them, without tags."""
    found = re.findall(r'<details class="tc-more"(?: open)?><summary>(.*?)</summary>(.*?)</details>', html, re.DOTALL)
    return {re.sub(r"<.*?>", "", name): re.sub(r"<.*?>", "", inside) for name, inside in found}


# Text -----------------------------------------------------------------------------------------------------------


def test_the_rest_of_a_long_text_is_folded_and_counted() -> None:
    html = body(saying(call(output=LINES)))
    assert folds(html) == {"800 more lines": LINES.partition("line 200\n")[2].rstrip("\n")}
    assert html.index("line 200</span>") < html.index("800 more lines")


def test_a_text_of_one_line_is_counted_in_characters() -> None:
    assert folds(body(saying(call(output="x" * 25_000)))) == {"5,000 more characters": "x" * 5_000}


@pytest.mark.parametrize("output", ["a\n" * 200, "x" * 20_000, "\n" * 500, "a\n" * 199 + "b", ""])
def test_a_text_that_fits_has_no_fold(output: str) -> None:
    assert folds(body(saying(call(output=output)))) == {}


def test_the_visible_part_ends_with_a_whole_line() -> None:
    output = "\n".join("x" * 999 for _ in range(30))
    shown = re.sub(r"<.*?>", "", body(saying(call(output=output)))).partition("Output")[2]
    assert shown.startswith("\n".join("x" * 999 for _ in range(20)) + "10 more lines" + "x" * 999 + "\n")


def test_text_beyond_the_fold_is_counted_and_its_place_named() -> None:
    html = body(saying(call(output="x" * 300_000)))
    assert list(folds(html)) == [
        "280,000 more characters … 80,000 more characters: chat.calls[&#39;call_1&#39;].output"
    ]


def test_a_long_error_is_folded_outside_the_closable_part() -> None:
    html = body(saying(call(State.OUTPUT_ERROR, error=LINES)))
    assert html.index("</details>") < html.index("line 200<") < html.index("800 more lines")


@pytest.mark.parametrize(
    "text", ["\n" + "x" * 30_000, "\n" * 300 + "x", "\n" * 30_000 + "x", " \n" * 300, "\r\n" * 300]
)
def test_blank_lines_at_the_beginning_are_kept(text: str) -> None:
    html = body(saying(call(State.OUTPUT_ERROR, error=text, output=text)))
    assert 'class="tc-err"' in html
    assert html.count("x" * 10_000) == (4 if len(text.strip()) > 20_000 else 0)


# Values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "end"),
    [
        ([[number] for number in range(201)], "\n    200\n  ]\n]"),
        ([{"row": number} for number in range(201)], "&quot;row&quot;: 200\n  }\n]"),
        ([{"row": "x" * 201}], "x&quot;\n  }\n]"),
        ({str(number): number for number in range(201)}, "&quot;200&quot;: 200\n}"),
        ({"text": "x\n" * 20_000}, "x\\n&quot;\n}"),
    ],
    ids=["list", "table", "cell", "object", "text"],
)
def test_a_value_that_is_cut_has_a_fold_with_all_of_it(value: Any, end: str) -> None:
    [(name, inside)] = folds(body(saying(call(input={}, output=value)))).items()
    assert name == "All of it, as JSON"
    assert inside.endswith(end)


def test_an_input_that_is_cut_has_a_fold_with_all_of_it() -> None:
    assert list(folds(body(saying(call(input={"text": "x\n" * 20_000}))))) == ["All of it, as JSON"]


@pytest.mark.parametrize("value", [{}, [], [1, 2], {"a": [{"b": 1}]}, [{"a": "x" * 200}] * 90, None, 12.5])
def test_a_value_that_is_drawn_whole_has_no_fold(value: Any) -> None:
    assert folds(body(saying(call(input={}, output=value)))) == {}


def test_a_huge_value_names_where_all_of_it_is() -> None:
    html = body(saying(call(output={"text": "x" * 500_000})))
    name = "As JSON the first 100,000 characters; more: chat.calls[&#39;call_1&#39;].output"
    assert list(folds(html)) == [name]
    assert len(html) < 200_000


def saved(value: Any) -> str:
    """The card of a call whose tool returned this value."""
    outcome = Tool.from_function(lambda: value, name="f").run({}, None, "chat.outcomes['call_1'].value")
    return unescape(body(saying(call(output=outcome.output, model_text=outcome.model_text))))


def test_a_text_that_was_too_long_to_save_says_how_long_it_was_and_where_it_is() -> None:
    names = list(folds(saved("x" * 11_000_000)))
    assert names == [
        "10,980,000 more characters … 10,780,000 more characters: chat.outcomes['call_1'].value",
        "Told to the model 20,036 characters, 10,980,000 left out",
    ]
    first, *_ = folds(saved("x\n" * 5_500_000))
    assert first.startswith("10,999,599 more characters … 10,799,599 more characters: chat.outcomes")


def test_the_size_stays_true_when_a_secret_in_the_text_was_masked() -> None:
    key = made_up_key("sk-", 4_000)
    outcome = Tool.from_function(lambda: key + " x" * 5_000_000, name="f").run({}, None, "chat.outcomes['a'].value")
    masked, _ = masked_value(outcome.output, {})
    assert len(masked) < len(str(outcome.output))
    [name, *_] = folds(body(saying(call(output=masked))))
    assert "chat.outcomes[&#39;a&#39;].value" in name
    assert name.startswith("9,9")


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ([[n] for n in range(100_000)], "99,800 more items"),
        ([{"n": n, "m": n} for n in range(100_000)], "99,800 more rows"),
        ({f"{n}": n for n in range(100_000)}, "99,800 more keys"),
        ({"text": "y" * 11_000_000}, "10,980,005 more characters"),
    ],
)
def test_members_of_a_value_that_were_not_saved_are_counted(value: Any, hidden: str) -> None:
    html = saved(value)
    assert hidden in html
    assert "All of it" not in html


def test_an_error_that_was_cut_says_that_its_middle_was_not_kept() -> None:
    def fail() -> None:
        raise ValueError("e" * 10_000_000)

    error = Tool.from_function(fail, name="f").run({}, None).error
    [name] = folds(body(saying(call(State.OUTPUT_ERROR, error=error))))
    assert name.startswith("9,980,0")
    assert "without the 9,500,012 characters that were not kept" in name


def test_a_value_that_json_cannot_hold_has_no_fold() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert len(body(saying(call(output={"deep": deep, "many": list(range(1_000))})))) < 300_000
    assert folds(body(saying(call(output=[b"bytes", *([1],) * 300])))) == {}


# What the model wrote, and what it was told ---------------------------------------------------------------------


def test_an_edited_input_says_so_and_keeps_what_the_model_wrote() -> None:
    html = body(saying(call(input={"seats": 2}, original_input={"seats": 20})))
    assert '<span class="tc-mark">edited</span> <span class="tc-state">' in html
    assert ">Input <span>edited by you</span></b>" in html
    assert folds(html) == {"As the model wrote it": "seats: 20"}


def test_an_edited_input_may_be_empty() -> None:
    assert "<span>none, edited by you</span>" in body(saying(call(input={}, original_input={"seats": 20})))


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("Allowed for this chat.", "Allowed for this chat."),
        ("Always allowed for this tool.", "Always allowed for this tool."),
        ("Approved for this chat", "Approved for this chat"),
        ("looks\nright", "Approved: looks right"),
    ],
)
def test_an_approval_shows_its_reason(reason: str, line: str) -> None:
    approval = Approval(id="a", approved=True, reason=reason)
    assert f'<p class="tc-note">{line}</p>' in body(saying(call(approval=approval)))


@pytest.mark.parametrize("approval", [None, Approval(id="a"), Approval(id="a", approved=True)])
def test_an_approval_without_a_reason_shows_nothing(approval: Approval | None) -> None:
    assert "tc-note" not in body(saying(call(approval=approval)))


@pytest.mark.parametrize(
    "output", ["x" * 500, {"text": "x" * 1_500}, ["é"] * 60, "… 7 characters left out …\n" * 20], ids=range(4)
)
def test_the_result_that_the_model_was_sent_is_folded_with_its_size(output: Any) -> None:
    text = format_output(output)
    seen = truncate_text(text, 100)
    [(name, inside)] = folds(body(saying(call(output=output, model_text=seen)))).items()
    assert name == f"Told to the model {len(seen):,} characters, {len(text) - 100:,} left out"
    assert unescape(inside) == seen


def test_a_result_sent_in_another_form_has_only_its_size() -> None:
    assert list(folds(body(saying(call(output="x" * 50, model_text="a summary"))))) == [
        "Told to the model 9 characters"
    ]


def test_there_is_no_fold_if_the_model_was_sent_everything() -> None:
    assert "Told" not in body(saying(call(output="x")))


# Tracebacks -----------------------------------------------------------------------------------------------------


def test_a_traceback_is_folded_and_the_error_is_visible() -> None:
    html = body(saying(call(State.OUTPUT_ERROR, error="no", traceback="File a\n  <b>\n")))
    assert folds(html) == {"Traceback": "File a\n  &lt;b&gt;"}
    assert html.index("Traceback") < html.rindex("</details>") < html.index('class="tc-err"')


def test_a_huge_traceback_shows_its_end() -> None:
    html = body(saying(call(State.OUTPUT_ERROR, error="no", traceback="x" * 300_000 + "the end")))
    [(name, inside)] = folds(html).items()
    assert name == "Traceback 100,007 characters before these: chat.calls[&#39;call_1&#39;].traceback"
    assert inside.endswith("the end")


def test_plain_text_has_the_last_lines_of_a_traceback() -> None:
    text = to_text(saying(call(State.OUTPUT_ERROR, error="no", traceback=LINES)))
    assert "    Traceback\n      … 960 earlier lines\n      line 961\n" in text
    assert text.endswith("line 1000\n    Error\n      no")


# Opening and closing --------------------------------------------------------------------------------------------


def test_a_fold_in_a_card_is_closed_until_its_key_is_opened() -> None:
    assert '<details class="tc-more" open>' not in to_html(LONG, opened=dict.fromkeys(LONG.calls, True))
    for name in ("log of log", "rest of text", "json of list", "error of list"):
        assert to_html(LONG, opened={name: True}).count('<details class="tc-more" open>') == 1


def test_a_fold_and_its_nodes_have_a_key_of_their_own() -> None:
    live = after(*LONG.events())
    assert live.call_of("m0.p0") == live.call_of("m0.p0.d") == live.call_of("m0.p0.l.4") == "log"
    assert live.call_of("m0.p0.fold-log") == live.call_of("m0.p0.fold-log.0") == "log of log"
    assert live.call_of("m0.p1.fold-rest") == "rest of text"


def test_opening_a_fold_changes_the_fold_and_not_the_card() -> None:
    live, tree = LiveHtml(), Tree()
    for event in (ev.ToolInputAvailable("c", "f", {}), ev.ToolOutputAvailable("c", LINES)):
        tree.take(live.apply(event))
    patches = live.set_open("rest of c", True)
    tree.take(patches)
    assert [patch[:2] for patch in patches] == [["splice", "m0.p0.fold-rest"]]
    assert live.html == to_html(live.transcript, opened={"rest of c": True}) == fragment(tree.roots())


def test_keys_of_folds_include_the_call() -> None:
    live = after(ev.ToolInputAvailable("c", "f", {}), ev.ToolOutputAvailable("c", LINES), *LONG.events())
    assert live.set_open("rest of d", True) == []
