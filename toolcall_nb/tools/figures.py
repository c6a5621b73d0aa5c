"""Figures of matplotlib that a running tool opens: each is displayed in its own call, and closed.

What pyplot has open at the end of a cell is shown below the cell, and ``plt.show()`` shows all that is open, whoever
opened it. So a figure belongs to the listener in whose context it was opened.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

__all__ = ["close_figure", "draw_figure", "figure_of", "figure_places", "open_figures"]


def figure_of(value: Any) -> Any:
    """The figure that the value is, or the axes belong to; None for anything else."""
    if _is_a(value, "matplotlib.axes", "Axes"):
        value = value.figure
    return value if _is_a(value, "matplotlib.figure", "Figure") else None


def draw_figure(value: Any) -> bytes | None:
    """A figure as PNG, which it does not offer by itself; None for anything else."""
    if figure_of(value) is not value:
        return None
    buffer = io.BytesIO()
    value.savefig(buffer, format="png", bbox_inches="tight")
    return buffer.getvalue()


def close_figure(figure: Any) -> None:
    """Close a figure in pyplot: what is open at the end of the cell is shown below it, and so once more."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and figure is not None:
        with suppress(Exception):
            pyplot.close(figure)


def open_figures() -> list[Any]:
    """The figures that pyplot has open, oldest first."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    managers = helpers.Gcf.get_all_fig_managers() if helpers is not None else []
    return [manager.canvas.figure for manager in managers]


def figure_places(
    opened: Callable[[Any], None], show_all: Callable[[], bool]
) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Where pyplot opens and shows figures: the object, its method's name, and what makes its replacement.

    ``opened`` takes each new figure; ``show_all`` shows those of the context, or returns False where nobody listens.
    Windows of an interactive backend are left alone.
    """

    def opening(set_active: Callable[..., Any]) -> Callable[..., Any]:
        def open_figure(manager: Any) -> Any:
            opened(manager.canvas.figure)
            return set_active(manager)

        return open_figure

    def showing(show: Callable[..., Any]) -> Callable[..., Any]:
        def show_figures(*arguments: Any, **options: Any) -> Any:
            return None if not _has_windows() and show_all() else show(*arguments, **options)

        return show_figures

    helpers, pyplot = sys.modules.get("matplotlib._pylab_helpers"), sys.modules.get("matplotlib.pyplot")
    if helpers is not None and pyplot is not None and hasattr(pyplot, "show"):
        yield helpers.Gcf, "_set_new_active_manager", opening
        yield pyplot, "show", showing


def _has_windows() -> bool:
    backend = sys.modules["matplotlib.pyplot"]._get_backend_mod()
    canvas = getattr(backend, "FigureCanvas", None)
    return getattr(canvas, "required_interactive_framework", None) is not None


def _is_a(value: Any, module: str, name: str) -> bool:
    """Whether it is of a type whose package may not be there; nothing is imported for that."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)
