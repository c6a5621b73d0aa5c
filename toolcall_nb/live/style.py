"""The CSS of a run: the renderer's, and a little for what stands around a transcript."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from re import sub

from toolcall_nb.render.page import stylesheet

__all__ = ["page_css", "run_css"]


@cache
def run_css() -> str:
    """What a run adds to the renderer's style: the line below it, and corrections for JupyterLab."""
    return _read("run.css")


@cache
def page_css() -> str:
    """All that a live run needs; also what only a live run can show."""
    return stylesheet() + run_css() + _read("ask.css")


def _read(name: str) -> str:
    css = files("toolcall_nb.live").joinpath("static", name).read_text("utf-8")
    return sub(r"\s+", " ", sub(r"/\*.*?\*/", "", css.replace("\n", " "))).strip()
