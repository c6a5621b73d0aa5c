"""Starts Firefox for Playwright, over the protocol WebDriver BiDi; its main entry point is `running_firefox`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Playwright

from tests.support.environments import ROOT

__all__ = ["running_firefox"]

_NAMES = ("firefox-esr", "firefox")
_PROGRAM = """#!/bin/sh
cd '{root}' && exec '{python}' -m tests.browser.firefox_relay "$@"
"""


def _find_firefox() -> str:
    """Returns the path of a Firefox; raises `FileNotFoundError` with advice if there is none."""
    found = os.environ.get("TOOLCALL_NB_FIREFOX") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise FileNotFoundError(
            "These tests need Firefox: ./dev test --all installs it. Or set TOOLCALL_NB_FIREFOX to its path."
        )
    return found


@contextmanager
def running_firefox(playwright: Playwright) -> Iterator[Browser]:
    """Runs a headless Firefox inside the block, with a fresh profile. Its pages have the interface of Chromium's."""
    with TemporaryDirectory() as folder:
        program = Path(folder) / "firefox"
        program.write_text(_PROGRAM.format(root=ROOT, python=sys.executable))
        program.chmod(0o755)
        browser = playwright.firefox.launch(
            channel="moz-firefox",  # the one that speaks BiDi; Playwright's own Firefox is patched
            executable_path=program,
            env={**os.environ, "TOOLCALL_NB_FIREFOX": _find_firefox()},
        )
        try:
            yield browser
        finally:
            browser.close()
