"""A page that hears nothing for a while: asleep, cut off from its server, or left out by it. Then it shows the truth.

``TOOLCALL_NB_ASLEEP`` is for how many seconds the browser sleeps; a laptop that was closed for a minute: 60. With it,
JupyterLab is also left to find by itself that the network is back, which takes it half a minute.
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
from tests.browser.counting import ACTS, RUN, assert_whole, counting, numbers, state, until
from tests.browser.jupyter import running_server
from tests.browser.line import line_to
from toolcall_nb.frontend import MODULE, page_css

IS_QUICK = "TOOLCALL_NB_ASLEEP" not in os.environ
ASLEEP = float(os.environ.get("TOOLCALL_NB_ASLEEP", "4"))

_PACE = """import ipywidgets.widgets.widget as w
print(*[each._on_pace.__self__.interval for each in w._instances.values() if hasattr(each, "_on_pace")])"""


@contextmanager
def asleep(browser: Browser) -> Iterator[None]:
    """All processes of the browser stand still."""
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
    """What the run's clock says, in its first minute and after."""
    words = notebook.output(RUN).locator(".tc-foot-time").inner_text().split()
    return float(words[0]) * 60 + float(words[2]) if "min" in words else float(words[0])


@pytest.mark.thorough
def test_a_browser_that_slept_while_a_run_went_on_shows_all_of_it(lab: Lab, chromium: Browser) -> None:
    notebook = counting(lab, "--background", _PACE)
    with asleep(chromium):
        time.sleep(ASLEEP)
    count, _, queued = state(notebook)
    output = notebook.output(RUN)
    until(notebook, lambda: len(numbers(output)) >= count, "it has caught up")
    assert shown_seconds(notebook) >= ASLEEP
    assert queued < 1000  # what the kernel had to send went to the server, which waited for the page
    until(notebook, lambda: _pace(notebook) < 0.5, "the page takes messages as often as before")
    expect(output.get_by_role("button", name="Stop")).to_have_count(1)
    notebook.pass_gate("end")
    expect(output).to_contain_text("The end.")
    count, calls, _ = state(notebook)
    assert_whole(output, count, calls)


def _pace(notebook: Notebook) -> float:
    notebook.run(ACTS)
    return float(notebook.output(ACTS).inner_text())


def test_a_run_that_ended_while_the_browser_slept_is_whole_when_it_wakes(lab: Lab, chromium: Browser) -> None:
    notebook = counting(lab)
    with asleep(chromium):
        time.sleep(1)
        notebook.pass_gate("end")
        time.sleep(1)
    notebook.wait_until_run(RUN)
    count, calls, _ = state(notebook)
    assert_whole(notebook.output(RUN), count, calls)


@pytest.mark.thorough
@pytest.mark.parametrize("ends", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_a_page_whose_network_was_gone_for_a_while_shows_all_of_it(lab: Lab, ends: bool) -> None:
    with line_to(lab.server) as (line, seen):
        lab.server = seen
        notebook = counting(lab)
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
        until(notebook, lambda: len(numbers(output)) > before, "it has caught up")
        notebook.pass_gate("end")
        expect(output).to_contain_text("The end.")
        notebook.wait_until_idle()
        count, calls, _ = state(notebook)
        assert_whole(output, count, calls)


@pytest.fixture(scope="module")
def frugal(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Lab]:
    """A JupyterLab that drops what comes faster than 50 messages a second; else it would be 1,000."""
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
def test_a_page_that_the_server_leaves_out_asks_for_what_it_missed(frugal: Lab, midst: str) -> None:
    notebook = counting(frugal, "--background", _FLOOD.replace("MIDST", midst))
    output = notebook.output(RUN)
    notebook.run(ACTS)
    expect(notebook.output(ACTS)).to_contain_text("IOPub message rate exceeded")
    if midst != "end":
        count, _, _ = state(notebook)
        until(notebook, lambda: len(numbers(output)) >= count, "it has caught up")
        notebook.pass_gate("end")
    expect(output).to_contain_text("The end.")
    count, calls, _ = state(notebook)
    assert_whole(output, count, calls)
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
    page.clock.pause_at(60)  # from here on time goes on only as the test says
    page.evaluate(_OPEN, [MODULE.read_text("utf-8"), page_css(), _SNAPSHOT])
    yield page
    context.close()


def heard(page: Page, **step: Any) -> None:
    page.evaluate("step => window.receive(step)", {"type": "patches", "patches": [], **step})


def here(page: Page) -> list[int]:
    """How often the page has said how far it is."""
    found: list[int] = page.evaluate("() => sent.filter(({ type }) => type === 'here').map(({ seq }) => seq)")
    return found


def test_clocks_count_from_the_kernels_moments_however_late_they_are_told(page: Page) -> None:
    page.clock.fast_forward(60_000)
    heard(
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


def test_a_page_that_hears_nothing_says_how_far_it_is_ever_more_rarely_and_not_when_all_is_over(page: Page) -> None:
    page.clock.run_for(9_000)
    assert here(page) == []
    page.clock.run_for(150_000)
    assert here(page) == [1, 1, 1, 1]  # after 10, 30, 70 and 150 seconds
    heard(page, seq=2)
    page.clock.run_for(9_000)
    assert len(here(page)) == 4
    page.clock.run_for(2_000)
    assert here(page)[-1] == 2
    heard(page, seq=3, done=True)
    page.clock.run_for(1_000_000)
    assert here(page)[-1] == 2


def test_a_page_without_a_view_says_nothing(page: Page) -> None:
    page.evaluate("() => window.close_view()")
    page.clock.run_for(1_000_000)
    assert here(page) == []
