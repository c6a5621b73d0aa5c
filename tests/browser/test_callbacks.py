"""Runs in a widget's callback: a person has just used the widget, so runs are live, and calls can be approved there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.browser import Notebook
from tests.browser.conftest import Lab

_CHAT = """%%toolchat --model mock:text --approve ask --speed 0
Hello"""
_BUTTON = """import ipywidgets
from toolcall_nb import show

chat.model, chat.speed = scripted, None
button, out = ipywidgets.Button(description="Ask"), ipywidgets.Output()

def ask(_):
    with out:
        {act}

button.on_click(ask)
ipywidgets.VBox([button, out])
"""
_SHOW = 'show(chat.stream("What is the weather in Lisbon?"))'
_SEND = 'print(chat.send("What is the weather in Lisbon?").text)'
_INTERACT = """import ipywidgets
from toolcall_nb import show

chat.model, chat.speed = scripted, None
@ipywidgets.interact_manual(city=["Lisbon", "Oslo"])
def ask(city):
    show(chat.stream(f"What is the weather in {city}?"))
"""


def opened(lab: Lab, cell: str) -> tuple[Notebook, Locator]:
    """Opens a notebook and clicks the button that this cell shows; returns the notebook and the cell's output."""
    notebook = lab.page(
        lab.write(_CHAT, cell, "print([str(call.error or call.approval.reason) for call in chat.calls.values()])")
    ).open()
    for number in range(3):
        notebook.run(number)
    for name in ("call", "input"):
        notebook.pass_gate(name)
    output = notebook.output(2)
    output.locator("button.jupyter-button").click()
    return notebook, output


def panel(output: Locator) -> Locator:
    return output.get_by_role("group", name="May weather run?")


def finish(notebook: Notebook) -> None:
    for name in ("tool", "answer", "rest", "end"):
        notebook.pass_gate(name)


@pytest.mark.parametrize(
    "cell",
    [_BUTTON.format(act=_SHOW), pytest.param(_INTERACT, marks=pytest.mark.thorough)],
    ids=["button", "interact"],
)
def test_a_call_is_approved_and_a_run_is_stopped_in_a_widgets_callback(lab: Lab, cell: str) -> None:
    notebook, output = opened(lab, cell)
    panel(output).get_by_role("button", name="Approve", exact=True).click()
    expect(output.locator(".tc-state")).to_have_text("Running")
    output.get_by_role("button", name="Stop").click()
    expect(output.locator(".tc-state")).to_have_text("Interrupted")
    expect(output.locator(".tc-voice")).to_have_count(0)
    output.locator("button.jupyter-button").click()
    expect(output.locator(".tc-state").last).to_have_text("Awaiting approval")
    notebook.picture(2, "callback", ("Light",))
    panel(output).scroll_into_view_if_needed()
    panel(output).get_by_role("button", name="Approve", exact=True).click()
    finish(notebook)
    expect(output).to_contain_text("Paragraph 11")
    expect(output.locator(".tc-voice")).to_have_count(0)
    expect(output.locator(".tc-state").last).to_have_text("Completed")


@pytest.mark.thorough
def test_a_chat_that_shows_nothing_asks_in_a_card_of_its_own(lab: Lab) -> None:
    notebook, output = opened(lab, _BUTTON.format(act=_SEND))
    notebook.picture(2, "callback-question", ("Light",))
    panel(output).get_by_role("button", name="Approve", exact=True).click()
    finish(notebook)
    expect(output).to_contain_text("Paragraph 11")
    expect(output.locator(".tc-voice")).to_have_count(0)
    expect(output.locator(".tc-call")).to_have_count(1)


@pytest.mark.thorough
def test_a_call_of_a_callback_whose_output_is_shown_nowhere_is_denied_with_advice(lab: Lab) -> None:
    notebook, _ = opened(lab, _BUTTON.format(act=_SEND).replace("with out:", "if True:"))
    for name in ("answer", "rest", "end"):
        notebook.pass_gate(name)
    notebook.run(3)
    expect(notebook.output(3)).to_contain_text("show the run in an Output widget")
