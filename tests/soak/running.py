"""Runs many turns in JupyterLab, with reloads, and counts in between what is alive in the kernel and the page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from playwright.sync_api import expect

from tests.browser.browser import PATIENCE, Notebook
from tests.soak.notebook import MEASURE, TURNS

__all__ = ["Figures", "soak"]

Figures: TypeAlias = dict[str, int]
"""``turns`` and ``events`` so far; the kernel's ``widgets``, ``comms``, ``threads``, ``objects``, ``bytes``; the
page's ``nodes``, ``listeners``, ``heap``."""

_LOOKS = 10
"""The largest number of garbage collections; a page that never settles is measured after these."""

_PAGE = {"Nodes": "nodes", "JSEventListeners": "listeners", "JSHeapUsedSize": "heap"}


def soak(
    notebook: Notebook, rounds: int, parts: int, say: Callable[[Figures], object] = lambda _: None
) -> list[Figures]:
    """Runs ``rounds`` of all turns in ``parts``; returns figures after the first round and at the end of each part.

    After each part the notebook is saved and its page reloaded; the figures are those of the reloaded page.
    """
    notebook.run(0)
    found: list[Figures] = []
    for part in _parts(rounds, parts):
        for _ in range(part):
            _round(notebook)
        found.append(_measured(notebook))
        say(found[-1])
        notebook.save()
        notebook.open()
    return found


def _parts(rounds: int, parts: int) -> Iterator[int]:
    yield 1
    for number in range(parts):
        yield rounds * (number + 1) // parts - rounds * number // parts


def _round(notebook: Notebook) -> None:
    for cell in TURNS:
        notebook.run(cell)
        expect(notebook.output(cell).locator("[aria-live]")).to_have_count(0)
        expect(notebook.output(cell).locator(".tc-foot")).to_have_count(1)


def _measured(notebook: Notebook) -> Figures:
    """Returns the figures once the threads of the last run have ended."""
    give_up = time.monotonic() + PATIENCE / 1000
    while True:
        notebook.run(MEASURE)
        kernel: dict[str, Any] = json.loads(notebook.output(MEASURE).inner_text())
        if kernel.pop("still"):
            return {**kernel, **_page(notebook)}
        assert time.monotonic() < give_up, f"threads of finished runs are still alive: {kernel}"


def _page(notebook: Notebook) -> Figures:
    """Returns the page's figures after garbage collections, repeated until they free nothing more."""
    devtools = notebook.page.context.new_cdp_session(notebook.page)
    devtools.send("Performance.enable")
    found: list[Figures] = []
    while len(found) < 2 or (len(found) < _LOOKS and found[-1]["nodes"] != found[-2]["nodes"]):
        notebook.page.wait_for_timeout(1000)  # for JupyterLab's delayed work
        devtools.send("HeapProfiler.collectGarbage")
        metrics = {
            metric["name"]: int(metric["value"]) for metric in devtools.send("Performance.getMetrics")["metrics"]
        }
        found.append({name: metrics[key] for key, name in _PAGE.items()})
    devtools.detach()
    return found[-1]
