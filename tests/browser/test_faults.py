"""Reloads, second tabs, killed kernels and killed servers: afterwards, pages show the true state."""

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
from tests.browser.external_kernel import external_kernel_options, open_session, running_external_kernel
from tests.browser.fault_checks import (
    REMAINING_GATES,
    STATIC,
    assert_complete,
    assert_cut_off,
    assert_inactive,
    choose_in_dialog,
    pass_gates,
    press_in_question,
    question_panel,
    saved_output,
    scripted_cell,
    start_command,
    stored_output,
    wait_until,
)
from tests.browser.jupyter import running_server
from tests.browser.scripted_turn import NEXT, setup

# Reloads


@pytest.mark.thorough
def test_a_page_reloaded_three_times_during_a_run_and_just_before_its_end_shows_all_of_it(lab: Lab) -> None:
    notebook = lab.page(lab.write(scripted_cell("--background --approve ask"))).open()
    notebook.run(0)
    notebook.run(1)
    pass_gates(notebook, "call")
    output = notebook.output(1)
    expect(output.locator(".tc-call")).to_contain_text("city: Lis")
    notebook.save()
    notebook.open(kernel=False)
    expect(output.locator(".tc-call")).to_contain_text("city: Lis")
    pass_gates(notebook, "input")
    expect(question_panel(output)).to_be_visible()
    notebook.open(kernel=False)
    press_in_question(output, "Approve")
    expect(output.locator(".tc-state")).to_have_text("Running")
    pass_gates(notebook, "tool", "answer")
    expect(output).to_contain_text("and dry.")
    pass_gates(notebook, "rest", "end")
    notebook.open(kernel=False)
    assert_complete(notebook, 1)


@pytest.mark.thorough
def test_a_page_reloaded_without_saving_loses_the_output_and_show_displays_it_again(lab: Lab) -> None:
    notebook = lab.page(lab.write(scripted_cell(), "%toolchat show")).open()
    notebook.run(0)
    notebook.save()
    notebook.start(1)
    pass_gates(notebook, "call", "input")
    expect(notebook.output(1).locator(".tc-state")).to_have_text("Running")
    notebook.open(kernel=False)
    expect(notebook.output(1).locator(".jp-OutputArea-child")).to_have_count(0)
    pass_gates(notebook, *REMAINING_GATES)
    notebook.wait_until_idle()
    notebook.run(2)
    expect(notebook.output(1).locator(".jp-OutputArea-child")).to_have_count(0)
    assert_complete(notebook, 2)


# Two pages


@pytest.mark.thorough
def test_two_pages_on_a_notebook_answer_open_and_end_as_one_and_each_saves_the_whole(
    lab: Lab, chromium: Browser
) -> None:
    first = lab.page(lab.write(scripted_cell("--background --approve ask"))).open()
    second = lab.page(first.name).open()
    first.run(0)
    first.run(1)
    pass_gates(first, "call", "input")
    expect(question_panel(first.output(1))).to_be_visible()
    # JupyterLab gives the second page no output, so it shows nothing false.
    expect(second.output(1).locator(".jp-OutputArea-child")).to_have_count(0)
    first.save()
    start_command(second, "docmanager:reload")
    choose_in_dialog(second, "Reload")
    expect(question_panel(second.output(1))).to_be_visible()
    context = chromium.new_context(viewport=VIEWPORT)
    third = Notebook(lab.server, context, first.name).open(kernel=False)
    press_in_question(second.output(1), "Approve")
    for page in (first, second, third):
        expect(page.output(1).locator(".tc-state")).to_have_text("Running")
        expect(question_panel(page.output(1))).to_have_count(0)
    pass_gates(first, "tool")
    expect(third.output(1).locator(".tc-state")).to_have_text("Completed")
    third.output(1).locator(".tc-call summary").click()
    pass_gates(first, *REMAINING_GATES)
    for page in (first, second, third):
        expect(page.output(1)).to_contain_text("Paragraph 11")
        expect(page.output(1).locator(".tc-call details")).to_have_attribute("open", "")
        assert_inactive(page.output(1))
    assert_complete(first, 1)
    start_command(second, "docmanager:save")
    choose_in_dialog(second, "Revert")  # JupyterLab asks because the file has changed on disk
    assert_inactive(second.output(1))
    start_command(third, "docmanager:save")
    file = third.server.folder / third.name
    before = file.stat().st_mtime_ns
    choose_in_dialog(third, "Overwrite")
    wait_until(third, lambda: file.stat().st_mtime_ns != before)
    assert_inactive(third.output(1))
    assert set(stored_output(third, 1)) == STATIC
    assert third.problems == []
    context.close()


