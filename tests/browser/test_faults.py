"""Reloads, second tabs, kernels and servers that are killed: what is shown afterwards is the truth."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browser import VIEWPORT, Notebook
from tests.browser.conftest import Lab
from tests.browser.faulty import kept_options, open_session, running_kernel
from tests.browser.jupyter import running_server
from tests.browser.remains import (
    REST,
    STATIC,
    ask,
    assert_cut_off,
    assert_rests,
    assert_whole,
    begin,
    choose,
    go,
    panel,
    press,
    saved_output,
    stored_output,
    wait_until,
)
from tests.browser.script import NEXT, setup

# Reloads


@pytest.mark.thorough
def test_a_page_reloaded_three_times_during_a_run_and_just_before_its_end_shows_all_of_it(lab: Lab) -> None:
    notebook = lab.page(lab.write(ask("--background --approve ask"))).open()
    notebook.run(0)
    notebook.run(1)
    go(notebook, "call")
    output = notebook.output(1)
    expect(output.locator(".tc-call")).to_contain_text("city: Lis")
    notebook.save()
    notebook.open(kernel=False)
    expect(output.locator(".tc-call")).to_contain_text("city: Lis")
    go(notebook, "input")
    expect(panel(output)).to_be_visible()
    notebook.open(kernel=False)
    press(output, "Approve")
    expect(output.locator(".tc-state")).to_have_text("Running")
    go(notebook, "tool", "answer")
    expect(output).to_contain_text("and dry.")
    go(notebook, "rest", "end")
    notebook.open(kernel=False)
    assert_whole(notebook, 1)


def test_a_page_reloaded_without_a_save_has_lost_the_output_and_show_brings_it_back(lab: Lab) -> None:
    notebook = lab.page(lab.write(ask(), "%toolchat show")).open()
    notebook.run(0)
    notebook.save()
    notebook.start(1)
    go(notebook, "call", "input")
    expect(notebook.output(1).locator(".tc-state")).to_have_text("Running")
    notebook.open(kernel=False)
    expect(notebook.output(1).locator(".jp-OutputArea-child")).to_have_count(0)
    go(notebook, *REST)
    notebook.wait_until_idle()
    notebook.run(2)
    expect(notebook.output(1).locator(".jp-OutputArea-child")).to_have_count(0)
    assert_whole(notebook, 2)


# Two pages


@pytest.mark.thorough
def test_two_pages_on_a_notebook_answer_open_and_end_as_one_and_each_saves_the_whole(
    lab: Lab, chromium: Browser
) -> None:
    first = lab.page(lab.write(ask("--background --approve ask"))).open()
    second = lab.page(first.name).open()
    first.run(0)
    first.run(1)
    go(first, "call", "input")
    expect(panel(first.output(1))).to_be_visible()
    # JupyterLab gives the second nothing to show, so nothing is false.
    expect(second.output(1).locator(".jp-OutputArea-child")).to_have_count(0)
    first.save()
    begin(second, "docmanager:reload")
    choose(second, "Reload")
    expect(panel(second.output(1))).to_be_visible()
    context = chromium.new_context(viewport=VIEWPORT)
    third = Notebook(lab.server, context, first.name).open(kernel=False)
    press(second.output(1), "Approve")
    for page in (first, second, third):
        expect(page.output(1).locator(".tc-state")).to_have_text("Running")
        expect(panel(page.output(1))).to_have_count(0)
    go(first, "tool")
    expect(third.output(1).locator(".tc-state")).to_have_text("Completed")
    third.output(1).locator(".tc-call summary").click()
    go(first, *REST)
    for page in (first, second, third):
        expect(page.output(1)).to_contain_text("Paragraph 11")
        expect(page.output(1).locator(".tc-call details")).to_have_attribute("open", "")
        assert_rests(page.output(1))
    assert_whole(first, 1)
    begin(second, "docmanager:save")
    choose(second, "Revert")  # the file has changed on disk
    assert_rests(second.output(1))
    begin(third, "docmanager:save")
    file = third.server.folder / third.name
    before = file.stat().st_mtime_ns
    choose(third, "Overwrite")
    wait_until(third, lambda: file.stat().st_mtime_ns != before)
    assert_rests(third.output(1))
    assert set(stored_output(third, 1)) == STATIC
    assert third.problems == []
    context.close()


@pytest.mark.thorough
def test_stop_in_a_page_that_was_opened_before_the_run_ends_a_cell_of_another_page(lab: Lab) -> None:
    first = lab.page(lab.write(ask())).open()
    second = lab.page(first.name).open()
    first.run(0)
    first.start(1)
    go(first, "call", "input")
    expect(first.output(1).locator(".tc-state")).to_have_text("Running")
    first.save()
    begin(second, "docmanager:reload")
    choose(second, "Reload")
    expect(second.output(1).locator(".tc-state")).to_have_text("Running")
    second.output(1).get_by_role("button", name="Stop").click()
    first.wait_until_run(1)
    for page in (first, second):
        expect(page.output(1).locator(".tc-state")).to_have_text("Interrupted")
        expect(page.output(1)).to_contain_text("Stopped")
        assert_rests(page.output(1))
    assert set(saved_output(first, 1)) == STATIC


# The server


_TELLING = """
answer = Scripted.answer

