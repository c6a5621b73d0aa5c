"""In a busy page, JupyterLab and anywidget give up after two seconds; the run is shown nevertheless."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.browser import Notebook
from tests.browser.conftest import Lab
from tests.browser.scripted_turn import ASK

_LATE_MODULE = """() => {
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    AbortSignal.timeout = (ms) => timeout(ms === 2000 ? 0 : ms);
}"""
"""Makes anywidget's timeout for loading a module, two seconds, expire at once."""

_LATE_MODEL = """() => {
    const later = window.setTimeout.bind(window);
    window.setTimeout = (act, ms, ...more) => later(act, ms === 100 ? 5000 : ms, ...more);
}"""
"""Delays JupyterLab's search for a model, which it repeats each tenth of a second for two seconds."""

GATES = ("call", "input", "tool", "answer", "rest", "end")


def add_script(lab: Lab, script: str) -> None:
    """Adds a script that JupyterLab's pages run first from now on."""
    lab.context.add_init_script(f"({script})()")


def assert_goes_on(notebook: Notebook) -> None:
    """Asserts that the view shows the messages that the kernel sends from now on."""
    output = notebook.output(1)
    expect(output).to_contain_text("I will look at the forecast.")
    notebook.pass_gate("call")
    expect(output.locator(".tc-call")).to_contain_text("city: Lis")
    for name in GATES[1:]:
        notebook.pass_gate(name)
    expect(output).to_contain_text("Paragraph 11")
    expect(output.locator("[aria-live]")).to_have_count(0)


@pytest.mark.thorough
def test_a_run_is_live_although_anywidget_has_given_up_loading_its_module(lab_apart: Lab) -> None:
    add_script(lab_apart, _LATE_MODULE)
    notebook = lab_apart.open_scripted_notebook()
    notebook.start(1)
    assert_goes_on(notebook)
    notebook.wait_until_run(1)


@pytest.mark.thorough
def test_a_reloaded_page_shows_a_run_although_jupyterlab_has_found_no_model_in_time(lab_apart: Lab) -> None:
    notebook = lab_apart.open_scripted_notebook("--background")
    notebook.run(1)
    expect(notebook.output(1)).to_contain_text("I will look at the forecast.")
    notebook.save()
    add_script(lab_apart, _LATE_MODEL)
    notebook.open(kernel=False)
    expect(notebook.output(1)).to_contain_text("model not found")
    assert_goes_on(notebook)
    assert ASK.partition("\n")[0].format(options="--background") in notebook.cell(1).inner_text()
