"""VS Code's and Colab's outputs with a real kernel, for the scenarios of `tests.browser.front_end_scenarios`.

Each page has the marks and styles of a dark theme, and the front end's way to draw widgets. In place of the front end
itself, JupyterLab's client talks to the kernel.

VS Code's widgets are drawn by its own published manager (@vscode/jupyter-ipywidgets8), which has require.js and takes
anywidget's script from the Python package, as VS Code finds it there.

Colab's widgets are drawn by a manager of the packages that Colab's has, if the metadata of the output names a manager;
anywidget's script is that of the npm package. The kernel has the versions of Colab's own list, and a module with the
public functions of `google.colab.output`.
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

from playwright.sync_api import BrowserContext, Locator, Page, Route

from tests.browser.front_ends import FrontEnd, OpenRun, RunningFrontEnd
from tests.browser.hosted_contracts import CONTRACTS
from tests.browser.jupyter import JUPYTERLAB, Server, running_server
from tests.support import environments
from tests.support.environments import ROOT, installed_versions, make_environment

__all__ = ["COLAB", "VS_CODE", "running_hosted"]

VS_CODE = FrontEnd("VS Code", "ipykernel 7")
COLAB = FrontEnd("Colab", "ipykernel 6")

_SOURCES = Path(__file__).parent / "hosted_pages"
_TOOLS = ("@jupyterlab/services@7.6.6", "requirejs@2.3.8", "esbuild@0.28.2")
_OF_COLAB = ("base@5.0.0-alpha.3", "base-manager@1.0.0-alpha.2", "controls@4.0.0-alpha.3")
_MANAGER = "@vscode/jupyter-ipywidgets8@1.0.9"
_ANYWIDGET = "anywidget@0.9.21"
_NBEXTENSIONS = Path(sys.prefix) / "share" / "jupyter" / "nbextensions"
_WHITE_BOX = ".cell-output-ipywidget-background { background: white !important }"
_CONNECT = """async ([base, order, script]) => {
    const { Outputs, execute } = await import("./cell.js");
    let draw = async () => { throw new Error("no kernel has the model") };
    if (script) {
        const addresses = { baseUrl: base, wsUrl: base.replace("http", "ws") };
        const settings = { ...addresses, token: "only-for-tests", appendToken: true };
        const serverSettings = services.ServerConnection.makeSettings(settings);
        window.kernel = await new services.KernelManager({ serverSettings }).startNew({ name: "python3" });
        const { widgets } = await import(script);
        draw = await widgets(kernel, { anywidget: "anywidget.js" });
    }
    window.outputs = new Outputs(document.getElementById("outputs"), order, draw);
    window.execute = execute;
}"""
_GOOGLE_COLAB = """
import sys, types
_VIEW = "application/vnd.jupyter.widget-view+json"
_google, _colab, _output = (types.ModuleType(name) for name in ("google", "google.colab", "google.colab.output"))
_output._widgets = types.SimpleNamespace(_installed_url=None)

def enable_custom_widget_manager():
    def add_manager(message):
        content = message["content"]
        if _VIEW in content.get("data", {}):
            content["metadata"][_VIEW] = {"colab": {"custom_widget_manager": {"url": "https://manager.test/"}}}
        return message

    if _output._widgets._installed_url is None:
        _output._widgets._installed_url = "https://manager.test/"
        get_ipython().display_pub.register_hook(add_manager)

_output.enable_custom_widget_manager = enable_custom_widget_manager
_google.colab, _colab.output = _colab, _output
sys.modules.update({module.__name__: module for module in (_google, _colab, _output)})
"""
"""The public functions of the module that Colab's kernel has imported (googlecolab/colabtools, output/_widgets.py)."""


class _Hosted(RunningFrontEnd):
    def __init__(self, front_end: FrontEnd, versions: dict[str, str], context: BrowserContext, server: Server) -> None:
        super().__init__(front_end, versions, context)
        self._server = server

    def _open(self, name: str, *cells: str) -> OpenRun:
        return _Run(self._context.new_page(), self._server, self.front_end, name, *cells)


