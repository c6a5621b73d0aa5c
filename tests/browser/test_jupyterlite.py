"""The demo: a JupyterLite site in whose page the tour runs, without a server and with nothing from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, expect

from tests.browser.browser import ARTIFACTS, VIEWPORT
from tests.support.environments import ROOT, make_environment

PATIENCE = 120_000
STATIC = ".jp-OutputArea-output[data-mime-type='text/html'] .tc"
PROBLEM = "[data-mime-type='application/vnd.jupyter.stderr'], [data-mime-type='application/vnd.jupyter.error']"
TOUR: dict[str, Any] = json.loads((ROOT / "notebooks" / "tour.ipynb").read_text("utf-8"))
SHOWN = [cell for cell in TOUR["cells"] if "needs-a-shell" not in cell["metadata"].get("tags", ())]
OWN = re.compile(r"\b(google|googleapis|gstatic|gvt1)\.com\b")
"""Where Chromium itself asks for updates and for help with forms."""

WITHOUT_JSPI = b"delete WebAssembly.Suspending; delete WebAssembly.promising;\n"

pytestmark = pytest.mark.thorough


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Runs a server inside the block; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jupyterlite")
    python = make_environment(folder, "pip", "-r", str(ROOT / "requirements" / "demo.txt"))
    command = [str(python), "-m", "tests.browser.demo_site", str(folder / "site")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder / "site"


class Demo:
    """The site in a browser context of its own. ``asked`` are the addresses elsewhere that it asks for."""

    def __init__(self, context: BrowserContext, address: str, asked: list[str]) -> None:
        self.page = context.new_page()
        self.address = address
        self.asked = asked
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._hear)

    def _hear(self, line: ConsoleMessage) -> None:
        address = line.location["url"]
        if line.type == "error" and not address.endswith("/favicon.ico"):  # asked for before the page has named one
            self.problems.append(f"{line.text} {address}")

    def open(self, *, kernel: bool = True) -> None:
        """Opens the site's first page, and waits for the notebook, and for its kernel if there should be one."""
        self.page.goto(self.address)
        expect(self.cell(0)).to_be_visible(timeout=PATIENCE)
        if kernel:
            idle = self.page.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']")
            expect(idle).to_be_visible(timeout=PATIENCE)

    def cell(self, number: int) -> Locator:
        return self.page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{number}']")

    def output(self, number: int) -> Locator:
        return self.cell(number).locator(".jp-Cell-outputArea")

    def start(self, number: int, source: str | None = None) -> None:
        """Runs the cell by keyboard, as a person does; with another ``source``, types that first."""
        editor = self.cell(number).locator(".cm-content, .jp-MarkdownOutput").first
        editor.click()
        if source is not None:
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Control+Enter")

    def run(self, number: int, source: str | None = None) -> None:
        """Runs the cell and waits for its end."""
        self.start(number, source)
        prompt = self.cell(number).locator(".jp-InputPrompt").first
        expect(prompt).to_have_text(re.compile(r"^\[\d+\]:$"), timeout=PATIENCE)

    def menu(self, *names: str) -> None:
        """Chooses a command in the menus."""
        bar, *items = names
        self.page.locator(".lm-MenuBar-itemLabel").filter(has_text=re.compile(f"^{bar}$")).click()
        for name in items:
            label = self.page.locator(".lm-Menu-itemLabel").filter(has_text=re.compile(f"^{name}$"))
            label.click()

    def picture(self, name: str) -> None:
        """Takes pictures in light and dark."""
        ARTIFACTS.mkdir(exist_ok=True)
        for theme in ("Dark", "Light"):
            self.menu("Settings", "Theme", f"JupyterLab {theme}")
            expect(self.page.locator(f"body[data-jp-theme-name='JupyterLab {theme}']")).to_be_attached()
            self.page.wait_for_timeout(500)
            self.page.screenshot(path=ARTIFACTS / f"jupyterlite-{name}-{theme.lower()}.png")


