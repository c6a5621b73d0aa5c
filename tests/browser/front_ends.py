"""The front ends that the scenarios of `tests.browser.front_end_scenarios` run in: `FRONT_ENDS`, `running_front_end`.

Each runs in an environment of its own, since two versions of ipykernel cannot be installed side by side.
"""

from __future__ import annotations

import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import nbformat
from playwright.sync_api import BrowserContext, Locator, Page, WebError, expect

from tests.browser.browser import VIEWPORT, Notebook
from tests.browser.jupyter import (
    JUPYTERLAB,
    Application,
    Server,
    free_port,
    jupyter_environment,
    running,
    running_server,
)
from tests.browser.jupyterhub import HUB_PACKAGES, USER, HubServer
from tests.browser.scripted_turn import setup
from tests.support.environments import ROOT, installed_versions, make_environment

__all__ = ["FRONT_ENDS", "PACKAGES", "FrontEnd", "OpenRun", "RunningFrontEnd", "running_front_end"]

_CALLBACK = """import ipywidgets
_button, _out = ipywidgets.Button(description="Ask"), ipywidgets.Output()

def _ask(_):
    with _out:
        get_ipython().run_cell({cell!r})

_button.on_click(_ask)
ipywidgets.VBox([_button, _out])
"""
_KEPT_CALLBACK = """import ipywidgets
from toolcall_nb import Transcript

_button, _out = ipywidgets.Button(description="Ask"), ipywidgets.Output()
display(ipywidgets.VBox([_button, _out]))
_saved = display(Transcript(), display_id=True)

def _ask(_):
    with _out:
        get_ipython().run_cell({cell!r})
    _saved.update(chat.transcript)
    _out.clear_output()

_button.on_click(_ask)
"""
"""Moves the finished run out of the Output widget, into an output that the notebook keeps."""
_START_WITHIN = 90.0


class FrontEnd(NamedTuple):
    """A front end with a kind of kernel. ``in_callback``: the cell shows a button, and a click on it runs the code.

    ``address`` is the path below which the server serves its pages. ``in_hub``: the server is one of JupyterHub.
    """

    program: str
    kernel: str
    in_callback: bool = False
    browser: str = "Chromium"
    address: str = "/"
    in_hub: bool = False

    @property
    def place(self) -> str:
        """The place where the code runs."""
        return "widget callback" if self.in_callback else "cell"

    @property
    def name(self) -> str:
        """The name as it is recorded."""
        hub = ["JupyterHub"] if self.in_hub else []
        return ", ".join([self.program, self.browser, self.kernel, self.place, self.address, *hub])

    @property
    def slug(self) -> str:
        """The name in ASCII, for files."""
        return "-".join(re.findall(r"[a-z0-9.]+", self.name.lower().replace("à", "a")))


PACKAGES = {
    "JupyterLab": "jupyterlab",
    "JupyterLab 4.2": "jupyterlab==4.2.*",
    "Notebook": "notebook",
    "nbclassic": "nbclassic",
    "Voilà": "voila",
}
_KERNELS = {"ipykernel 6": "ipykernel>=6.29,<7", "ipykernel 7": "ipykernel>=7"}

FRONT_ENDS = (
    FrontEnd("JupyterLab", "ipykernel 6"),
    FrontEnd("JupyterLab", "ipykernel 6", in_callback=True),
    FrontEnd("JupyterLab", "ipykernel 7"),
    FrontEnd("JupyterLab", "ipykernel 7", in_callback=True),
    FrontEnd("JupyterLab", "ipykernel 6", browser="Firefox"),
    FrontEnd("JupyterLab", "ipykernel 7", browser="Firefox"),
    FrontEnd("JupyterLab", "ipykernel 7", in_callback=True, browser="Firefox"),
    FrontEnd("JupyterLab", "ipykernel 7", address="/lab-of/ada/"),
    FrontEnd("JupyterLab", "ipykernel 7", address=f"/user/{USER}/", in_hub=True),
    FrontEnd("JupyterLab 4.2", "ipykernel 7"),
    FrontEnd("Notebook", "ipykernel 6"),
    FrontEnd("Notebook", "ipykernel 7"),
    FrontEnd("Notebook", "ipykernel 7", browser="Firefox"),
    FrontEnd("nbclassic", "ipykernel 6"),
    FrontEnd("nbclassic", "ipykernel 7"),
    FrontEnd("nbclassic", "ipykernel 7", browser="Firefox"),
    FrontEnd("Voilà", "ipykernel 6", in_callback=True),
    FrontEnd("Voilà", "ipykernel 7", in_callback=True),
    FrontEnd("Voilà", "ipykernel 7", in_callback=True, browser="Firefox"),
)


