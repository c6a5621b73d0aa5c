"""One JupyterLab and one Chromium for all tests of this folder; pages of its own for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.browser.browser import VIEWPORT, Notebook, profile_of, running_browser
from tests.browser.jupyter import Server, running_server
from tests.browser.script import ASK, NEXT, setup


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if os.environ.get("TOOLCALL_NB_BROWSER") == "skip":
        pytest.skip("the browser tests, as TOOLCALL_NB_BROWSER=skip wants it")
    with running_server(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if os.environ.get("TOOLCALL_NB_BROWSER") == "skip":
        pytest.skip("the browser tests, as TOOLCALL_NB_BROWSER=skip wants it")
    with running_browser() as browser:
        yield browser


_numbers = itertools.count(1)


class Lab:
    """Makes notebooks and opens them in pages."""

    def __init__(self, server: Server, context: BrowserContext) -> None:
        self.server = server
        self.context = context
        self.opened: list[Notebook] = []

    def write(self, *cells: str) -> str:
        """A notebook with the first cell of `tests.browser.script`, and these."""
        name = f"test-{next(_numbers)}.ipynb"
        return self.server.write(name, setup(name), *cells)

    def page(self, name: str) -> Notebook:
        """The notebook in a page of its own."""
        self.opened.append(Notebook(self.server, self.context, name))
        return self.opened[-1]

    def asking(self, options: str = "") -> Notebook:
        """A notebook whose cell 1 begins the scripted turn, open and set up; below it a cell, and a next turn."""
        notebook = self.page(self.write(ASK.format(options=options), "print('below')", NEXT)).open()
        notebook.run(0)
        return notebook


def _used(server: Server, context: BrowserContext) -> Iterator[Lab]:
    lab = Lab(server, context)
    yield lab
    problems = [problem for notebook in lab.opened for problem in notebook.problems]
    for notebook in lab.opened:
        notebook.page.close()
    server.shut_down_kernels()
    assert problems == []


@pytest.fixture
def lab(server: Server, chromium: Browser) -> Iterator[Lab]:
    """Pages in the browser's own profile."""
    yield from _used(server, profile_of(chromium))


@pytest.fixture
def lab_apart(server: Server, chromium: Browser) -> Iterator[Lab]:
    """Pages in a context of their own: for who changes what a context gives its pages."""
    with chromium.new_context(viewport=VIEWPORT) as context:
        yield from _used(server, context)
