"""The faces that are only read: an exported file, a served page, nbconvert's HTML, and JupyterLab's.

Each draws `tests.support.hostile_transcripts.document` of texts and tells what should not have been; `Face.check`
finds who is to blame.
"""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeAlias

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbformat.sign import NotebookNotary
from playwright.sync_api import BrowserContext, Page

from tests.browser.jupyter import Server
from tests.browser.sentinel import Watch, outside, provoke, reporting, strays, watched
from tests.support.hostile_transcripts import END, document
from toolcall_nb.render import to_html

__all__ = [
    "Converted",
    "Executed",
    "ExportedFile",
    "Face",
    "Lab",
    "ServedPage",
    "every_cell_drawn",
    "run",
    "serving",
    "written",
]

GROUP = 40
"""So many texts stand in one document."""
_REPOSITORY = Path(__file__).resolve().parents[2]


# A face ---------------------------------------------------------------------------------------------------------


class Face(ABC):
    """Draws texts in every place, and tells what should not have been."""

    box: str | None = None
    """What nothing may be drawn outside of, where it is not the root."""
    body = "html"
    """What holds nothing else of which the number of elements might change."""

    def __init__(self, context: BrowserContext, own: Sequence[str]) -> None:
        self.context = context
        self.watch: Watch = watched(context, own)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(180_000)
        self._plain: dict[int, Counter[str]] = {}

    @abstractmethod
    def show(self, texts: Sequence[str]) -> None:
        """Load a page with a document of the texts, and wait until it is drawn."""

    def around(self) -> Counter[str]:
        """The elements that are no part of the outputs."""
        return outside(self.page, within=self.body)

    def faults(self, texts: Sequence[str]) -> list[str]:
        """What should not have been, in words, where these texts are drawn."""
        plain = self._around_plain(texts)
        self.watch.clear()
        self.show(texts)
        provoke(self.page)
        found = [*strays(self.page, box=self.box), *_unlike(self.around(), plain)]
        ends = self.page.locator(".tc-turn > .tc-said > .tc-text", has_text=END)
        if ends.count() != len(texts):
            found.append(f"{ends.count()} ends of {len(texts)}")
        self.page.wait_for_timeout(50)  # what was asked for by then is told
        return [*self.watch.faults, *found]

    def _around_plain(self, texts: Sequence[str]) -> Counter[str]:
        """What is around a document that is harmless."""
        cells = len(grouped(texts))
        if cells not in self._plain:
            self.show_plain(cells)
            self._plain[cells] = self.around()
        return self._plain[cells]

    def show_plain(self, cells: int) -> None:
        """Load a page with a harmless document; a notebook's has as many cells."""
        self.show(["harmless"])

    def check(self, texts: Sequence[str]) -> None:
        """Draw all of them; fails with the text that is to blame, and what it did."""
        for start in range(0, len(texts), GROUP):
            some = texts[start : start + GROUP]
            found = self.faults(some)
            if found:
                guilty = self._guilty(some)
                alone = self.faults(guilty) if len(guilty) < len(some) else found
                pytest.fail(f"{guilty if alone else some!r}: {(alone or found)[:9]}")

    def _guilty(self, texts: Sequence[str]) -> Sequence[str]:
        while len(texts) > 1:
            half = texts[: len(texts) // 2]
            texts = half if self.faults(half) else texts[len(half) :]
        return texts


def _unlike(around: Counter[str], plain: Counter[str]) -> list[str]:
    more = [f"outside of the box: {kind} ({number})" for kind, number in (around - plain).items()]
    return more + [f"gone from outside of the box: {kind} ({number})" for kind, number in (plain - around).items()]


# The exported file, and the same from a server ------------------------------------------------------------------


class ExportedFile(Face):
    """`to_html` with ``page``, opened from the disk."""

    def __init__(self, context: BrowserContext, folder: Path) -> None:
        self.path = folder / "exported.html"
        super().__init__(context, [self.path.as_uri()])

    def show(self, texts: Sequence[str]) -> None:
        self.path.write_text(to_html(document(texts), page=True), "utf-8")
        self.page.goto(self.path.as_uri())

    def faults(self, texts: Sequence[str]) -> list[str]:
        found = super().faults(texts)
        also = set(self.watch.every_request) - {self.path.as_uri()}
        return [*found, *(f"asked for: {address}" for address in also)]


class ServedPage(Face):
    """The same from a server, under the strictest policy there is."""

    def __init__(self, context: BrowserContext, base: str, pages: dict[str, str]) -> None:
        super().__init__(context, [base])
        self.address = f"{base}/page"
        self.pages = pages

    def show(self, texts: Sequence[str]) -> None:
        self.pages["/page"] = to_html(document(texts), page=True)
        self.page.goto(self.address)


@contextmanager
def serving(policy: str) -> Iterator[tuple[str, dict[str, str]]]:
    """A server on loopback; gives its address, and its pages by path, to be filled."""
    pages: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = pages.get(self.path, "").encode()
            self.send_response(200 if content else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Security-Policy", policy)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", pages
        finally:
            server.shutdown()
            thread.join()


# The executed notebook ------------------------------------------------------------------------------------------


CELL = 20
"""So many texts stand in one cell; whole cells make a document."""


def grouped(texts: Sequence[str]) -> list[list[str]]:
    return [list(texts[at : at + CELL]) for at in range(0, len(texts), CELL)]


def run(texts: Sequence[str], folder: Path) -> nbformat.NotebookNode:
    """A notebook whose cells show documents of the texts, run by a kernel."""
    (folder / "texts.json").write_text(json.dumps(grouped(texts)), "utf-8")
    load = "groups = json.load(open('texts.json', encoding='utf-8'))"
    first = f"import json\nfrom tests.support.hostile_transcripts import document\n{load}"
    sources = [first, *(f"document(groups[{number}])" for number in range(len(grouped(texts))))]
    notebook = _notebook([nbformat.v4.new_code_cell(source) for source in sources])
    path = os.pathsep.join(part for part in (str(_REPOSITORY), os.environ.get("PYTHONPATH", "")) if part)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, "PYTHONPATH": path})
    return _notebook(notebook.cells[1:])