def telling(self):
    yield from answer(self)
    Path("over").touch()

Scripted.answer = telling
"""


@pytest.fixture
def apart(tmp_path: Path, chromium: Browser) -> Iterator[Notebook]:
    """A notebook that is open on a server of its own, with a kernel that outlives it."""
    cells = (f"{setup('apart.ipynb')}\n{_TELLING}", ask("--background"), ask())
    with running_server(tmp_path, kept_options(tmp_path)) as server:
        name = server.write("apart.ipynb", *cells)
        with running_kernel(tmp_path, server):
            open_session(server, name)
            context = chromium.new_context(viewport=VIEWPORT)
            yield Notebook(server, context, name).open()
            context.close()


def take_away_the_server(notebook: Notebook, number: int) -> None:
    """In the middle of the cell's call; the page says that it does not know, and has no button that does nothing."""
    output = notebook.output(number)
    expect(output.locator(".tc-state")).to_have_text("Running")
    notebook.server.kill()
    expect(output.locator(".tc-foot-status")).to_have_text("Not connected to the kernel: this may be old")
    expect(output.locator(".tc-stop:visible, .tc-busy, .tc-live")).to_have_count(0)
    expect(output.locator(".tc-state")).to_have_text("Running")


@pytest.mark.thorough
def test_a_server_that_is_killed_and_comes_back_under_a_run_costs_nothing_of_it(apart: Notebook) -> None:
    apart.run(0)
    apart.run(1)
    go(apart, "call", "input")
    take_away_the_server(apart, 1)
    go(apart, *REST)
    wait_until(apart, (apart.server.folder / "over").exists)
    apart.server.start()
    begin(apart, "notebook:reconnect-to-kernel")
    assert_whole(apart, 1)
    assert apart.output(1).locator(".tc-user").count() == 1

    for gate in ("input", *REST):
        (apart.server.folder / f"gate-{apart.name}-{gate}").unlink()
    apart.start(2)
    go(apart, "input")
    expect(apart.output(2).locator(".tc-state")).to_have_text("Running")
    apart.save()
    take_away_the_server(apart, 2)
    go(apart, "tool", "answer")
    apart.server.start()
    apart.open(kernel=False)
    expect(apart.output(1)).to_contain_text("Paragraph 11")
    go(apart, "rest", "end")
    assert_whole(apart, 2)


@pytest.mark.thorough
def test_a_page_that_comes_back_to_another_kernel_under_the_same_name_does_not_wait_for_the_run(
    apart: Notebook,
) -> None:
    apart.run(0)
    apart.run(1)
    go(apart, "call", "input")
    take_away_the_server(apart, 1)
    with running_kernel(apart.server.folder.parent, apart.server):
        apart.server.start()
        begin(apart, "notebook:reconnect-to-kernel")
        assert_cut_off(apart, 1, "I will look at the forecast.", "Lisbon")


# The kernel


def kill_kernel(notebook: Notebook, number: int) -> None:
    """The process that the cell, when it was run, printed the id of."""
    os.kill(int(notebook.output(number).inner_text()), signal.SIGKILL)
    choose(notebook, "Ok")


