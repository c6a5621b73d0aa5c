"""What a page must show after a fault, and what it saves; with the small things that the tests of faults do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser.browser import PATIENCE, Notebook
from tests.browser.script import ASK
from tests.browser.test_saved import BROKEN, WIDGET

__all__ = [
    "REST",
    "STATIC",
    "ask",
    "assert_cut_off",
    "assert_rests",
    "assert_whole",
    "begin",
    "choose",
    "go",
    "panel",
    "press",
    "saved_output",
    "stored_output",
    "wait_until",
]

STATIC = {"text/html", "text/markdown", "text/plain"}
REST = ("tool", "answer", "rest", "end")
HOSTILE = "<img src=x onerror='window.hit = 1'><script>window.hit = 2</script>"


def ask(options: str = "") -> str:
    """The scripted turn; what it is asked is hostile."""
    return f"{ASK.format(options=options)} {HOSTILE}"


def go(notebook: Notebook, *gates: str) -> None:
    for name in gates:
        notebook.pass_gate(name)


def begin(notebook: Notebook, command: str) -> None:
    """A command of JupyterLab that may ask something: its end is not waited for."""
    notebook.page.evaluate("name => void window.jupyterapp.commands.execute(name)", command)


def choose(notebook: Notebook, button: str) -> None:
    """In the dialogue that JupyterLab shows."""
    notebook.page.locator(".jp-Dialog").get_by_role("button", name=button).click()
    expect(notebook.page.locator(".jp-Dialog")).to_have_count(0)


def wait_until(notebook: Notebook, is_so: Callable[[], bool]) -> None:
    """Something that no page tells."""
    while not is_so():
        notebook.page.wait_for_timeout(50)


def panel(within: Locator) -> Locator:
    return within.get_by_role("group", name="May weather run?")


def press(within: Locator, name: str) -> None:
    """Click a button of the question, once all of it was in view."""
    panel(within).scroll_into_view_if_needed()
    panel(within).get_by_role("button", name=name, exact=True).click()


def assert_rests(output: Locator) -> None:
    """It neither goes on, nor waits for anybody, nor stands for what is not there."""
    expect(output.locator(".tc-stop:visible, .tc-ask, .tc-busy, .tc-live, [aria-live]")).to_have_count(0)
    assert [word for word in BROKEN if word in output.inner_text()] == []
    assert output.locator("img").count() == 0
    assert output.page.evaluate("() => window.hit ?? null") is None


def saved_output(notebook: Notebook, number: int) -> Any:
    """The one output of the cell, as it is in the file when the page has saved it."""
    notebook.save()
    return stored_output(notebook, number)


def stored_output(notebook: Notebook, number: int) -> Any:
    """The same, of what was saved before."""
    file = notebook.server.saved(notebook.name)
    assert WIDGET not in str(file)
    assert "widgets" not in file.metadata
    (output,) = file.cells[number].outputs
    return output.data


def assert_whole(notebook: Notebook, number: int) -> None:
    """The run's end is shown, once, and is what the page saves."""
    output = notebook.output(number)
    expect(output).to_contain_text("Paragraph 11", timeout=2 * PATIENCE)
    assert_rests(output)
    expect(output.locator(".tc-call")).to_have_count(1)
    expect(output.locator(".tc-state")).to_have_text("Completed")
    assert output.inner_text().count("I will look at the") == 1
    data = saved_output(notebook, number)
    assert set(data) == STATIC
    assert "Paragraph 11" in data["text/markdown"]


def assert_cut_off(notebook: Notebook, number: int, *texts: str) -> None:
    """What was known is shown and saved, and that it is not all."""
    output = notebook.output(number)
    expect(output.locator(".tc-foot")).to_contain_text("Cut off: the kernel is gone")
    assert_rests(output)
    expect(output.locator(".tc-state")).to_have_text("Interrupted")
    data = saved_output(notebook, number)
    assert set(data) == {"text/html", "text/plain"}
    for text in (*texts, "Cut off: the kernel is gone"):
        assert text in data["text/plain"]
        assert text in output.inner_text()
    assert HOSTILE in data["text/plain"]
    assert "<script" not in data["text/html"]
    assert "<img" not in data["text/html"]
    assert not re.search(r'class="tc-time">[^<]', data["text/html"])  # the same each time, as any saved output