class OpenRun(Protocol):
    """A notebook that is open in a front end, with one cell that is run."""

    page: Page

    @property
    def output(self) -> Locator:
        """The place where the run is shown."""

    def start(self) -> None:
        """Starts the run."""

    def pass_gate(self, name: str) -> None:
        """Opens a gate of `tests.browser.scripted_turn`."""

    def save_and_reopen(self) -> None:
        """Saves the notebook, shuts its kernel down, and opens it in a new browser context, as another day."""


class RunningFrontEnd:
    """A front end that runs. ``versions`` are those of its packages."""

    def __init__(self, front_end: FrontEnd, versions: dict[str, str], context: BrowserContext) -> None:
        self.front_end = front_end
        self.versions = versions
        self._context = context
        self._count = 0
        self._problems: list[str] = []
        self._later: list[BrowserContext] = []
        context.on("weberror", self._note)

    def _note(self, problem: WebError) -> None:
        """Keeps an error of our module, which anywidget loads from a blob. The pages have errors of their own."""
        if "blob:" in (problem.error.stack or ""):
            self._problems.append(str(problem.error))

    @contextmanager
    def open(self, cell: str, *, is_kept: bool = False) -> Iterator[OpenRun]:
        """Opens a notebook with this cell and, before it, the setup of `tests.browser.scripted_turn`.

        ``is_kept``: a callback puts its run where the notebook keeps it.
        """
        self._count += 1
        name = f"run-{self._count}.ipynb"
        callback = _KEPT_CALLBACK if is_kept else _CALLBACK
        code = callback.format(cell=cell) if self.front_end.in_callback else cell
        run = self._open(name, setup(name), code)
        try:
            yield run
            assert not self._problems, self._problems
        finally:
            run.page.close()
            for context in self._later:
                context.close()
            self._later.clear()
            self._problems.clear()

    def later(self) -> BrowserContext:
        """Returns a new browser context, which has nothing of the first but that the person is logged in."""
        assert self._context.browser is not None
        context = self._context.browser.new_context(viewport=VIEWPORT)
        context.add_cookies(self._context.cookies())  # type: ignore[arg-type]  # what it returns, it takes
        context.on("weberror", self._note)
        self._later.append(context)
        return context

    def _open(self, name: str, *cells: str) -> OpenRun:
        raise NotImplementedError  # each kind of front end opens a notebook in its own way


class _Jupyter(RunningFrontEnd):
    """JupyterLab, Notebook 7 or nbclassic."""

    def __init__(self, front_end: FrontEnd, versions: dict[str, str], context: BrowserContext, server: Server) -> None:
        super().__init__(front_end, versions, context)
        self._server = server

    def _open(self, name: str, *cells: str) -> OpenRun:
        self._server.shut_down_kernels()
        self._server.write(name, *cells)
        kind = _ClassicRun if self.front_end.program == "nbclassic" else _LabRun
        return kind(Notebook(self._server, self._context, name), self.front_end.in_callback, self.later)


class _LabRun:
    """A notebook in JupyterLab or Notebook 7."""

    def __init__(self, notebook: Notebook, in_callback: bool, later: Callable[[], BrowserContext]) -> None:
        self._notebook = notebook.open()
        self._in_callback = in_callback
        self._later = later
        self.page = notebook.page
        notebook.run(0)
        if in_callback:
            notebook.run(1)

    @property
    def output(self) -> Locator:
        return self._notebook.output(1)

    def start(self) -> None:
        if self._in_callback:
            self.output.locator("button.jupyter-button").click()
        else:
            self._notebook.start(1)

    def pass_gate(self, name: str) -> None:
        self._notebook.pass_gate(name)

    def save_and_reopen(self) -> None:
        self._notebook.save()
        self.page.close()
        self._notebook.server.shut_down_kernels()
        self._notebook = Notebook(self._notebook.server, self._later(), self._notebook.name).open(kernel=False)
        self.page = self._notebook.page


