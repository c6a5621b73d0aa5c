"""Checks what a page shows and saves after a fault, and performs the fault tests' common steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser.broken_widgets import BROKEN, WIDGET
from tests.browser.browser import PATIENCE, Notebook
from tests.browser.scripted_turn import ASK

__all__ = [
    "REMAINING_GATES",
    "STATIC",
    "assert_complete",
    "assert_cut_off",
    "assert_inactive",
    "choose_in_dialog",
    "pass_gates",
    "press_in_question",
    "question_panel",
    "saved_output",
    "scripted_cell",
    "start_command",
    "stored_output",
    "wait_until",
]

STATIC = {"text/html", "text/markdown", "text/plain"}
REMAINING_GATES = ("tool", "answer", "rest", "end")
HOSTILE = "<img src=x onerror='window.hit = 1'><script>window.hit = 2</script>"


def scripted_cell(options: str = "") -> str:
    """Returns the cell of the scripted turn, with a hostile prompt."""
    return f"{ASK.format(options=options)} {HOSTILE}"


def pass_gates(notebook: Notebook, *gates: str) -> None:
    for name in gates:
        notebook.pass_gate(name)


def start_command(notebook: Notebook, command: str) -> None:
    """Starts one of JupyterLab's commands without waiting for its end, since it may open a dialog."""
    notebook.page.evaluate("name => void window.jupyterapp.commands.execute(name)", command)


def choose_in_dialog(notebook: Notebook, button: str) -> None:
    """Clicks a button of JupyterLab's open dialog."""
    notebook.page.locator(".jp-Dialog").get_by_role("button", name=button).click()
    expect(notebook.page.locator(".jp-Dialog")).to_have_count(0)


def wait_until(notebook: Notebook, is_so: Callable[[], bool]) -> None:
    """Waits for a condition that the page does not show."""
    while not is_so():
        notebook.page.wait_for_timeout(50)


def question_panel(within: Locator) -> Locator:
    return within.get_by_role("group", name="May weather run?")


def press_in_question(within: Locator, name: str) -> None:
    """Clicks a button of the question after scrolling all of it into view."""
    question_panel(within).scroll_into_view_if_needed()
    question_panel(within).get_by_role("button", name=name, exact=True).click()


def assert_inactive(output: Locator) -> None:
    """Asserts that the output shows no running state, no question, no broken widget and no effect of hostile text."""
    expect(output.locator(".tc-stop:visible, .tc-ask, .tc-busy, .tc-live, [aria-live]")).to_have_count(0)
    assert [word for word in BROKEN if word in output.inner_text()] == []
    assert output.locator("img").count() == 0
    assert output.page.evaluate("() => window.hit ?? null") is None


def saved_output(notebook: Notebook, number: int) -> Any:
    """Saves the notebook and returns the data of the cell's only output in the file."""
    notebook.save()
    return stored_output(notebook, number)


def stored_output(notebook: Notebook, number: int) -> Any:
    """Returns the data of the cell's only output in the saved file."""
    file = notebook.server.saved(notebook.name)
    assert WIDGET not in str(file)
    assert "widgets" not in file.metadata
    (output,) = file.cells[number].outputs
    return output.data


def assert_complete(notebook: Notebook, number: int) -> None:
    """Asserts that the page shows the complete run, without duplicates, and saves it."""
    output = notebook.output(number)
    expect(output).to_contain_text("Paragraph 11", timeout=2 * PATIENCE)
    assert_inactive(output)
    expect(output.locator(".tc-call")).to_have_count(1)
    expect(output.locator(".tc-state")).to_have_text("Completed")
    assert output.inner_text().count("I will look at the") == 1
    data = saved_output(notebook, number)
    assert set(data) == STATIC
    assert "Paragraph 11" in data["text/markdown"]


def assert_cut_off(notebook: Notebook, number: int, *texts: str) -> None:
    """Asserts that the page shows and saves the part of the run that it received, marked as cut off."""
    output = notebook.output(number)
    expect(output.locator(".tc-foot")).to_contain_text("Cut off: the kernel is gone")
    assert_inactive(output)
    expect(output.locator(".tc-state")).to_have_text("Interrupted")
    data = saved_output(notebook, number)
    assert set(data) == {"text/html", "text/plain"}
    for text in (*texts, "Cut off: the kernel is gone"):
        assert text in data["text/plain"]
        assert text in output.inner_text()
    assert data["text/html"].startswith("<!-- Run: cut off -->\n<div ")
    assert HOSTILE in data["text/plain"]
    assert "<script" not in data["text/html"]
    assert "<img" not in data["text/html"]
    assert not re.search(r'class="tc-time">[^<]', data["text/html"])  # saved outputs contain no times
