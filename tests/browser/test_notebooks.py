"""The project's own notebooks in the real JupyterLab: "Run All Cells" reaches the last cell."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.support.stored_outputs import NOTEBOOKS, read


@pytest.mark.parametrize(
    "path",
    # The others run only in `./dev test --all`; tests/project/test_notebooks.py compares their outputs.
    [pytest.param(path, marks=[] if path.stem == "tour" else pytest.mark.thorough, id=path.stem) for path in NOTEBOOKS],
)
def test_run_all_reaches_the_last_cell_if_a_person_answers(lab: Lab, path: Path) -> None:
    shutil.copy(path, lab.server.folder / path.name)
    notebook = lab.page(path.name).open()
    notebook.command("notebook:run-all-cells")
    kinds = [cell.cell_type for cell in read(path).cells]
    last = max(number for number, kind in enumerate(kinds) if kind == "code")
    notebook.command("notebook:move-cursor-down")
    notebook.page.wait_for_function(
        """last => {
            const cells = window.jupyterapp.shell.currentWidget.content.widgets;
            return cells.some((cell) => cell.model.sharedModel.outputs?.some((each) => each.output_type === "error"))
                || (cells[last].model.executionCount !== null && cells[last].model.executionState !== "running");
        }""",
        arg=last,
        timeout=120_000,
    )
    notebook.wait_until_idle()
    problems = notebook.page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.content.widgets.flatMap((cell, number) =>
            cell.model.type !== "code" ? [] :
            cell.model.executionCount === null ? [`cell ${number} did not run`] :
            cell.model.sharedModel.outputs.filter((each) => each.output_type === "error" || each.name === "stderr")
                .map((each) => `cell ${number}: ${JSON.stringify(each)}`))"""
    )
    assert problems == []


@pytest.mark.thorough
def test_after_run_all_the_tools_notebook_still_asks_and_can_be_answered(lab: Lab) -> None:
    path = next(path for path in NOTEBOOKS if path.stem == "tools")
    shutil.copy(path, lab.server.folder / "asked.ipynb")
    notebook = lab.page("asked.ipynb").open()
    notebook.command("notebook:run-all-cells")
    (number,) = [
        number for number, cell in enumerate(read(path).cells) if "--approve ask" in cell.source.split("\n")[0]
    ]
    notebook.page.evaluate("number => window.jupyterapp.shell.currentWidget.content.scrollToItem(number)", number)
    output = notebook.output(number)
    output.locator(".tc-ask").scroll_into_view_if_needed()
    more = output.get_by_role("button", name="Show the next lines")
    approve = output.get_by_role("button", name="Approve", exact=True)
    while approve.get_attribute("aria-disabled") == "true":
        notebook.page.wait_for_timeout(200)
        if more.is_visible():
            more.click()
    approve.click()
    expect(output.locator(".tc-state").first).to_have_text(re.compile("Completed"))
