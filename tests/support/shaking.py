"""`./dev shake`: the tests of pages on a machine that stutters, to find what hangs on who is quicker.

A pytest plugin. While the tests run, one of their processes at a time (a page, the browser, JupyterLab, a kernel, a
worker of pytest) is stopped for up to a second and goes on; the pages run at a quarter of their speed (`SLOWED`, in
`tests.browser.browser`). No test may fail by that: none asserts how soon something happens, and nothing that is shown
may hang on it.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

__all__ = ["LONGEST", "paused", "pytest_configure", "stoppable"]

LONGEST = 1.0
"""Seconds for which a process is stopped at the most."""

_APART = 0.4
_KINDS = ("--type=renderer", "chromium", "ipykernel", "jupyterlab", "pytest")
"""Told by their command lines. Each kind has the same share, however many processes it has."""

_HELPERS = ("--type=zygote", "crashpad")


@contextmanager
def paused(process: psutil.Process) -> Iterator[None]:
    """The process is stopped meanwhile, if it still is there."""
    with suppress(psutil.NoSuchProcess):
        process.suspend()
    try:
        yield
    finally:
        with suppress(psutil.NoSuchProcess):
            process.resume()


def stoppable(of: psutil.Process) -> list[list[psutil.Process]]:
    """What runs below a process, by kind."""
    found: dict[str, list[psutil.Process]] = defaultdict(list)
    for process in of.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            line = " ".join(process.cmdline())
            if not any(helper in line for helper in _HELPERS):
                found[next((kind for kind in _KINDS if kind in line), "other")].append(process)
    return list(found.values())


def _shake(over: threading.Event) -> None:
    chance, here = random.Random(), psutil.Process()
    while not over.wait(chance.uniform(0, _APART)):
        if kinds := stoppable(here):
            with paused(chance.choice(chance.choice(kinds))):
                over.wait(chance.uniform(0, LONGEST))


def pytest_configure(config: pytest.Config) -> None:
    """Shake, from the process that nobody stops."""
    if hasattr(config, "workerinput"):
        return
    over = threading.Event()
    thread = threading.Thread(target=_shake, args=(over,), name="shaking")
    thread.start()
    config.add_cleanup(thread.join)
    config.add_cleanup(over.set)  # the last is called first
