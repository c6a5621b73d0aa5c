"""The table of a batch: what a notebook keeps, in cells with and without a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.shells import the_shell
from toolcall_nb import register_secret, run_many
from toolcall_nb.batches.batch_table import SHOWN_ROWS, batch_bundle
from toolcall_nb.batches.progress import RowState, RunRow
from toolcall_nb.redaction.registered_secrets import REGISTERED

HOSTILE = "<script>alert(1)</script>\u202e\x1b[2J"


def echo(messages: Sequence[Any]) -> str:
    """A model that repeats the last prompt."""
    return f"You said: {messages[-1]['content']}"


def test_each_row_opens_into_its_transcript() -> None:
    html = run_many(["one", "two"], models=echo)._repr_mimebundle_()["text/html"]
    assert re.findall(r"<span class=tc-state>(.*?)</span>", html) == ["done", "done"]
    assert re.findall(r"<details data-row=(\d)>", html) == ["0", "1"]
    assert html.index("You said: one") < html.index("data-row=1") < html.index("You said: two")


def test_hostile_text_stays_text() -> None:
    bundle = run_many([HOSTILE], models={HOSTILE: echo})._repr_mimebundle_()
    assert "<script" not in bundle["text/html"]
    rows = bundle["text/html"].partition("<details")[0]
    assert not {"\u202e", "\x1b"} & {*rows, *bundle["text/plain"]}


def test_secrets_are_masked() -> None:
    register_secret("tulip-9000-secret")
    try:
        bundle = run_many(["Use tulip-9000-secret."], models=echo)._repr_mimebundle_()
    finally:
        REGISTERED.clear()
    assert [kind for kind, text in bundle.items() if "tulip" in text] == []


def test_what_a_notebook_keeps_is_the_same_each_time() -> None:
    done = RunRow(key="a", prompt="one", prompt_number=0, model="echo", number=1, state=RowState.DONE)
    first, second = (batch_bundle([replace(done, seconds=seconds)], []) for seconds in (1.0, 7.0))
    assert first == second
    assert run_many(["one"], models=echo)._repr_mimebundle_()["text/plain"] == "done     one · echo · 1\n1 of 1 done"


def test_a_long_table_says_how_many_rows_it_does_not_show() -> None:
    rows = [RunRow(key=f"{n}", prompt="p", prompt_number=0, model="m", number=n) for n in range(SHOWN_ROWS + 5)]
    rows[0].state, rows[0].note = RowState.ERROR, "No answer."
    bundle = batch_bundle(rows, [])
    assert bundle["text/html"].count("class=tc-state") == SHOWN_ROWS
    assert "No answer." in bundle["text/html"]
    assert all("5 more rows" in text for text in bundle.values()), bundle["text/plain"][-100:]


def test_in_a_terminal_s_shell_the_progress_is_printed_and_the_value_is_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with the_shell():
        runs = run_many(["one"], models=echo)
    assert "done     one · echo · 1" in capsys.readouterr().err
    assert "text/html" in runs._repr_mimebundle_()
