"""One JupyterLab and one Chromium for all tests of this folder; a page of its own for each."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.browser import Notebook, running_browser
from tests.browser.jupyter import Server, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if os.environ.get("TOOLCALL_NB_BROWSER") == "skip":
        pytest.skip("the browser tests, as TOOLCALL_NB_BROWSER=skip wants it")
    with running_server(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


_numbers = itertools.count(1)


@pytest.fixture
def notebook(server: Server, chromium: Browser) -> Iterator[Callable[..., Notebook]]:
    """Make a notebook of cells and open it in a page; its kernel ends with the test."""
    context = chromium.new_context(viewport={"width": 1100, "height": 900})

    def make(*cells: str) -> Notebook:
        return Notebook(server, context, server.write(f"test-{next(_numbers)}.ipynb", *cells)).open()

    yield make
    context.close()
    server.shut_down_kernels()
