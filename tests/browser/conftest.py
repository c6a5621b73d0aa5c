"""One JupyterLab and one Chromium for all tests of this folder; pages of its own for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.browser.browser import VIEWPORT, KeptPage, Notebook, profile_of, running_browser
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


@pytest.fixture(scope="session")
def kept(chromium: Browser) -> KeptPage:
    """The page that the tests of a worker share, one after the other."""
    return KeptPage(profile_of(chromium))


class Lab:
    """Makes notebooks and opens them: the first in the page that is ``kept``, if any, others in pages of their own."""

    def __init__(self, server: Server, context: BrowserContext, kept: KeptPage | None = None) -> None:
        self.server = server
        self.context = context
        self.opened: list[Notebook] = []
        self._kept = kept
        self._kept_at = server

    def write(self, *cells: str) -> str:
        """A notebook with the first cell of `tests.browser.script`, and these."""
        name = f"test-{next(_numbers)}.ipynb"
        return self.server.write(name, setup(name), *cells)

    def page(self, name: str) -> Notebook:
        """The notebook, not open yet."""
        page = self._kept.take() if self._kept is not None and self.server is self._kept_at else None
        self.opened.append(Notebook(self.server, self.context, name, page))
        return self.opened[-1]

    def close(self) -> None:
        """Leaves all pages, keeps one that is at the server itself, and ends the kernels."""
        for notebook in self.opened:
            page = notebook.leave()
            if self._kept is None:
                page.close()
            else:
                self._kept.give_back(page, self._kept_at.base)
        self._kept_at.shut_down_kernels()

    def asking(self, options: str = "") -> Notebook:
        """A notebook whose cell 1 begins the scripted turn, open and set up; below it a cell, and a next turn."""
        notebook = self.page(self.write(ASK.format(options=options), "print('below')", NEXT)).open()
        notebook.run(0)
        return notebook


def _used(lab: Lab) -> Iterator[Lab]:
    yield lab
    problems = [problem for notebook in lab.opened for problem in notebook.problems]
    lab.close()
    assert problems == []


@pytest.fixture
def lab(server: Server, chromium: Browser, kept: KeptPage) -> Iterator[Lab]:
    """Pages in the browser's own profile."""
    yield from _used(Lab(server, profile_of(chromium), kept))


@pytest.fixture
def lab_apart(server: Server, chromium: Browser) -> Iterator[Lab]:
    """Pages in a context of their own: for who changes what a context gives its pages."""
    with chromium.new_context(viewport=VIEWPORT) as context:
        yield from _used(Lab(server, context))
