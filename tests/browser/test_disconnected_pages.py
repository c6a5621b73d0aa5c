"""A page that receives no messages for a while (asleep, disconnected, or rate-limited) then shows the true state.

``TOOLCALL_NB_ASLEEP`` sets how many seconds the browser sleeps; 60 stands for a laptop that was closed for a minute.
If it is set, JupyterLab also has to detect by itself that the network is back, which takes half a minute.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.browser import VIEWPORT, Notebook
from tests.browser.conftest import Lab
from tests.browser.counting_model import (
    OWN_CELLS,
    RUN,
    assert_all_numbers,
    numbers,
    progress,
    start_counting_turn,
    wait_for,
)
from tests.browser.cuttable_connection import cuttable_connection_to
from tests.browser.jupyter import running_server
from toolcall_nb.frontend import MODULE, page_css

IS_QUICK = "TOOLCALL_NB_ASLEEP" not in os.environ
ASLEEP = float(os.environ.get("TOOLCALL_NB_ASLEEP", "4"))

_PACE = """import ipywidgets.widgets.widget as w
print(*[each._run.on_pace.__self__.interval for each in w._instances.values() if hasattr(each, "_run")])"""


@contextmanager
def asleep(browser: Browser) -> Iterator[None]:
    """Stops all processes of the browser inside the block."""
    devtools = browser.new_browser_cdp_session()
    processes = [process["id"] for process in devtools.send("SystemInfo.getProcessInfo")["processInfo"]]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def shown_seconds(notebook: Notebook) -> float:
    """Returns the seconds that the run's clock shows."""
    words = notebook.output(RUN).locator(".tc-foot-time").inner_text().split()
    return float(words[0]) * 60 + float(words[2]) if "min" in words else float(words[0])


@pytest.mark.thorough
def test_a_browser_that_slept_during_a_run_shows_all_of_it(lab: Lab, chromium: Browser) -> None:
    notebook = start_counting_turn(lab, "--background", _PACE)
    with asleep(chromium):
        time.sleep(ASLEEP)
    count, _, queued = progress(notebook)
    output = notebook.output(RUN)
    wait_for(notebook, lambda: len(numbers(output)) >= count, "it has caught up")
    assert shown_seconds(notebook) >= ASLEEP
    assert queued < 1000  # the kernel's messages went to the server, which kept them for the page
    wait_for(notebook, lambda: _pace(notebook) < 0.5, "the page takes messages as often as before")
    expect(output.get_by_role("button", name="Stop")).to_have_count(1)
    notebook.pass_gate("end")
    expect(output).to_contain_text("The end.")
    count, calls, _ = progress(notebook)
    assert_all_numbers(output, count, calls)


def _pace(notebook: Notebook) -> float:
    notebook.run(OWN_CELLS)
    return float(notebook.output(OWN_CELLS).inner_text())


@pytest.mark.thorough
def test_a_run_that_ended_while_the_browser_slept_is_shown_completely_when_it_wakes(
    lab: Lab, chromium: Browser
) -> None:
    notebook = start_counting_turn(lab)
    with asleep(chromium):
        time.sleep(1)
        notebook.pass_gate("end")
        time.sleep(1)
    notebook.wait_until_run(RUN)
    count, calls, _ = progress(notebook)
    assert_all_numbers(notebook.output(RUN), count, calls)


