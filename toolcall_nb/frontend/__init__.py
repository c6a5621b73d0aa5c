"""The front end: the ES modules and the CSS that draw a run in a notebook and on the server's page.

`MODULE` is the live transcript, which anywidget loads in a notebook and ``page.js`` on the server's page. It is built from
the modules in ``src/`` by ``./dev frontend``. The CSS of the cards themselves is ``render/style.css``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from re import sub

from toolcall_nb.render.html_output.page import stylesheet

__all__ = ["MODULE", "page_css", "read_asset", "run_css"]

_FOLDER = Path(__file__).parent
MODULE = _FOLDER / "transcript.js"
"""The ES module that draws a live transcript."""


@cache
def read_asset(name: str) -> str:
    """Returns the text of one of the files in this folder."""
    return (_FOLDER / name).read_text("utf-8")


@cache
def run_css() -> str:
    """Returns the CSS for the surroundings of a transcript: the line below it, and corrections for JupyterLab."""
    return _without_comments("run.css")


@cache
def page_css() -> str:
    """Returns all CSS of a live run: the renderer's, `run_css`, and that of the form that asks for approval."""
    return stylesheet() + run_css() + _without_comments("ask.css")


def _without_comments(name: str) -> str:
    return sub(r"\s+", " ", sub(r"/\*.*?\*/", "", read_asset(name).replace("\n", " "))).strip()
