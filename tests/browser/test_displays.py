"""A tool's displays are shown in its card in the real JupyterLab: while the tool runs, and in the saved notebook."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab

_TOOLS = """
import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import display

GATE = Path(GATE % "shown")

@tool
def plots() -> None:
    '''Draws a figure, and returns nothing.'''
    plt.plot([1, 3, 2])
    plt.show()
    while not GATE.exists():
        time.sleep(0.01)

@tool
def displays() -> str:
    '''Displays a table, and returns a sentence.'''
    display(pd.DataFrame({"day": ["Mon", "Tue"], "high": [24.1, 25.6]}))
    while not GATE.exists():
        time.sleep(0.01)
    return "two days"

class Calling:
    name = "calling"

    def __init__(self, tool):
        self._tool = tool

    def stream(self, messages, tools):
        if messages[-1].role != "assistant":
            yield ev.ToolInputAvailable("c", self._tool, {})
        else:
            yield from (ev.TextStart("t"), ev.TextDelta("t", "Done."), ev.TextEnd("t"))

plotting, displaying = Calling("plots"), Calling("displays")
"""


@pytest.mark.parametrize(
    ("model", "shown"), [pytest.param("plotting", "img", marks=pytest.mark.thorough), ("displaying", "table")]
)
def test_a_tools_displays_are_shown_in_its_open_card_live_and_saved(lab: Lab, model: str, shown: str) -> None:
    notebook = lab.page(lab.write(_TOOLS, f"%%toolchat --model {model}\nShow me.")).open()
    notebook.run(0)
    notebook.run(1)
    output = notebook.output(2)
    notebook.start(2)
    expect(output.locator(".tc-state")).to_have_text("Running")
    expect(output.locator(f".tc-call {shown}")).to_be_visible()
    notebook.pass_gate("shown")
    notebook.wait_until_run(2)
    expect(output.locator(".tc-call details").first).to_have_attribute("open", "")
    expect(output.locator(f".tc-call {shown}")).to_be_visible()
    notebook.save()
    (saved,) = lab.server.saved(notebook.name).cells[2].outputs
    assert f"<{shown}" in saved.data["text/html"]