class _Run:
    """A cell in a front end."""

    def __init__(self, page: Page, server: Server, front_end: FrontEnd, name: str, setup: str, cell: str) -> None:
        self.page = page
        self._server, self._name, self._cell = server, name, cell
        self._order = list(CONTRACTS[front_end.program].order)
        self._folder = f"{server.base}/static/hosted/"
        self._script = f"{self._folder}{'colab.bundle.js' if front_end == COLAB else 'vs_code.js'}"
        self.page.route("https://cdn.jsdelivr.net/npm/anywidget@*/dist/index.js", self._answer_with_anywidget)
        self.page.goto(f"{self._folder}page.html?token=only-for-tests")
        self._connect(is_live=True)
        assert page.evaluate("code => execute(kernel, code, null)", setup) == "ok"

    def _connect(self, *, is_live: bool) -> None:
        code = _CONNECT.replace('"./', f'"{self._folder}')
        self.page.evaluate(code, [f"{self._server.base}/", self._order, self._script if is_live else ""])

    def _answer_with_anywidget(self, route: Route) -> None:
        route.fulfill(
            response=self.page.request.get(f"{self._folder}anywidget.js"), headers={"access-control-allow-origin": "*"}
        )

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
def running_hosted(front_end: FrontEnd, home: Path, context: BrowserContext) -> Iterator[RunningFrontEnd]:
    """Runs a server for the front end's page and its kernels inside the block."""
    pages = home / "pages" / "hosted"
    pages.mkdir(parents=True)
    tools = _Tools(home / "scripts", pages)
    python = Path(sys.executable)
    if front_end == COLAB:
        python = make_environment(home, str(ROOT), "jupyterlab", *environments.COLAB)
        tools.make_colab()
    else:
        tools.make_vs_code()
    contract = CONTRACTS[front_end.program]
    loader = "<script src=require.js></script>" if front_end == VS_CODE else ""
    theme = contract.themes["dark"]
    (pages / "page.html").write_text(
        f"<!DOCTYPE html><html lang=en {theme.html}><head><meta charset=utf-8>"
        f"<style>{contract.style}{_WHITE_BOX}</style>{loader}<script src=services.bundle.js></script></head>"
        f"<body {theme.body}><div id=widgets></div><div id=outputs></div></body></html>"
    )
    versions = installed_versions(python, "ipykernel", "ipywidgets", "anywidget")
    settings = {"ServerApp.extra_static_paths": [str(home / "pages")]}
    with running_server(home / "server", settings, JUPYTERLAB._replace(python=str(python))) as server:
        if front_end == COLAB:
            startup = Path(server.environment["IPYTHONDIR"]) / "profile_default" / "startup"
            startup.mkdir(parents=True, exist_ok=True)
            (startup / "colab.py").write_text(_GOOGLE_COLAB)
        yield _Hosted(front_end, versions, context, server)


class _Tools:
    """Gets packages from the registry of npm, and puts the scripts of a page into ``pages``."""

    def __init__(self, folder: Path, pages: Path) -> None:
        self._folder, self._pages = folder, pages
        folder.mkdir()
        for source in _SOURCES.glob("*.js"):
            shutil.copy(source, folder)
            shutil.copy(source, pages)
        self._install(*_TOOLS)
        self._bundle("services", "iife")
        shutil.copy(folder / "node_modules" / "requirejs" / "require.js", pages)

    def make_vs_code(self) -> None:
        """VS Code's manager, and the script that VS Code finds in the package anywidget by its ``extension.js``."""
        (self._pages / "ipywidgets.js").write_bytes(self._packed(_MANAGER, "dist/ipywidgets.js"))
        extension = (_NBEXTENSIONS / "anywidget" / "extension.js").read_text("utf-8")
        found = re.search(r"requirejs\?\.config\(\{.*?anywidget: \"nbextensions/([\w/]+)\"", extension, re.DOTALL)
        assert found is not None
        shutil.copy(_NBEXTENSIONS / f"{found[1]}.js", self._pages / "anywidget.js")

    def make_colab(self) -> None:
        """The manager with Colab's packages, and the script of the version of anywidget that Colab has."""
        self._install(*(f"@jupyter-widgets/{package}" for package in _OF_COLAB))
        self._bundle("colab", "esm")
        (self._pages / "anywidget.js").write_bytes(self._packed(_ANYWIDGET, "dist/index.js"))

    def _install(self, *packages: str) -> None:
        quiet = ("--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(self._folder))
        subprocess.run(["npm", "install", *quiet, *packages], cwd=self._folder, check=True)

    def _bundle(self, name: str, form: str) -> None:
        program = self._folder / "node_modules" / ".bin" / "esbuild"
        options = (
            "--bundle",
            f"--format={form}",
            "--define:global=window",
            "--loader:.svg=dataurl",
            "--log-level=error",
        )
        target = f"--outfile={self._pages / f'{name}.bundle.js'}"
        subprocess.run([str(program), f"{name}.js", *options, target], cwd=self._folder, check=True)

    def _packed(self, package: str, name: str) -> bytes:
        command = ["npm", "pack", "--json", "--loglevel=error", package]
        ran = subprocess.run(command, cwd=self._folder, check=True, capture_output=True, text=True)
        (packed,) = re.findall(r'"filename": "([^"]+)"', ran.stdout)
        with tarfile.open(self._folder / packed) as archive:
            file = archive.extractfile(f"package/{name}")
            assert file is not None
            return file.read()
