"""VS Code's outputs with a real kernel: `running_vs_code`, for the scenarios of `tests.browser.front_end_scenarios`.

The page has what VS Code's page of outputs has: its published widget manager (@vscode/jupyter-ipywidgets8), require.js,
the script of anywidget where VS Code finds it without a network, the marks and variables of a dark theme, and the white
box that VS Code puts widgets into. In place of VS Code's extension, JupyterLab's client talks to the kernel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Locator, Page

from tests.browser.front_ends import FrontEnd, OpenRun, RunningFrontEnd
from tests.browser.hosted_contracts import CONTRACTS
from tests.browser.jupyter import Server, running_server
from tests.support.environments import installed_versions

__all__ = ["VS_CODE", "running_vs_code"]

VS_CODE = FrontEnd("VS Code", "ipykernel 7")

_SOURCES = Path(__file__).parent / "hosted_pages"
_TOOLS = ("@jupyterlab/services@7.6.6", "requirejs@2.3.8", "esbuild@0.28.2")
_MANAGER = "@vscode/jupyter-ipywidgets8@1.0.9"
_NBEXTENSIONS = Path(sys.prefix) / "share" / "jupyter" / "nbextensions"
_WHITE_BOX = ".cell-output-ipywidget-background { background: white !important }"
_CONNECT = """async ([base, order, isLive]) => {
    const { Outputs, execute } = await import("./cell.js");
    let draw = async () => { throw new Error("no kernel has the model") };
    if (isLive) {
        const addresses = { baseUrl: base, wsUrl: base.replace("http", "ws") };
        const settings = { ...addresses, token: "only-for-tests", appendToken: true };
        const serverSettings = services.ServerConnection.makeSettings(settings);
        window.kernel = await new services.KernelManager({ serverSettings }).startNew({ name: "python3" });
        const { widgets } = await import("./vs_code.js");
        draw = await widgets(kernel, { anywidget: "anywidget.js" });
    }
    window.outputs = new Outputs(document.getElementById("outputs"), order, draw);
    window.execute = execute;
}"""


class _VsCode(RunningFrontEnd):
    def __init__(self, versions: dict[str, str], context: BrowserContext, server: Server) -> None:
        super().__init__(VS_CODE, versions, context)
        self._server = server

    def _open(self, name: str, *cells: str) -> OpenRun:
        return _Run(self._context.new_page(), self._server, name, *cells)


class _Run:
    """A cell in VS Code."""

    def __init__(self, page: Page, server: Server, name: str, setup: str, cell: str) -> None:
        self.page = page
        self._server, self._name, self._cell = server, name, cell
        self.page.goto(f"{server.base}/static/vs_code/page.html?token=only-for-tests")
        self._connect(is_live=True)
        assert page.evaluate("code => execute(kernel, code, null)", setup) == "ok"

    def _connect(self, *, is_live: bool) -> None:
        order = list(CONTRACTS["VS Code"].order)
        code = _CONNECT.replace('"./', f'"{self._server.base}/static/vs_code/')
        self.page.evaluate(code, [f"{self._server.base}/", order, is_live])

    @property
    def output(self) -> Locator:
        return self.page.locator("#outputs")

    def start(self) -> None:
        self.page.evaluate("code => { window.done = execute(kernel, code, outputs); }", self._cell)

    def pass_gate(self, name: str) -> None:
        (self._server.folder / f"gate-{self._name}-{name}").touch()

    def save_and_reopen(self) -> None:
        saved = self.page.evaluate("() => done.then(() => outputs.saved())")
        self.page.reload()
        self._connect(is_live=False)
        self.page.evaluate("saved => saved.forEach(output => outputs.add(output))", saved)


@contextmanager
def running_vs_code(home: Path, context: BrowserContext) -> Iterator[RunningFrontEnd]:
    """Runs a server for the page and its kernels inside the block."""
    pages = home / "pages" / "vs_code"
    pages.mkdir(parents=True)
    _make_scripts(home / "scripts", pages)
    theme = CONTRACTS["VS Code"].themes["dark"]
    style = CONTRACTS["VS Code"].style + _WHITE_BOX
    (pages / "page.html").write_text(
        f"<!DOCTYPE html><html lang=en {theme.html}><head><meta charset=utf-8><style>{style}</style>"
        f"<script src=require.js></script><script src=services.bundle.js></script></head>"
        f"<body {theme.body}><div id=widgets></div><div id=outputs></div></body></html>"
    )
    versions = installed_versions(Path(sys.executable), "ipykernel", "ipywidgets", "anywidget")
    with running_server(home / "server", {"ServerApp.extra_static_paths": [str(home / "pages")]}) as server:
        yield _VsCode(versions, context, server)


def _make_scripts(folder: Path, pages: Path) -> None:
    """Gets the packages from the registry, and puts the page's scripts into ``pages``."""
    folder.mkdir()
    for source in _SOURCES.glob("*.js"):
        shutil.copy(source, folder if source.name == "services.js" else pages)
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    subprocess.run(["npm", "install", "--prefix", str(folder), *quiet, *_TOOLS], cwd=folder, check=True)
    bundle = ["services.js", "--bundle", "--format=iife", "--define:global=window", "--log-level=error"]
    program = folder / "node_modules" / ".bin" / "esbuild"
    subprocess.run([str(program), *bundle, f"--outfile={pages / 'services.bundle.js'}"], cwd=folder, check=True)
    shutil.copy(folder / "node_modules" / "requirejs" / "require.js", pages)
    subprocess.run(["npm", "pack", "--loglevel=error", _MANAGER], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (packed,) = folder.glob("vscode-jupyter-ipywidgets8-*.tgz")
    with tarfile.open(packed) as archive:
        manager = archive.extractfile("package/dist/ipywidgets.js")
        assert manager is not None
        (pages / "ipywidgets.js").write_bytes(manager.read())
    # VS Code reads from a package's extension.js which script its module is.
    extension = (_NBEXTENSIONS / "anywidget" / "extension.js").read_text("utf-8")
    found = re.search(r"requirejs\?\.config\(\{.*?anywidget: \"nbextensions/([\w/]+)\"", extension, re.DOTALL)
    assert found is not None
    shutil.copy(_NBEXTENSIONS / f"{found[1]}.js", pages / "anywidget.js")