def written(groups: Sequence[Sequence[str]]) -> nbformat.NotebookNode:
    """The same, with the outputs made here: what a harmless notebook is like, and who is to blame."""
    v4 = nbformat.v4
    data = [document(group)._repr_mimebundle_() for group in groups]
    outputs = [v4.new_output("execute_result", bundle, execution_count=1) for bundle in data]
    return _notebook(
        [v4.new_code_cell(f"document(groups[{at}])", outputs=[output]) for at, output in enumerate(outputs)]
    )


def _notebook(cells: Sequence[nbformat.NotebookNode]) -> nbformat.NotebookNode:
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
        cell.execution_count = 1
        cell.metadata.clear()
        for output in cell.outputs:
            output.execution_count = 1
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook: nbformat.NotebookNode = nbformat.v4.new_notebook(metadata=about, cells=cells)
    return notebook


Executed: TypeAlias = tuple[Sequence[str], nbformat.NotebookNode]
"""Texts, and a notebook that was run with them."""


class OfNotebook(Face):
    """A face of a notebook."""

    box = ".jp-OutputArea-output"

    def __init__(self, context: BrowserContext, own: Sequence[str], executed: Executed) -> None:
        super().__init__(context, own)
        self.texts, notebook = executed
        self._cells = {tuple(group): cell for group, cell in zip(grouped(self.texts), notebook.cells, strict=True)}

    def show(self, texts: Sequence[str]) -> None:
        groups = grouped(texts)
        ran = [deepcopy(self._cells[tuple(group)]) for group in groups if tuple(group) in self._cells]
        self.open(_notebook(ran) if len(ran) == len(groups) else written(groups), len(texts))

    def show_plain(self, cells: int) -> None:
        self.open(written([["harmless"]] * cells), cells)

    @abstractmethod
    def open(self, notebook: nbformat.NotebookNode, number: int) -> None:
        """Load a page with the notebook of so many texts, and wait until it is drawn."""

    def check_executed(self) -> None:
        """What the kernel made of the texts."""
        self.check(self.texts)


class Converted(OfNotebook):
    """nbconvert's HTML, opened from the disk. What it asks for of its own (MathJax, RequireJS) it does not get."""

    def __init__(self, context: BrowserContext, folder: Path, executed: Executed) -> None:
        self.path = folder / "converted.html"
        super().__init__(context, [self.path.as_uri(), "https://cdnjs.cloudflare.com/ajax/libs/"], executed)
        context.route("https://cdnjs.cloudflare.com/**", lambda route: route.abort())
        self.asked: set[str] = set()

    def open(self, notebook: nbformat.NotebookNode, number: int) -> None:
        html, _ = HTMLExporter().from_notebook_node(notebook)  # type: ignore[no-untyped-call]  # nbconvert has none
        self.path.write_text(html, "utf-8")
        self.page.goto(self.path.as_uri())

    def faults(self, texts: Sequence[str]) -> list[str]:
        if not self.asked:
            self.show_plain(1)
            self.asked = set(self.watch.every_request)
        found = super().faults(texts)
        return [*found, *(f"asked for: {address}" for address in set(self.watch.every_request) - self.asked)]


class Lab(OfNotebook):
    """The saved notebook in JupyterLab, whose server has signed it or has never seen it."""

    body = ".jp-Notebook"
    REPORTED = (
        "script-src-attr 'none'; img-src 'self' data: blob:; frame-src 'none'; object-src 'none'; base-uri 'self'; "
        "form-action 'self'; connect-src 'self'; media-src 'none'"
    )

    def __init__(self, context: BrowserContext, server: Server, executed: Executed, *, is_trusted: bool) -> None:
        super().__init__(context, [server.base], executed)
        self.server = server
        self.is_trusted = is_trusted
        self.name = f"hostile-{'trusted' if is_trusted else 'untrusted'}.ipynb"
        reporting(self.page, f"{server.base}/doc", self.REPORTED)

    def open(self, notebook: nbformat.NotebookNode, number: int) -> None:
        if self.is_trusted:
            data = self.server.folder.parent / "jupyter_data_dir"
            data.mkdir(exist_ok=True)
            NotebookNotary(data_dir=str(data)).sign(notebook)
        else:
            notebook.metadata["of"] = "somebody else"  # another file than the one that was signed
        nbformat.write(notebook, self.server.folder / self.name)
        self.page.goto("about:blank")
        self.page.goto(self.server.page(self.name))
        last = self.page.locator(".jp-Notebook .jp-OutputArea .tc").nth(len(notebook.cells) - 1)
        last.wait_for(state="attached")
        self.page.wait_for_function(
            "([end, number]) => document.body.textContent.split(end).length > number", arg=[END, number]
        )

    def faults(self, texts: Sequence[str]) -> list[str]:
        found = super().faults(texts)
        styles = self.page.locator(".jp-OutputArea-output style").count()
        if bool(styles) is not self.is_trusted:  # JupyterLab strips them of what it does not trust
            found.append(f"{styles} styles, though the notebook should be {self.name}")
        return found


@contextmanager
def every_cell_drawn(server: Server) -> Iterator[None]:
    """JupyterLab draws also the cells that are not in sight."""
    settings = server.folder.parent / "settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"windowingMode": "none"}')
    yield
    settings.unlink()