@pytest.mark.thorough
def test_stop_in_a_page_that_was_opened_before_the_run_ends_a_cell_of_another_page(lab: Lab) -> None:
    first = lab.page(lab.write(scripted_cell())).open()
    second = lab.page(first.name).open()
    first.run(0)
    first.start(1)
    pass_gates(first, "call", "input")
    expect(first.output(1).locator(".tc-state")).to_have_text("Running")
    first.save()
    start_command(second, "docmanager:reload")
    choose_in_dialog(second, "Reload")
    expect(second.output(1).locator(".tc-state")).to_have_text("Running")
    second.output(1).get_by_role("button", name="Stop").click()
    first.wait_until_run(1)
    for page in (first, second):
        expect(page.output(1).locator(".tc-state")).to_have_text("Interrupted")
        expect(page.output(1)).to_contain_text("Stopped")
        assert_inactive(page.output(1))
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
    """A notebook that is open on a separate server, whose kernel survives it."""
    cells = (f"{setup('apart.ipynb')}\n{_TELLING}", scripted_cell("--background"), scripted_cell())
    with running_server(tmp_path, external_kernel_options(tmp_path)) as server:
        name = server.write("apart.ipynb", *cells)
        with running_external_kernel(tmp_path, server):
            open_session(server, name)
            context = chromium.new_context(viewport=VIEWPORT)
            yield Notebook(server, context, name).open()
            context.close()


def kill_server(notebook: Notebook, number: int) -> None:
    """Kills the server during the cell's call; asserts that the page says it is not connected and shows no buttons."""
    output = notebook.output(number)
    expect(output.locator(".tc-state")).to_have_text("Running")
    notebook.server.kill()
    expect(output.locator(".tc-foot-status")).to_have_text("Not connected to the kernel: this may be old")
    expect(output.locator(".tc-stop:visible, .tc-busy, .tc-live")).to_have_count(0)
    expect(output.locator(".tc-state")).to_have_text("Running")


@pytest.mark.thorough
def test_a_server_that_is_killed_and_restarted_during_a_run_loses_nothing_of_it(apart: Notebook) -> None:
    apart.run(0)
    apart.run(1)
    pass_gates(apart, "call", "input")
    kill_server(apart, 1)
    pass_gates(apart, *REMAINING_GATES)
    wait_until(apart, (apart.server.folder / "over").exists)
    apart.server.start()
    start_command(apart, "notebook:reconnect-to-kernel")
    assert_complete(apart, 1)
    assert apart.output(1).locator(".tc-user").count() == 1

    for gate in ("input", *REMAINING_GATES):
        (apart.server.folder / f"gate-{apart.name}-{gate}").unlink()
    apart.start(2)
    pass_gates(apart, "input")
    expect(apart.output(2).locator(".tc-state")).to_have_text("Running")
    apart.save()
    kill_server(apart, 2)
    pass_gates(apart, "tool", "answer")
    apart.server.start()
    apart.open(kernel=False)
    expect(apart.output(1)).to_contain_text("Paragraph 11")
    pass_gates(apart, "rest", "end")
    assert_complete(apart, 2)


@pytest.mark.thorough
def test_a_page_that_reconnects_to_another_kernel_with_the_same_id_does_not_wait_for_the_run(
    apart: Notebook,
) -> None:
    apart.run(0)
    apart.run(1)
    pass_gates(apart, "call", "input")
    kill_server(apart, 1)
    with running_external_kernel(apart.server.folder.parent, apart.server):
        apart.server.start()
        start_command(apart, "notebook:reconnect-to-kernel")
        assert_cut_off(apart, 1, "I will look at the forecast.", "Lisbon")


# The kernel


def kill_kernel(notebook: Notebook, number: int) -> None:
    """Kills the kernel, whose process id is the output of this cell."""
    os.kill(int(notebook.output(number).inner_text()), signal.SIGKILL)
    choose_in_dialog(notebook, "Ok")


@pytest.mark.parametrize("during", ["call", pytest.param("question", marks=pytest.mark.thorough)])
def test_after_the_kernel_is_killed_the_page_shows_the_run_as_cut_off(lab: Lab, during: str) -> None:
    pid, load = "import os; print(os.getpid())", "%load_ext toolcall_nb\n%toolchat load talk.md"
    asking = scripted_cell("--approve ask" if during == "question" else "")
    notebook = lab.page(lab.write(pid, NEXT, "%toolchat save talk.md", asking, load, NEXT)).open()
    for number in range(4):
        notebook.run(number)
    notebook.start(4)
    if during == "question":
        expect(question_panel(notebook.output(4))).to_be_visible()
    else:
        pass_gates(notebook, "call", "input")
        expect(notebook.output(4).locator(".tc-state")).to_have_text("Running")
    kill_kernel(notebook, 1)
    assert_cut_off(notebook, 4, "I will look at the forecast.", "Lisbon")
    notebook.wait_until_idle()
    notebook.run(5)
    expect(notebook.output(5)).to_contain_text("2 messages")
    notebook.run(6)
    expect(notebook.output(6).locator(".tc-assistant")).to_contain_text("Hello from the mock model")
    notebook.save()
    notebook.open(kernel=False)
    assert_cut_off(notebook, 4, "I will look at the forecast.", "Lisbon")


