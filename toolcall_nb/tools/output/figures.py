"""Draws and closes the matplotlib figures of tools, so that each appears in the card of its own call.

A notebook shows what pyplot has open below the cell, and ``plt.show()`` shows all open figures, whoever opened them. So
`patched_streams` assigns each figure to the sink of the context in which it was opened, whose `OpenedFigures` keep it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any


def figure_of(value: Any) -> Any:
    """Returns a figure itself, or the figure of axes; None for any other value."""
    if _is_a(value, "matplotlib.axes", "Axes"):
        value = value.figure
    return value if _is_a(value, "matplotlib.figure", "Figure") else None


def draw_figure(value: Any) -> bytes | None:
    """Draws a figure as PNG, for which it has no method of its own; None for any other value."""
    if figure_of(value) is not value:
        return None
    buffer = io.BytesIO()
    value.savefig(buffer, format="png", bbox_inches="tight")
    return buffer.getvalue()


def close_figure(figure: Any) -> None:
    """Closes a figure in pyplot, which would show it again at the end of the cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and figure is not None:
        with suppress(Exception):
            pyplot.close(figure)


def open_figures() -> list[Any]:
    """Lists the figures that pyplot has open, oldest first."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    managers = helpers.Gcf.get_all_fig_managers() if helpers is not None else []
    return [manager.canvas.figure for manager in managers]


_RUNNING: set[OpenedFigures] = set()
"""The figures of the tools that run."""


class OpenedFigures:
    """The figures that a tool opens from when this object is made until `end`."""

    def __init__(self) -> None:
        self._figures: list[Any] = []
        self._open_before = frozenset(map(id, open_figures()))
        _RUNNING.add(self)

    def add(self, figure: Any) -> None:
        """Takes note of a figure that the tool has opened."""
        self._figures.append(figure)

    def take(self) -> list[Any]:
        """Returns the tool's figures that are still open, or if there are none, those of no running tool."""
        still_open = open_figures()
        figures = [figure for figure in still_open if figure in self._figures]
        if not figures:
            figures = [figure for figure in still_open if not any(figure in other._figures for other in _RUNNING)]
        self._figures.clear()
        return figures

    def take_open(self, but: Sequence[Any]) -> list[Any]:
        """Returns the figures that the tool has left open, without those in ``but``."""
        if not self._figures and {self} == _RUNNING:  # the tool imported matplotlib, which was not patched until then
            self._figures = [figure for figure in open_figures() if id(figure) not in self._open_before]
        self._figures = [figure for figure in self._figures if figure not in but]
        return self.take() if self._figures else []

    def end(self) -> None:
        """Ends the run of the tool: figures that it leaves open are no running tool's."""
        _RUNNING.discard(self)


def _is_a(value: Any, module: str, name: str) -> bool:
    """Whether a value is of a type of a package that may not be imported; nothing is imported for this."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)
