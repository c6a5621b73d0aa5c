"""A view that the page or the kernel closes during a run: the run continues and its output is correct."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.browser import Notebook
from tests.browser.conftest import Lab
from tests.browser.counting_model import (
    OWN_CELLS,
    RUN,
    SHOW,
    assert_all_numbers,
    numbers,
    progress,
    start_counting_turn,
    wait_for,
)
from tests.browser.fault_checks import press_in_question
from tests.browser.scripted_turn import ASK

VIEW = "application/vnd.jupyter.widget-view+json"
STATIC = {"text/html", "text/markdown", "text/plain"}


def run_commands(notebook: Notebook, *commands: str) -> None:
    """Runs JupyterLab's commands on the cell that runs the turn."""
    notebook.page.evaluate(
        """async ([cell, names]) => {
            const app = window.jupyterapp;
            app.shell.currentWidget.content.activeCellIndex = cell;
            for (const name of names) await app.commands.execute(name);
        }""",
        [RUN, commands],
    )


def assert_show_displays_everything(notebook: Notebook, cell: int) -> None:
    """Asserts that ``%toolchat show`` displays the whole run again after its end."""
    notebook.run(cell - 1)
    count, calls, _ = map(int, notebook.output(cell - 1).inner_text().split())
    assert count > 0
    notebook.run(cell)
    assert_all_numbers(notebook.output(cell), count, calls)


def saved(lab: Lab, notebook: Notebook) -> list[set[str]]:
    """Saves the notebook; returns the MIME types of each rich output in it."""
    notebook.save()
    cells = lab.server.saved(notebook.name).cells
    return [set(output.data) for cell in cells for output in cell.get("outputs", ()) if "data" in output]


@pytest.mark.thorough
def test_a_run_whose_output_is_deleted_continues_and_is_shown_again_on_request(lab: Lab) -> None:
    notebook = start_counting_turn(lab)
    run_commands(notebook, "notebook:delete-cell")
    expect(notebook.page.locator(".tc")).to_have_count(0)
    notebook.pass_gate("end")
    assert_show_displays_everything(notebook, SHOW - 1)
    assert saved(lab, notebook) == [STATIC]  # the output of `%toolchat show`, and no view without a model


@pytest.mark.parametrize(
    ("commands", "places"),
    [
        pytest.param(["cut-cell", "paste-cell-above"], [RUN], marks=pytest.mark.thorough),
        (["copy-cell", "paste-cell-below"], [RUN, RUN + 1]),
    ],
)
def test_an_output_that_is_moved_or_copied_during_a_run_becomes_static_in_each_place(
    lab: Lab, commands: list[str], places: list[int]
) -> None:
    notebook = start_counting_turn(lab)
    run_commands(notebook, *(f"notebook:{command}" for command in commands))
    for place in places:
        expect(notebook.output(place)).to_contain_text("20 21 22")
    notebook.pass_gate("end")
    for place in places:
        expect(notebook.output(place).locator("[aria-live]")).to_have_count(0)
        said = numbers(notebook.output(place))
        assert_all_numbers(notebook.output(place), len(said), len(said) // 100)
    assert saved(lab, notebook) == [STATIC] * len(places)


_CLOSE = "import ipywidgets; ipywidgets.Widget.close_all()"
_CLOSE_BY_PAGE = """subshell => {
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    for (const comm of kernel._comms.values()) {
        if (subshell !== "its own") comm._subshellId = subshell;
        comm.close();
    }
}"""
"""JupyterLab requests a subshell; until the reply, it sends messages to the main shell, where the cell is running.

After the comms are closed it deletes the subshell, through a channel that may be faster than theirs.
"""


def assert_goes_on_live(notebook: Notebook) -> None:
    output = notebook.output(RUN)
    before = len(numbers(output))
    wait_for(notebook, lambda: len(numbers(output)) > before + 300, "the live view is back")
    expect(output.locator("[aria-live]")).to_have_count(1)
    expect(output).not_to_contain_text("closed")
    expect(output.get_by_role("button", name="Stop")).to_have_count(1)


@pytest.mark.parametrize(
    "subshell", ["its own", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("one that is gone", None))]
)
def test_a_view_that_the_page_closes_during_a_run_is_opened_again(lab: Lab, subshell: str | None) -> None:
    notebook = start_counting_turn(lab)
    notebook.page.evaluate(_CLOSE_BY_PAGE, subshell)
    assert_goes_on_live(notebook)
    notebook.pass_gate("end")
    expect(notebook.output(RUN)).to_contain_text("The end.")
    count, calls, _ = progress(notebook)
    assert_all_numbers(notebook.output(RUN), count, calls)


