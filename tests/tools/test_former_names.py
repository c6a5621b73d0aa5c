"""The former names of tools' functions, parameters and attributes still work, with a warning."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from toolcall_nb.tools import Tool


def printing() -> str:
    print("hello")
    return "x" * 200


def test_a_tool_takes_the_former_parameters() -> None:
    reported: list[Any] = []
    with pytest.warns(DeprecationWarning, match="'on_progress'"), pytest.warns(DeprecationWarning, match="_expression"):
        Tool.from_function(printing).run({}, tell=reported.append, whole="there")  # type: ignore[call-arg]
    assert "".join(log.text for log in reported) == "hello\n"


def test_an_outcome_has_the_former_attribute() -> None:
    outcome = Tool.from_function(printing, limit=100).run({}, lambda _: None)
    with pytest.warns(DeprecationWarning, match=r"Outcome\.seen is now Outcome\.model_text"):
        assert outcome.seen == outcome.model_text
    assert "left out" in str(outcome.model_text)


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("tools.Decision", "approvals.Decision"),
        ("tools.Progress", "tools.output.ToolProgress"),
        ("tools.Tell", "tools.output.ProgressCallback"),
        ("tools.builtin.BUILTIN", "tools.built_in.BUILT_IN_NAMES"),
        ("tools.builtin.builtin", "tools.built_in.built_in_tool"),
        ("tools.definition.mark", "tools.definition.attach_tool"),
        ("tools.definition.origin_of", "tools.definition.function_origin"),
        ("tools.edit.edit", "tools.built_in.edit.edit"),
        ("tools.remember", "tools.results.tracebacks.remember_for_debugger"),
        ("tools.results.forms", "tools.results.result.output_and_display"),
        ("tools.show.show", "tools.built_in.show_file.show_file"),
    ],
)
def test_a_former_name_leads_to_the_same_object(former: str, now: str) -> None:
    module, _, name = f"toolcall_nb.{former}".rpartition(".")
    home, _, new_name = f"toolcall_nb.{now}".rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"{name} is now"):
        assert getattr(import_module(module), name) is getattr(import_module(home), new_name)