@pytest.mark.thorough
def test_after_the_kernel_is_restarted_during_a_run_the_page_shows_it_as_cut_off_and_the_next_turn_works(
    lab: Lab,
) -> None:
    notebook = lab.page(lab.write(scripted_cell(), scripted_cell("--background"), NEXT)).open()
    notebook.run(0)
    pass_gates(notebook, "call", "input")
    for number, how in ((1, "keys"), (2, "button")):
        notebook.start(number)
        expect(notebook.output(number).locator(".tc-state")).to_have_text("Running")
        restart_kernel(notebook, number, how)
        assert_cut_off(notebook, number, "I will look at the forecast.", "Lisbon")
        notebook.wait_until_idle()
        notebook.run(0)
    notebook.run(3)
    expect(notebook.output(3).locator(".tc-assistant")).to_contain_text(re.compile(r"\w"))


def restart_kernel(notebook: Notebook, number: int, how: str) -> None:
    """Restarts the kernel in JupyterLab, by its keys or the toolbar's button, and confirms."""
    match how:
        case "keys":
            notebook.cell(number).locator(".jp-InputPrompt").first.click()
            notebook.page.keyboard.type("00")
        case "button":
            notebook.page.locator(".jp-NotebookPanel-toolbar [data-command='notebook:restart-kernel']").click()
    choose_in_dialog(notebook, "Confirm Kernel Restart")


def test_jupyterlabs_own_interrupt_ends_a_call_a_text_and_a_question_and_the_next_turn_works(lab: Lab) -> None:
    notebook = lab.page(lab.write(scripted_cell(), scripted_cell(), scripted_cell("--approve ask"), NEXT)).open()
    notebook.run(0)
    pass_gates(notebook, "call", "input")
    for number, where in ((1, "call"), (3, "question"), (2, "text")):
        output = notebook.output(number)
        if where == "text":
            pass_gates(notebook, "tool", "answer")
        notebook.start(number)
        shown = {
            "call": output.get_by_text("Running"),
            "text": output.get_by_text("and dry."),
            "question": question_panel(output),
        }
        expect(shown[where].first).to_be_visible()
        if where == "call":
            notebook.page.locator(".jp-NotebookPanel-toolbar [data-command='notebook:interrupt-kernel']").click()
        else:
            notebook.cell(number).locator(".jp-InputPrompt").first.click()
            notebook.page.keyboard.type("ii")
        notebook.wait_until_run(number)
        expect(output.locator(".tc-note")).to_contain_text("Interrupted")
        expect(output.locator(".tc-state")).to_have_text("Completed" if where == "text" else "Interrupted")
        expect(output).not_to_contain_text("Traceback")
        assert_inactive(output)
        assert set(saved_output(notebook, number)) == STATIC
    notebook.run(4)
    expect(notebook.output(4).locator(".tc-assistant")).to_contain_text(re.compile(r"\w"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [pytest.param("--background", id="background", marks=pytest.mark.thorough), pytest.param("", id="cell")],
)
def test_a_notebook_that_is_closed_and_reopened_during_a_run_shows_its_end(lab: Lab, options: str) -> None:
    notebook = lab.page(lab.write(scripted_cell(options)))
    notebook.page.goto(notebook.server.page(notebook.name).replace("/doc/tree/", "/lab/tree/") + "&reset")
    notebook.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    notebook.wait_until_idle()
    notebook.run(0)
    notebook.start(1)
    pass_gates(notebook, "call", "input")
    expect(notebook.output(1).locator(".tc-state")).to_have_text("Running")
    notebook.save()
    start_command(notebook, "application:close")
    expect(notebook.page.locator(".jp-NotebookPanel")).to_have_count(0)
    pass_gates(notebook, "tool", "answer")
    notebook.page.evaluate(
        "path => void window.jupyterapp.commands.execute('docmanager:open', { path })", notebook.name
    )
    notebook.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    pass_gates(notebook, "rest", "end")
    assert_complete(notebook, 1)