@pytest.mark.thorough
def test_a_view_is_opened_again_after_another_cell_closes_all_widgets_and_deletes_all_variables(lab: Lab) -> None:
    notebook = start_counting_turn(lab, "--background", f"{_CLOSE}\n%reset -f")
    notebook.run(OWN_CELLS)
    assert_goes_on_live(notebook)
    notebook.pass_gate("end")
    expect(notebook.output(RUN)).to_contain_text("The end.")
    said = numbers(notebook.output(RUN))
    for cell in (RUN, SHOW):
        notebook.run(SHOW)
        assert_all_numbers(notebook.output(cell), len(said), len(said) // 100)


@pytest.mark.thorough
def test_a_view_that_is_closed_repeatedly_is_replaced_by_the_static_form_at_the_end(lab: Lab) -> None:
    notebook = start_counting_turn(lab, act=_CLOSE)
    notebook.page.wait_for_timeout(2000)  # some more calls
    notebook.pass_gate("end")
    notebook.wait_until_run(RUN)
    count, calls, _ = progress(notebook)
    assert calls > 4
    assert_all_numbers(notebook.output(RUN), count, calls)


def test_a_view_that_is_closed_while_it_asks_for_approval_asks_again(lab: Lab) -> None:
    notebook = lab.open_scripted_notebook("--approve ask")
    output = notebook.output(1)
    for name in ("call", "input", "tool", "answer", "rest", "end"):
        notebook.pass_gate(name)
    notebook.start(1)
    expect(output.get_by_role("button", name="Approve", exact=True)).to_have_count(1)
    notebook.page.evaluate(_CLOSE_BY_PAGE, "its own")
    expect(output).not_to_contain_text("closed")
    press_in_question(output, "Approve")
    notebook.wait_until_run(1)
    expect(output.locator(".tc-call .tc-state")).to_have_text("Completed")


# A page that cannot show a run


def asking_without_a_front_end(lab: Lab, options: str, missing: str = "anywidget") -> Notebook:
    """Starts a run with a call that needs approval, in a page that cannot load the widgets' front end."""
    lab.context.route(re.compile(f"/lab/extensions/{missing}/"), lambda route: route.abort())
    patience = "import toolcall_nb.notebook.live_display as live; live.NO_PAGE_AFTER = 1.0"
    notebook = lab.page(lab.write(patience, ASK.format(options=f"--approve ask {options}"), "print('below')")).open()
    for name in ("call", "input", "tool", "answer", "rest", "end"):
        notebook.pass_gate(name)
    notebook.run(0)
    notebook.run(1)
    notebook.start(2)
    return notebook


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("missing", "said"),
    [
        pytest.param("anywidget", "javascript error", marks=pytest.mark.thorough),  # JupyterLab's own
        ("@jupyter-widgets", "packages jupyterlab_widgets and anywidget"),
    ],
)
def test_a_page_without_the_front_end_says_so_asks_through_the_kernels_input_and_shows_the_static_form(
    lab_apart: Lab, missing: str, said: str
) -> None:
    notebook = asking_without_a_front_end(lab_apart, "", missing)
    output = notebook.output(2)
    expect(output).to_contain_text(said)
    keys = notebook.page.locator(".jp-Stdin-input")
    expect(keys).to_have_count(1)
    expect(output).to_contain_text("weather")
    expect(output).to_contain_text("Lisbon")
    keys.fill("y")
    keys.press("Enter")
    notebook.wait_until_run(2)
    expect(output).to_contain_text("Paragraph 11")
    expect(output.locator(".tc-call .tc-state")).to_have_text("Completed")


@pytest.mark.thorough
def test_a_background_run_without_a_page_says_that_it_cannot_ask_and_can_be_stopped(lab_apart: Lab) -> None:
    notebook = asking_without_a_front_end(lab_apart, "--background")
    notebook.wait_until_run(2)
    output = notebook.output(2)
    expect(output).to_contain_text("weather asks whether it may run, and no page has answered that could show it.")
    notebook.page.evaluate(
        "code => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({ code }).done",
        "get_ipython().run_line_magic('toolchat', 'stop')",
    )
    expect(output).to_contain_text("Stopped")
