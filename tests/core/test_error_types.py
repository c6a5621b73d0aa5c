"""Each failed call has an error type, whoever made the text of its error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb import Chat, MockModel
from toolcall_nb.core.call_table import error_type


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ValueError: too small", "ValueError"),
        ("requests.exceptions.ConnectTimeout: no answer", "ConnectTimeout"),
        ("KeyError", "KeyError"),
        ("NotFound: no such row", "NotFound"),
        ("The arguments of 'add' are wrong:\n- x: must be a number", "WrongArguments"),
        ("The arguments of a tool call are no valid JSON.", "WrongArguments"),
        ("The reply ended before the arguments were complete.", "WrongArguments"),
        ("There is no tool 'ad'. Tools: add.", "UnknownTool"),
        ("Not run: the limit of 1 call is reached.", "LimitReached"),
        ("The model's side did not give a result.", "NoResult"),
        # LangGraph
        ("Error: ZeroDivisionError('division by zero')\n Please fix your mistakes.", "ZeroDivisionError"),
        ("Error: ad is not a valid tool, try one of [add].", "UnknownTool"),
        ("Error invoking tool 'add' with kwargs {'x': 'y'} with error:\n x: Input should be", "WrongArguments"),
        ("Error executing tool 'add' with kwargs {} with error:\n ValueError: no\n Please fix", "ValueError"),
        # Claude Code
        ("<tool_use_error>InputValidationError: Read failed</tool_use_error>", "InputValidationError"),
        ("<tool_use_error>Error: No such tool available: Ask</tool_use_error>", "UnknownTool"),
        ("<tool_use_error>File has not been read yet.</tool_use_error>", "Error"),
        ("Exit code 1\nls: no such file", "ExitCode"),
        ("Command timed out after 2m 0s", "TimeoutError"),
        ('Traceback (most recent call last):\n  File "a"\nKeyError: 1\n\nRuntimeError: two', "RuntimeError"),
        # others
        ("Error executing tool 'add' with arguments {'x': -1}: ValueError: too small\nPlease try again", "ValueError"),
        ("Unknown tool: ad", "UnknownTool"),
        ("Unknown tool name: 'ad'. Available tools: 'add'", "UnknownTool"),
        ("1 validation error for Path\nx\n  Field required", "WrongArguments"),
        ("Input validation error: 'x' is a required property", "WrongArguments"),
        ("Tool ad not found. Please select a tool that is available.", "UnknownTool"),
        ("Encountered error: too small", "Error"),
        ("", "Error"),
        (None, None),
    ],
)
def test_the_type_is_that_which_the_text_names(text: str | None, kind: str | None) -> None:
    assert error_type(text) == kind


@given(st.text())
def test_any_text_has_a_type(text: str) -> None:
    assert error_type(text)


def test_a_chat_has_the_type_of_each_failed_call() -> None:
    def add(x: int) -> int:
        """Adds one."""
        return x + 1

    def divide(x: int) -> float:
        """Divides one."""
        return 1 / x

    script: list[Any] = [
        [("add", {"x": "one"}), ("divide", {"x": 0}), ("no_such", {}), ("add", {"x": 1})],
        "Done.",
    ]
    chat = Chat(MockModel(script=script), tools=[add, divide])
    chat.send("Go")
    kinds = chat.calls.df["error_type"].tolist()
    assert [kind if isinstance(kind, str) else None for kind in kinds] == [
        "WrongArguments",
        "ZeroDivisionError",
        "UnknownTool",
        None,
    ]
