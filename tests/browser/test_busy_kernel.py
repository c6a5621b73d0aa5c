"""A kernel that takes no clicks while it is busy: buttons that would do nothing are not shown, and a line says how."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.browser.scripted_turn import ASK
from tests.support.kernels import WITHOUT_EARLY_MESSAGES

_HINT = "To stop, interrupt the kernel (in JupyterLab: I, I)"
_BATCH = """from toolcall_nb import run_many
from toolcall_nb.notebook import batch_widget
batch_widget.EarlyMessages = widget.EarlyMessages

def slow(messages):
    gate("answers")
    yield "Well."

run_many(["one"], models={"small": slow})
"""


@pytest.mark.thorough
def test_the_line_below_a_run_says_how_to_stop_it_and_that_works(lab: Lab) -> None:
    notebook = lab.page(lab.write(WITHOUT_EARLY_MESSAGES, ASK.format(options=""))).open()
    notebook.run(0)
    notebook.run(1)
    output = notebook.output(2)
    notebook.start(2)
    for name in ("call", "input"):
        notebook.pass_gate(name)
    expect(output.locator(".tc-state")).to_have_text("Running")
    expect(output.locator(".tc-foot")).to_contain_text(_HINT)
    expect(output.get_by_role("button", name="Stop")).to_have_count(0)
    notebook.picture(2, "stop-hint", ("Light",))
    notebook.page.keyboard.press("Escape")
    notebook.page.keyboard.press("i")
    notebook.page.keyboard.press("i")
    notebook.wait_until_run(2)
    expect(output.locator(".tc-state")).to_have_text("Interrupted")
    expect(output).not_to_contain_text(_HINT)


@pytest.mark.thorough
def test_a_batch_says_how_to_stop_it(lab: Lab) -> None:
    notebook = lab.page(lab.write(WITHOUT_EARLY_MESSAGES, _BATCH)).open()
    notebook.run(0)
    notebook.run(1)
    notebook.start(2)
    expect(notebook.output(2)).to_contain_text(_HINT)
    expect(notebook.output(2).get_by_role("button", name="Stop")).to_have_count(0)
    notebook.pass_gate("answers")
    notebook.wait_until_run(2)
    expect(notebook.output(2)).not_to_contain_text(_HINT)
