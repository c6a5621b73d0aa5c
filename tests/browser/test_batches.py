"""The live table of a batch in the real JupyterLab: progress, transcripts, Stop, and what the saved notebook shows."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Lab

_SETUP = """
from toolcall_nb import run_many

GATE = Path(GATE % "answers")

def slow(messages):
    if "slow" in messages[-1]["content"]:
        yield "I am"
        while not GATE.exists():
            time.sleep(0.01)
    yield f"Answer to <b>{messages[-1]['content']}</b>."
"""
_RUN = """
runs = run_many(["quick", "slow", "also slow", "last"], models={"small": slow}, workers=2)
runs
"""


def test_a_batch_shows_its_rows_opens_transcripts_while_it_runs_and_can_be_stopped(lab: Lab) -> None:
    notebook = lab.page(lab.write(_SETUP, _RUN, "print(len(runs), [row.state.value for row in runs.rows])")).open()
    notebook.run(0)
    notebook.run(1)
    output = notebook.output(2)
    notebook.start(2)
    expect(output.locator("tbody .tc-state")).to_have_text(["done", "running", "running", "waiting"])
    output.locator("details[data-row='0'] summary").first.click()
    expect(output.locator("details[data-row='0']")).to_contain_text("Answer to")
    notebook.picture(2, "batch-live")
    output.get_by_role("button", name="Stop").click()
    expect(output.locator("tbody .tc-state")).to_have_text(["done", "stopped", "stopped", "stopped"])
    expect(output.locator("button.tc-stop")).to_have_count(0)
    notebook.wait_until_run(2)
    expect(output.locator("table.tc-batch")).to_have_count(1)  # the value of the cell is not a second table
    output.locator("details[data-row='0'] > summary").click()
    expect(output.locator("details[data-row='0']")).to_contain_text("Answer to")
    notebook.picture(2, "batch-static")
    notebook.run(3)
    expect(notebook.output(3)).to_have_text("1 ['done', 'stopped', 'stopped', 'stopped']")
