"""What the place allows in which a cell runs."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["Place", "place_of"]


class Place(Enum):
    """How a run is shown."""

    LIVE = "live"
    """A notebook with a person before it: a widget, and the static form when the run has ended."""
    STATIC = "static"
    """A notebook with nobody there (nbclient, nbconvert, nbval): one display, the final one."""
    TERMINAL = "terminal"
    """IPython without a kernel."""


def place_of(shell: Any) -> Place:
    """Where ``shell`` runs its present cell.

    The execute request says whether a person can be asked: ``allow_stdin`` is true from JupyterLab and false
    from nbclient (jupyter-client's messaging specification, execute_request).
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return Place.TERMINAL
    request = kernel.get_parent("shell") if hasattr(kernel, "get_parent") else {}
    content = request.get("content") or {}
    return Place.LIVE if content.get("allow_stdin", False) else Place.STATIC