class _ClassicRun:
    """A notebook in nbclassic, which has a page of its own."""

    def __init__(self, notebook: Notebook, in_callback: bool, later: Callable[[], BrowserContext]) -> None:
        self._notebook = notebook
        self._later = later
        self.page = notebook.page
        self._open()
        self._execute(0)
        expect(self.page.locator(".cell").nth(0).locator(".input_prompt")).to_contain_text("[1]")

    def _open(self) -> None:
        self.page.goto(self._notebook.server.page(self._notebook.name))
        self.page.wait_for_function("() => window.Jupyter?.notebook?.kernel?.is_connected()")

    def _execute(self, number: int) -> None:
        self.page.evaluate("number => Jupyter.notebook.execute_cells([number])", number)

    @property
    def output(self) -> Locator:
        return self.page.locator(".cell").nth(1).locator(".output_wrapper")

    def start(self) -> None:
        self._execute(1)

    def pass_gate(self, name: str) -> None:
        self._notebook.pass_gate(name)

    def save_and_reopen(self) -> None:
        self.page.evaluate("() => Jupyter.notebook.save_notebook()")
        self.page.close()
        self._notebook.server.shut_down_kernels()
        self.page = self._later().new_page()
        self._open()


class _Voila(RunningFrontEnd):
    """Voilà, which runs all cells when it opens a notebook, and shows only their outputs."""

    def __init__(
        self, front_end: FrontEnd, versions: dict[str, str], context: BrowserContext, folder: Path, base: str
    ) -> None:
        super().__init__(front_end, versions, context)
        self._folder, self._base = folder, base

    def _open(self, name: str, *cells: str) -> OpenRun:
        v4: Any = nbformat.v4
        notebook = v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
        notebook.cells = [v4.new_code_cell(cell, id=f"cell-{number}") for number, cell in enumerate(cells)]
        nbformat.write(notebook, self._folder / name)
        return _VoilaRun(self._context.new_page(), self._folder, name, f"{self._base}/voila/render/{name}")


class _VoilaRun:
    """A notebook in Voilà."""

    def __init__(self, page: Page, folder: Path, name: str, address: str) -> None:
        self.page = page
        self._folder, self._name = folder, name
        page.goto(address)
        expect(page.locator("button.jupyter-button")).to_be_visible()

    @property
    def output(self) -> Locator:
        return self.page.locator(".widget-output")

    def start(self) -> None:
        self.page.locator("button.jupyter-button").click()

    def pass_gate(self, name: str) -> None:
        (self._folder / f"gate-{self._name}-{name}").touch()

    def save_and_reopen(self) -> None:
        raise NotImplementedError("Voilà saves nothing, and a page that is loaded again has a new kernel")


@contextmanager
def running_front_end(front_end: FrontEnd, home: Path, context: BrowserContext) -> Iterator[RunningFrontEnd]:
    """Makes the environment of a front end, and runs the front end in it inside the block."""
    package = PACKAGES[front_end.program]
    packages = (package, *(HUB_PACKAGES if front_end.in_hub else ()))
    environment = make_environment(home, str(ROOT), _KERNELS[front_end.kernel], *packages)
    names = [name.partition("=")[0] for name in packages]
    versions = installed_versions(environment, *names, "ipykernel", "ipywidgets", "anywidget")
    python = str(environment)
    if front_end.in_hub:
        with running(HubServer(home / "server", environment)) as hub:
            page = context.new_page()
            hub.log_in(page)
            page.close()
            yield _Jupyter(front_end, versions, context, hub)
        return
    if front_end.program == "Voilà":
        with _running_voila(python, home) as (folder, base):
            yield _Voila(front_end, versions, context, folder, base)
        return
    applications = {
        "JupyterLab": JUPYTERLAB._replace(python=python),
        "JupyterLab 4.2": JUPYTERLAB._replace(python=python),
        "Notebook": Application(python, "notebook", "notebooks", {"JupyterNotebookApp.expose_app_in_browser": True}),
        "nbclassic": Application(python, "nbclassic", "notebooks", needs_config=True),
    }
    options = {"ServerApp.base_url": front_end.address}
    with running_server(home / "server", options, applications[front_end.program]) as server:
        yield _Jupyter(front_end, versions, context, server)


@contextmanager
def _running_voila(python: str, home: Path) -> Iterator[tuple[Path, str]]:
    """Runs Voilà inside the block; yields the folder of its notebooks and its address."""
    folder, base = home / "notebooks", f"http://127.0.0.1:{(port := free_port())}"
    folder.mkdir()
    command = [python, "-m", "voila", f"--port={port}", "--no-browser", "--Voila.ip=127.0.0.1", str(folder)]
    with (home / "voila.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=jupyter_environment(home)
        )
        try:
            _wait_until_it_answers(base, process)
            yield folder, base
        finally:
            process.terminate()
            process.wait(15)


def _wait_until_it_answers(base: str, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + _START_WITHIN
    while time.monotonic() < give_up and process.poll() is None:
        try:
            urllib.request.urlopen(base, timeout=5).close()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
        else:
            return
    raise RuntimeError("Voilà did not start.")