def test_a_kernel_that_is_killed_in_mid_call_and_while_it_asks_leaves_what_was_known_and_that_it_is_not_all(
    lab: Lab,
) -> None:
    pid, load = "import os; print(os.getpid())", "%load_ext toolcall_nb\n%toolchat load talk.md"
    asking = ask("--approve ask")
    notebook = lab.page(lab.write(pid, NEXT, "%toolchat save talk.md", ask(), load, asking, NEXT)).open()
    for number in range(4):
        notebook.run(number)
    notebook.start(4)
    go(notebook, "call", "input")
    expect(notebook.output(4).locator(".tc-state")).to_have_text("Running")
    kill_kernel(notebook, 1)
    assert_cut_off(notebook, 4, "I will look at the forecast.", "Lisbon")
    notebook.wait_until_idle()
    for number in (5, 0, 1):
        notebook.run(number)
    expect(notebook.output(5)).to_contain_text("2 messages")
    notebook.start(6)
    expect(panel(notebook.output(6))).to_be_visible()
    kill_kernel(notebook, 1)
    assert_cut_off(notebook, 6, "I will look at the forecast.", "Lisbon")
    notebook.wait_until_idle()
    notebook.run(5)
    notebook.run(7)
    expect(notebook.output(7).locator(".tc-assistant")).to_contain_text("Hello from the mock model")
    notebook.save()
    notebook.open(kernel=False)
    for number in (4, 6):
        assert_cut_off(notebook, number, "I will look at the forecast.", "Lisbon")


@pytest.mark.thorough
def test_a_kernel_that_is_restarted_in_mid_run_leaves_the_same_and_the_next_turn_works(lab: Lab) -> None:
    notebook = lab.page(lab.write(ask(), ask("--background"), NEXT)).open()
    notebook.run(0)
    go(notebook, "call", "input")
    for number, how in ((1, "keys"), (2, "button")):
        notebook.start(number)
        expect(notebook.output(number).locator(".tc-state")).to_have_text("Running")
        take_kernel(notebook, number, how)
        assert_cut_off(notebook, number, "I will look at the forecast.", "Lisbon")
        notebook.wait_until_idle()
        notebook.run(0)
    notebook.run(3)
    expect(notebook.output(3).locator(".tc-assistant")).to_contain_text(re.compile(r"\w"))


def take_kernel(notebook: Notebook, number: int, how: str) -> None:
    """As a person does it in JupyterLab."""
    match how:
        case "keys":
            notebook.cell(number).locator(".jp-InputPrompt").first.click()
            notebook.page.keyboard.type("00")
        case "button":
            notebook.page.locator(".jp-NotebookPanel-toolbar [data-command='notebook:restart-kernel']").click()
    choose(notebook, "Confirm Kernel Restart")


def test_jupyterlabs_own_interrupt_ends_a_call_a_text_and_a_question_and_the_next_turn_works(lab: Lab) -> None:
    notebook = lab.page(lab.write(ask(), ask(), ask("--approve ask"), NEXT)).open()
    notebook.run(0)
    go(notebook, "call", "input")
    for number, where in ((1, "call"), (3, "question"), (2, "text")):
        output = notebook.output(number)
        if where == "text":
            go(notebook, "tool", "answer")
        notebook.start(number)
        shown = {
            "call": output.get_by_text("Running"),
            "text": output.get_by_text("and dry."),
            "question": panel(output),
        }
        expect(shown[where].first).to_be_visible()
        if where == "call":
            notebook.page.locator(".jp-NotebookPanel-toolbar [data-command='notebook:interrupt-kernel']").click()
        else:
            notebook.cell(number).locator(".jp-InputPrompt").first.click()
            notebook.page.keyboard.type("ii")
        notebook.wait_until_run(number)
        expect(output.locator(".tc-note")).to_contain_text("Stopped")
        expect(output.locator(".tc-state")).to_have_text("Completed" if where == "text" else "Interrupted")
        expect(output).not_to_contain_text("Traceback")
        assert_rests(output)
        assert set(saved_output(notebook, number)) == STATIC
    notebook.run(4)
    expect(notebook.output(4).locator(".tc-assistant")).to_contain_text(re.compile(r"\w"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [pytest.param("--background", id="background", marks=pytest.mark.thorough), pytest.param("", id="cell")],
)
def test_a_notebook_that_is_closed_and_opened_again_in_mid_run_shows_its_end(lab: Lab, options: str) -> None:
    notebook = lab.page(lab.write(ask(options)))
    notebook.page.goto(notebook.server.page(notebook.name).replace("/doc/tree/", "/lab/tree/") + "&reset")
    notebook.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    notebook.wait_until_idle()
    notebook.run(0)
    notebook.start(1)
    go(notebook, "call", "input")
    expect(notebook.output(1).locator(".tc-state")).to_have_text("Running")
    notebook.save()
    begin(notebook, "application:close")
    expect(notebook.page.locator(".jp-NotebookPanel")).to_have_count(0)
    go(notebook, "tool", "answer")
    notebook.page.evaluate(
        "path => void window.jupyterapp.commands.execute('docmanager:open', { path })", notebook.name
    )
    notebook.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    go(notebook, "rest", "end")
    assert_whole(notebook, 1)
