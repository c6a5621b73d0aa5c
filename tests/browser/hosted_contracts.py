"""The contracts of front ends that cannot be run in a test: `CONTRACTS`, by name.

Each is what the public sources of a front end say of an output: which MIME type is chosen, the policy of the page, the
styles and the marks of the theme around it, and what is taken out of HTML. Where the sources are not public, the
contract has only what the documentation says.

| front end | source |
| --- | --- |
| VS Code | microsoft/vscode: webview/browser/pre/index.html, backLayerWebView.ts, notebookCommon.ts |
| | microsoft/vscode: extensions/notebook-renderers; microsoft/vscode-jupyter: kernels/execution/helpers.ts |
| Colab | googlecolab/colabtools: output/_widgets.py, widgets/_interactive_table.css, _history.py |
| Kaggle | Kaggle/docker-python: Dockerfile.tmpl, kaggle_requirements.txt; its editor has JupyterLab's marks |
| Databricks | its pages "IPython kernel", "ipywidgets", "Known limitations Databricks notebooks" |
| PyCharm | its page "Use interactive widgets" |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import nh3

__all__ = ["CONTRACTS", "VIEW", "Contract", "Theme", "choose"]

VIEW = "application/vnd.jupyter.widget-view+json"

_IPYWIDGETS_STYLE = (
    ":root { --jp-layout-color0: white; --jp-content-font-color1: black; --jp-ui-font-color2: rgba(0, 0, 0, .5) }"
)
"""Of @jupyter-widgets/controls, labvariables.css, which a page keeps after it has shown a widget."""
_COLAB_STYLE = "html[theme=dark] { background: #131314; color: #e3e3e3 }"

_RICH_FIRST = (VIEW, "text/html", "text/markdown", "text/plain")
_VS_CODE_STYLE = """
@layer vscode-default {
  body { background-color: transparent; color: var(--vscode-editor-foreground); margin: 0; padding: 0 20px }
  img, video { max-width: 100%; max-height: 100% }
  a, a code { color: var(--vscode-textLink-foreground) }
  code { color: #d7ba7d; background-color: #8888; padding: 1px 3px; border-radius: 4px }
}
html { background: var(--vscode-editor-background) }
table, thead, tr, th, td, tbody { border: none !important; border-spacing: 0; border-collapse: collapse }
table { width: 100% }
table, th, tr { text-align: left !important }
tr:nth-child(even) { background-color: rgba(130, 130, 130, .08) }
"""
_VS_CODE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src https: http: data:; font-src https:; connect-src https:; child-src https: data:"
)
"""The policy of the setting `notebook.experimental.enableCsp`; without it there is none."""


class Theme(NamedTuple):
    """A theme: the attributes of the elements ``html`` and ``body``, whether it is dark, and the page's background."""

    html: str = ""
    body: str = ""
    is_dark: bool = False
    background: str = ""


class Contract(NamedTuple):
    """What a front end does with an output. ``order``: MIME types, the preferred one first."""

    order: tuple[str, ...]
    themes: Mapping[str, Theme]
    policy: str = "sandbox allow-scripts"
    style: str = ""
    cleaned: Callable[[str], str] = str

    def page(self, theme: Theme, html: str) -> str:
        """Returns the page that shows an output's HTML, put in by a script as the front ends do it."""
        output = self.cleaned(html).replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
        output = output.replace("</script", "<\\/script").replace("<!--", "<\\!--")
        return (
            f"<!DOCTYPE html><html lang=en {theme.html}><head><meta charset=utf-8><style>{self.style}</style></head>"
            f"<body {theme.body}><div id=container><div><div class=output></div></div></div>"
            f"<script>document.querySelector('.output').innerHTML = `{output}`</script></body></html>"
        )


def _vs_code(kind: str, background: str, foreground: str, *, is_dark: bool) -> Theme:
    classes = f"{kind} vscode-high-contrast" if kind == "vscode-high-contrast-light" else kind
    variables = f"--vscode-editor-background: {background}; --vscode-editor-foreground: {foreground}"
    return Theme(f'style="{variables}"', f'class="{classes}" data-vscode-theme-kind="{kind}"', is_dark, background)


def _strip_style(html: str) -> str:
    """Cleans HTML as a front end does that does not trust the notebook: no style, no script, no handlers."""
    return nh3.clean(
        html, tags=nh3.ALLOWED_TAGS | {"details", "summary"}, attributes={"*": {"class"}, "details": {"open"}}
    )


_VS_CODE_THEMES = {
    "light": _vs_code("vscode-light", "#ffffff", "#3b3b3b", is_dark=False),
    "dark": _vs_code("vscode-dark", "#1f1f1f", "#cccccc", is_dark=True),
    "high contrast": _vs_code("vscode-high-contrast", "#000000", "#ffffff", is_dark=True),
    "light high contrast": _vs_code("vscode-high-contrast-light", "#ffffff", "#292929", is_dark=False),
}
_LIGHT = {"light": Theme()}

CONTRACTS: Mapping[str, Contract] = {
    "VS Code": Contract(_RICH_FIRST, _VS_CODE_THEMES, _VS_CODE_POLICY, _VS_CODE_STYLE + _IPYWIDGETS_STYLE),
    "VS Code, for a screen reader": Contract(("text/markdown", VIEW, "text/html", "text/plain"), {}),
    "VS Code, Restricted Mode": Contract(("text/markdown", "text/plain"), {}),
    "Colab": Contract(
        _RICH_FIRST,
        {"light": Theme(), "dark": Theme("theme=dark", is_dark=True)},
        style=_COLAB_STYLE + _IPYWIDGETS_STYLE,
    ),
    "Kaggle": Contract(
        _RICH_FIRST,
        {
            "light": Theme(body="data-jp-theme-light=true"),
            "dark": Theme(body="data-jp-theme-light=false", is_dark=True),
        },
    ),
    "Databricks": Contract(_RICH_FIRST, _LIGHT),
    "PyCharm, trusted": Contract(_RICH_FIRST, _LIGHT),
    "PyCharm, not trusted": Contract(("text/html", "text/plain"), _LIGHT, cleaned=_strip_style),
}


def choose(contract: Contract, bundle: Mapping[str, object]) -> str:
    """Returns the MIME type of the bundle that the front end shows."""
    return next(kind for kind in contract.order if kind in bundle)
