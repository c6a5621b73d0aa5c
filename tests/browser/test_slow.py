"""A page that is too busy to be in time: what JupyterLab or anywidget then gives up for good is shown nevertheless."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.browser import Notebook
from tests.browser.conftest import Lab
from tests.browser.script import ASK

_LATE_MODULE = """() => {
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    AbortSignal.timeout = (ms) => timeout(ms === 2000 ? 0 : ms);
}"""
"""anywidget gives a module two seconds to be there."""

_LATE_MODEL = """() => {
    const later = window.setTimeout.bind(window);
    window.setTimeout = (act, ms, ...more) => later(act, ms === 100 ? 5000 : ms, ...more);
}"""
"""JupyterLab looks for a model each tenth of a second, for two seconds; before the last look the page is busy."""

GATES = ("call", "input", "tool", "answer", "rest", "end")


def slow(lab: Lab, script: str) -> None:
    """What JupyterLab's pages do from now on before anything else."""
    lab.context.add_init_script(f"({script})()")


def assert_goes_on(notebook: Notebook) -> None:
    """What the kernel tells after the view is there is seen in it."""
    output = notebook.output(1)
    expect(output).to_contain_text("I will look at the forecast.")
    notebook.pass_gate("call")
    expect(output.locator(".tc-call")).to_contain_text("city: Lis")
    for name in GATES[1:]:
        notebook.pass_gate(name)
    expect(output).to_contain_text("Paragraph 11")
    expect(output.locator("[aria-live]")).to_have_count(0)


@pytest.mark.thorough
def test_a_run_is_live_where_anywidget_has_given_its_module_up(lab_apart: Lab) -> None:
    slow(lab_apart, _LATE_MODULE)
    notebook = lab_apart.asking()
    notebook.start(1)
    assert_goes_on(notebook)
    notebook.wait_until_run(1)


@pytest.mark.thorough
def test_a_reloaded_page_shows_a_run_for_which_jupyterlab_has_found_no_model_in_time(lab_apart: Lab) -> None:
    notebook = lab_apart.asking("--background")
    notebook.run(1)
    expect(notebook.output(1)).to_contain_text("I will look at the forecast.")
    notebook.save()
    slow(lab_apart, _LATE_MODEL)
    notebook.open(kernel=False)
    expect(notebook.output(1)).to_contain_text("model not found")
    assert_goes_on(notebook)
    assert ASK.partition("\n")[0].format(options="--background") in notebook.cell(1).inner_text()
