"""Measures opening a saved notebook with many calls, relative to plain HTML with the same content.

The plain HTML has the same elements with the same text in the same order, without attributes (except ``open``) and
style sheets. Both notebooks have one cell with one output, are trusted, and are opened in turn in a running JupyterLab;
the time is from the command to the first frame after the layout. The same HTML is also shown in a page alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, Page

from tests.benchmarks.documents import conversation
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from tests.browser.jupyter import Server, running_server
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.render.saved_output import saved_bundle

__all__ = ["opening", "plain"]

_VOID = frozenset({"br", "hr", "img", "input"})

_IN_LAB = """async ([path, mark]) => {
    const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
    const start = performance.now();
    const opened = window.jupyterapp.commands.execute("docmanager:open", { path, factory: "Notebook" });
    while (!document.getElementById(mark)) await frame();
    document.getElementById(mark).getBoundingClientRect();
    await frame();
    const end = performance.now();
    const panel = await opened;
    await panel.sessionContext.ready.catch(() => {});
    await panel.sessionContext.shutdown().catch(() => {});
    panel.dispose();
    await frame();
    return end - start;
}"""

_ALONE = """async html => {
    const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
    document.body.replaceChildren();
    await frame();
    const start = performance.now();
    document.body.innerHTML = html;
    document.body.getBoundingClientRect();
    await frame();
    await frame();
    return performance.now() - start;
}"""


class _Plain(HTMLParser):
    """Writes the HTML that it reads, without attributes and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        if not self._in_style:
            self.pieces.append(f"<{tag} open>" if "open" in dict(attrs) else f"<{tag}>")

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID and not self._in_style:
            self.pieces.append(f"</{tag}>")
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if not self._in_style:
            self.pieces.append(escape(data, quote=False))


def plain(html: str) -> str:
    """Returns the HTML with only its elements and text."""
    parser = _Plain()
    parser.feed(html)
    parser.close()
    return "".join(parser.pieces)


def opening(browser: Browser, scale: Scale) -> Iterator[Row]:
    """Measures the ratio in JupyterLab, and in a page alone."""
    calls = scale.calls[0]
    html = saved_bundle(Transcript.from_events(conversation(calls, calls)), is_run=True)["text/html"]
    forms = {"ours": html, "plain": plain(html)}
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.set_default_timeout(120_000)
    alone = _alternating(forms, scale.fresh, lambda name: page.evaluate(_ALONE, forms[name]))
    with TemporaryDirectory() as home, running_server(Path(home)) as server:
        _write(server, Path(home), forms)
        _open_lab(page, server)
        lab = _alternating(forms, scale.fresh, lambda name: page.evaluate(_IN_LAB, [f"{name}.ipynb", f"end-of-{name}"]))
    page.close()
    name = f"opening a saved notebook with {calls:,} calls, against the same HTML without us"
    yield Row(name, lab["ours"] / lab["plain"], "times", 1.2, 1.05, _detail(lab, "in JupyterLab", len(html)))
    yield Row(
        f"{name}, in a page alone", alone["ours"] / alone["plain"], "times", detail=_detail(alone, "alone", len(html))
    )


def _detail(times: dict[str, float], where: str, size: int) -> str:
    return f"{where}: {times['ours']:,.0f} ms against {times['plain']:,.0f} ms; {size / 1e6:.1f} MB of HTML"


def _alternating(forms: dict[str, str], rounds: int, measure: Any) -> dict[str, float]:
    """Returns the medians without the first round, in which the page still compiles its scripts."""
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(rounds + 1):
        for name in forms:
            times[name].append(measure(name))
    return {name: median(each[1:]) for name, each in times.items()}


def _write(server: Server, home: Path, forms: dict[str, str]) -> None:
    """Writes and signs the notebooks, so that JupyterLab trusts them like those that it has executed."""
    data = home / "jupyter_data_dir"
    data.mkdir(exist_ok=True)
    notary = NotebookNotary(data_dir=str(data))
    for name, html in forms.items():
        path = server.folder / server.write(f"{name}.ipynb", "pass")
        notebook: Any = nbformat.read(path, 4)
        outputs = [html, f'<i id="end-of-{name}"></i>']
        v4: Any = nbformat.v4
        notebook.cells[0].outputs = [v4.new_output("display_data", {"text/html": each}) for each in outputs]
        nbformat.write(notebook, path)
        notary.sign(nbformat.read(path, 4))


def _open_lab(page: Page, server: Server) -> None:
    page.goto(server.page("").replace("/doc/tree/", "/lab"))
    page.locator(".jp-Launcher, .jp-LauncherIcon").first.wait_for()
    page.locator("#jupyterlab-splash").wait_for(state="detached")