@pytest.mark.thorough
@pytest.mark.parametrize("ends", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_a_page_whose_network_was_gone_for_a_while_shows_all_of_it(lab: Lab, ends: bool) -> None:
    with cuttable_connection_to(lab.server) as (line, seen):
        lab.server = seen
        notebook = start_counting_turn(lab)
        output = notebook.output(RUN)
        line.cut()
        expect(output).to_contain_text("Not connected")
        before = len(numbers(output))
        notebook.page.wait_for_timeout(500)
        assert len(numbers(output)) == before
        if ends:
            notebook.pass_gate("end")
        notebook.page.wait_for_timeout(1000)
        line.mend()
        if IS_QUICK:
            notebook.command("notebook:reconnect-to-kernel")
        wait_for(notebook, lambda: len(numbers(output)) > before, "it has caught up")
        notebook.pass_gate("end")
        expect(output).to_contain_text("The end.")
        notebook.wait_until_idle()
        count, calls, _ = progress(notebook)
        assert_all_numbers(output, count, calls)


@pytest.fixture(scope="module")
def frugal(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Lab]:
    """A JupyterLab that drops messages beyond 50 a second, instead of 1,000."""
    options = {"ZMQChannelsWebsocketConnection.iopub_msg_rate_limit": 50}
    with running_server(tmp_path_factory.mktemp("frugal"), options) as server:
        context = chromium.new_context(viewport=VIEWPORT)
        yield Lab(server, context)
        context.close()


_FLOOD = """import threading
from IPython.display import display

def flood(number):
    for _ in range(number):
        display({"text/plain": "x"}, raw=True, display_id="none", update=True)
        time.sleep(0.001)

def is_running():
    return any(thread.name == "toolcall_nb-run" for thread in threading.enumerate())

flood(500)
Path(GATE % "MIDST").touch()
while "MIDST" == "end" and is_running():
    flood(20)"""


@pytest.mark.thorough
@pytest.mark.parametrize("midst", [pytest.param("nothing", marks=pytest.mark.thorough), "end"])
def test_a_page_asks_for_messages_that_the_server_dropped(frugal: Lab, midst: str) -> None:
    notebook = start_counting_turn(frugal, "--background", _FLOOD.replace("MIDST", midst))
    output = notebook.output(RUN)
    notebook.run(OWN_CELLS)
    expect(notebook.output(OWN_CELLS)).to_contain_text("IOPub message rate exceeded")
    if midst != "end":
        count, _, _ = progress(notebook)
        wait_for(notebook, lambda: len(numbers(output)) >= count, "it has caught up")
        notebook.pass_gate("end")
    expect(output).to_contain_text("The end.")
    count, calls, _ = progress(notebook)
    assert_all_numbers(output, count, calls)
    assert notebook.problems == []


# The page's module alone

_OPEN = """async ([source, css, snapshot]) => {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const { default: load } = await import(url);
    window.sent = [];
    const handlers = {};
    const model = { get: () => snapshot, on: (name, call) => { handlers[name] = call; }, send: (m) => sent.push(m) };
    const widget = await load();
    widget.initialize({ model });
    window.receive = (message) => handlers["msg:custom"](message);
    window.close_view = widget.render({ el: document.body.appendChild(document.createElement("div")), model });
}"""
_SNAPSHOT = {"seq": 1, "patches": [], "clocks": {"": {"elapsed": 2.0, "running": True}}, "now": 100.0, "done": False}
_CARD = '<div class="tc-call"><span class="tc-time"></span></div>'


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    page = context.new_page()
    page.clock.install(time=0)
    page.goto("about:blank")
    page.clock.pause_at(60)  # from here on, only the test advances the clock
    page.evaluate(_OPEN, [MODULE.read_text("utf-8"), page_css(), _SNAPSHOT])
    yield page
    context.close()


def deliver(page: Page, **step: Any) -> None:
    page.evaluate("step => window.receive(step)", {"type": "patches", "patches": [], **step})


def reported_numbers(page: Page) -> list[int]:
    """Returns the sequence numbers that the page has reported to the kernel."""
    found: list[int] = page.evaluate("() => sent.filter(({ type }) => type === 'here').map(({ seq }) => seq)")
    return found


def test_clocks_count_from_the_kernels_times_however_late_they_arrive(page: Page) -> None:
    page.clock.fast_forward(60_000)
    deliver(
        page,
        seq=2,
        patches=[["m0.p0", "", None, _CARD], ["m0.p1", "", None, _CARD]],
        clocks={"m0.p0": {"elapsed": 0.0, "running": True}, "m0.p1": {"elapsed": 0.25, "running": False}},
        now=110.0,
    )
    page.clock.run_for(1000)
    run, running, over = page.locator(".tc-foot-time"), page.locator(".tc-time").first, page.locator(".tc-time").last
    shown = [each.inner_text() for each in (run, running, over)]
    assert shown == ["1 min 03 s", "51 s", "0.25 s"]


def test_a_page_without_messages_reports_its_sequence_number_at_growing_intervals_until_the_run_is_over(
    page: Page,
) -> None:
    page.clock.run_for(9_000)
    assert reported_numbers(page) == []
    page.clock.run_for(150_000)
    assert reported_numbers(page) == [1, 1, 1, 1]  # after 10, 30, 70 and 150 seconds
    deliver(page, seq=2)
    page.clock.run_for(9_000)
    assert len(reported_numbers(page)) == 4
    page.clock.run_for(2_000)
    assert reported_numbers(page)[-1] == 2
    deliver(page, seq=3, done=True)
    page.clock.run_for(1_000_000)
    assert reported_numbers(page)[-1] == 2


def test_a_page_without_a_view_reports_nothing(page: Page) -> None:
    page.evaluate("() => window.close_view()")
    page.clock.run_for(1_000_000)
    assert reported_numbers(page) == []
