"""Opens notebooks in real marimo; the fixtures are imported by the tests."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.environments import ROOT, clean_variables, make_environment


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of an environment that has marimo."""
    return make_environment(tmp_path_factory.mktemp("environment"), str(ROOT), "marimo").parent


@contextmanager
def marimo(programs: Path, home: Path, notebook: str, mode: str = "run") -> Iterator[str]:
    """Serves a notebook in marimo, as an app or in the editor, and gives its address."""
    (home / "notebook.py").write_text(notebook, "utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [str(programs / "marimo"), mode, "notebook.py", "--headless", "--no-token", "--port", str(port)]
    address, log = f"http://127.0.0.1:{port}", home / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=home, env=clean_variables(home), stdout=output, stderr=output)
    try:
        _wait_for(address, log)
        yield address
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def opened(chromium: Browser, address: str) -> Iterator[Page]:
    """Opens a page. It must log no error until the end."""
    context = chromium.new_context()
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    try:
        page.goto(address)
        yield page
        assert problems == []
    finally:
        context.close()


def _wait_for(address: str, log: Path) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise RuntimeError(f"marimo did not start:\n{log.read_text()[-3000:]}")