@contextmanager
def demo(chromium: Browser, site: Path, *, has_jspi: bool = True) -> Iterator[Demo]:
    """Serves the site on loopback to a context whose other requests go to a proxy that answers none."""
    asked: list[str] = []

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(site))

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            if has_jspi or not self.path.endswith("/pyodide.mjs"):
                super().do_GET()
                return
            content = WITHOUT_JSPI + (site / "static" / "pyodide" / "pyodide.mjs").read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    class Nothing(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            if not OWN.search(self.path):
                asked.append(self.path)
            self.send_error(502)

        do_POST = do_HEAD = do_CONNECT = do_GET

    with serving(Files) as address, serving(Nothing) as proxy:
        context = chromium.new_context(viewport=VIEWPORT, proxy={"server": proxy, "bypass": "127.0.0.1"})
        try:
            yield Demo(context, address, asked)
        finally:
            context.close()


def printed(cell: dict[str, Any]) -> list[str]:
    """Returns what the stored outputs of a cell print."""
    return ["".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream"]


def without_reasons(text: str) -> list[str]:
    """Returns the words, without the reason why YAML cannot be read: PyYAML in Python words it otherwise than in C."""
    return re.sub(r"cannot be read: .*?\. It", "cannot be read. It", text).split()


def test_the_tour_runs_in_the_page_live_and_static_and_is_there_when_it_is_opened_again(
    chromium: Browser, site: Path
) -> None:
    with demo(chromium, site) as lite:
        lite.open()
        lite.picture("tour")
        lite.menu("Edit", "Clear Outputs of All Cells")
        for number, cell in enumerate(SHOWN):
            if cell["cell_type"] != "code":
                continue
            source = "".join(cell["source"])
            lite.start(number)
            if source.startswith("%%toolchat\n"):
                expect(lite.output(number).get_by_role("button", name="Stop")).to_be_visible(timeout=PATIENCE)
            expect(lite.cell(number).locator(".jp-InputPrompt").first).to_have_text(re.compile(r"^\[\d+\]:$"))
            expect(lite.output(number).locator(PROBLEM)).to_have_count(0)
            for text in printed(cell):
                assert without_reasons(lite.output(number).inner_text()) == without_reasons(text), source
            if any("text/html" in output.get("data", {}) for output in cell["outputs"]):
                expect(lite.output(number).locator(STATIC)).to_be_visible()
                expect(lite.output(number).get_by_role("button", name="Stop")).to_have_count(0)
        lite.page.keyboard.press("Control+s")
        lite.picture("ran")
        lite.open(kernel=False)
        asks = next(number for number, cell in enumerate(SHOWN) if "".join(cell["source"]).startswith("%%toolchat"))
        lite.cell(asks).scroll_into_view_if_needed()
        expect(lite.cell(asks).locator(".jp-InputPrompt").first).to_have_text(re.compile(r"^\[\d+\]:$"))
        expect(lite.output(asks).locator(STATIC)).to_be_visible()
        expect(lite.output(asks)).to_contain_text("Paris")
        assert lite.asked == []
        assert lite.problems == []


def test_a_call_is_approved_in_its_card_and_stop_ends_the_run(chromium: Browser, site: Path) -> None:
    with demo(chromium, site) as lite:
        lite.open()
        lite.run(1)
        lite.run(3)
        lite.start(5, "%%toolchat --approve ask\nWhat is the weather in Paris for 2 days?")
        panel = lite.page.get_by_role("group", name="May weather run?")
        expect(panel).to_be_visible(timeout=PATIENCE)
        panel.scroll_into_view_if_needed()
        lite.picture("approval")
        panel.get_by_role("button", name="Approve", exact=True).click()
        expect(lite.output(5)).to_contain_text("weather for Paris gave")
        expect(lite.output(5).locator(STATIC)).to_be_visible()
        lite.start(5, "%%toolchat\nWhat is the weather in Paris, Lisbon, Oslo and Kyoto?")
        lite.output(5).get_by_role("button", name="Stop").click()
        expect(lite.output(5)).to_contain_text("Stopped.")
        expect(lite.output(5).locator(STATIC)).to_be_visible()
        assert lite.problems == []


def test_a_browser_that_cannot_switch_stacks_shows_no_stop_button_and_asks_below_the_cell(
    chromium: Browser, site: Path
) -> None:
    with demo(chromium, site, has_jspi=False) as lite:
        lite.open()
        lite.run(1)
        lite.run(3)
        lite.start(5, "%%toolchat --approve ask\nWhat is the weather in Paris for 2 days?")
        question = lite.output(5).locator("input.jp-Stdin-input")
        expect(question).to_be_visible(timeout=PATIENCE)
        expect(lite.output(5)).to_contain_text("a run cannot be stopped")
        expect(lite.output(5).get_by_role("button", name="Stop")).to_have_count(0)
        question.fill("y")
        question.press("Enter")
        expect(lite.output(5)).to_contain_text("weather for Paris gave", timeout=PATIENCE)
        expect(lite.output(5).locator(STATIC)).to_be_visible()
