"""What a chat, its parts and the handle of `show` are as the value of a cell: cards or a table, never a repr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.support.shells import the_shell
from toolcall_nb import Chat, load_ipython_extension, register_secret, show, unload_ipython_extension
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall, ToolCalls, Transcript
from toolcall_nb.models import MockModel

CALL = ToolCall(
    id="c1",
    name="weather",
    state=State.OUTPUT_AVAILABLE,
    input={"city": "Lisbon"},
    output=[{"day": "Mon", "high": 24}, {"day": "Tue", "high": 25}],
)
FAILED = ToolCall(id="c|2", name="<b>", state=State.OUTPUT_ERROR, input={"a": "`x`"}, error="no\nanswer")
MESSAGE = Message("assistant", (TextPart("It is **warm**."), CALL, FAILED))


def weather(city: str) -> str:
    """The weather."""
    return f"Sunny in {city}"


def asked() -> Chat:
    chat = Chat(MockModel(speed=None), tools=[weather], thread="trip")
    chat.send("weather of Lisbon")
    return chat


@pytest.fixture(params=[False, True], ids=["without the extension", "with it"])
def formatted(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], dict[str, Any]]]:
    """What a cell shows of its value."""
    shell = InteractiveShell()  # type: ignore[no-untyped-call]  # IPython has no types
    if request.param:
        load_ipython_extension(shell)
    yield lambda value: shell.display_formatter.format(value)[0]
    if request.param:
        unload_ipython_extension(shell)


@pytest.mark.parametrize(
    ("value", "html", "text"),
    [
        (MESSAGE, '<div class="tc-call tc-output-available" ', "weather · Completed"),
        (
            CALL,
            '<div class="tc-call tc-output-available" style="border:2px solid green;padding:4px"><details open>',
            "weather · Completed",
        ),
        (Transcript((MESSAGE,)).calls, "<th>arguments</th>", "name     arguments"),
        (ToolCalls(), "No tool calls.", "No tool calls."),
    ],
    ids=["message", "call", "calls", "no calls"],
)
def test_a_value_is_shown_as_cards_or_a_table(
    formatted: Callable[[Any], dict[str, Any]], value: Any, html: str, text: str
) -> None:
    bundle = formatted(value)
    assert set(bundle) == {"text/html", "text/markdown", "text/plain"}
    assert html in bundle["text/html"]
    assert text in bundle["text/plain"]
    assert "ToolCall(" not in bundle["text/plain"]


def test_a_chat_is_shown_with_what_was_said_and_what_is_set(formatted: Callable[[Any], dict[str, Any]]) -> None:
    bundle = formatted(asked())
    assert '<div class="tc-call tc-output-available" ' in bundle["text/html"]
    line = "Thread trip · mock · tools: weather · approve: auto"
    assert line in bundle["text/html"]
    assert line in bundle["text/plain"]
    assert Transcript.from_markdown(bundle["text/markdown"]).calls.keys() == {"call_1"}


def test_the_table_of_calls_holds_hostile_text_as_text(formatted: Callable[[Any], dict[str, Any]]) -> None:
    bundle = formatted(Transcript((MESSAGE,)).calls)
    assert "<td>&lt;b&gt;</td>" in bundle["text/html"]
    assert bundle["text/markdown"].split("\n")[3] == r"| `<b>` | `a: 'x'` | `Error` | `no answer` | `c\|2` |"


def test_a_long_table_says_how_many_rows_it_leaves_out() -> None:
    calls = ToolCalls(ToolCall(id=str(number), name="f") for number in range(2_000))
    bundle = calls._repr_mimebundle_()
    assert "more rows" in bundle["text/html"]
    assert "more rows" in bundle["text/plain"]
    assert "more rows" in bundle["text/markdown"]
    assert len(bundle["text/html"]) < 200_000


def test_secrets_are_masked_in_what_a_cell_keeps_of_a_value(formatted: Callable[[Any], dict[str, Any]]) -> None:
    register_secret("correct-horse-battery", "HORSE")
    call = ToolCall(id="c", name="f", state=State.OUTPUT_AVAILABLE, input={}, output="correct-horse-battery")
    for value in (call, Message("assistant", (call,)), ToolCalls([call])):
        bundle = formatted(value)
        assert not [kind for kind, data in bundle.items() if "correct-horse" in data]
        assert "1 secret" in bundle["text/html"]


def test_only_what_is_asked_for_is_made() -> None:
    for value in (CALL, MESSAGE, Transcript((MESSAGE,)).calls, asked()):
        assert set(value._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
        assert set(value._repr_mimebundle_(exclude={"text/html"})) == {"text/markdown", "text/plain"}


def test_the_calls_are_still_a_mapping() -> None:
    assert Transcript((MESSAGE,)).calls == {"c1": CALL, "c|2": FAILED}
    assert [*asked().calls] == ["call_1"]


def test_the_handle_of_show_is_shown_in_another_cell_and_not_twice_in_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with the_shell() as shell:
        monkeypatch.setattr(shell, "execution_count", 1)
        handle = show(Transcript((MESSAGE,)))
        capsys.readouterr()
        shell.display_formatter.format(handle)
        assert capsys.readouterr().out == ""
        monkeypatch.setattr(shell, "execution_count", 2)
        shell.display_formatter.format(handle)
        assert "weather · Completed" in capsys.readouterr().out
