"""`show` of streams in the real JupyterLab: live while they arrive, also after the cell has ended."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.browser import Notebook
from tests.browser.conftest import Lab

_HELD = """
import asyncio
from toolcall_nb import show

async def later():
    yield "I have asked the station. "
    await asyncio.to_thread(gate, "rest")
    yield "It is **sunny**."

def now():
    yield "I have asked the station. "
    gate("rest")
    yield "It is **sunny**."
"""


def open_notebook(lab: Lab, *cells: str) -> Notebook:
    """Opens and sets up a notebook; ``cells`` start at cell 2."""
    notebook = lab.page(lab.write(_HELD, *cells)).open()
    notebook.run(0)
    notebook.run(1)
    return notebook


@pytest.mark.thorough
def test_a_stream_is_live_while_it_arrives_and_static_when_it_has_ended(lab: Lab) -> None:
    notebook = open_notebook(lab, "show(now())")
    output = notebook.output(2)
    notebook.start(2)
    expect(output).to_contain_text("I have asked the station.")
    expect(output.locator(".tc-stop")).to_be_visible()
    notebook.pass_gate("rest")
    notebook.wait_until_run(2)
    expect(output.locator(".tc-stop")).to_have_count(0)
    expect(output.locator(".tc-text strong")).to_have_text("sunny")
    expect(output.locator(".tc")).to_have_count(1)


@pytest.mark.thorough
def test_an_asynchronous_stream_continues_in_its_own_output_while_other_cells_run(lab: Lab) -> None:
    notebook = open_notebook(lab, "show(later())", "print('meanwhile')")
    output = notebook.output(2)
    notebook.run(2)
    expect(output).to_contain_text("I have asked the station.")
    notebook.run(3)
    expect(notebook.output(3)).to_have_text(re.compile("meanwhile"))
    notebook.pass_gate("rest")
    expect(output.locator(".tc-text strong")).to_have_text("sunny")
    expect(output.locator(".tc-stop")).to_have_count(0)
    expect(notebook.output(3)).to_have_text(re.compile(r"^\s*meanwhile\s*$"))


def test_stop_ends_a_stream_and_keeps_what_arrived_while_its_cell_runs_and_afterwards(lab: Lab) -> None:
    cells = ("shown = show(now())", "shown = await show(later())", "shown = show(later())")
    how = 2 + len(cells)
    notebook = open_notebook(lab, *cells, "print(shown.transcript.messages[-1].aborted); del shown")
    for cell in range(2, how):
        output = notebook.output(cell)
        notebook.start(cell)
        expect(output).to_contain_text("I have asked the station.")
        output.locator(".tc-stop").click()
        expect(output.locator(".tc-stop")).to_have_count(0)
        notebook.wait_until_run(cell)
        expect(output).to_contain_text("I have asked the station.")
        expect(output).not_to_contain_text("Traceback")
        notebook.run(how)
        expect(notebook.output(how)).to_have_text(re.compile("stopped|interrupted"))
