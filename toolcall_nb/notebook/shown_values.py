"""The values that the running cell has shown live, and so does not display again: `is_on_screen`."""

from __future__ import annotations

from typing import Any

from toolcall_nb.notebook.environment import Environment, find_environment
from toolcall_nb.tools.ipython_shell import ipython_shell

_shown: list[tuple[Any, object]] = []
"""Cells and the values that they have shown. Only those of the last cell that showed any are kept."""


def running_cell() -> Any:
    """Returns what stands for the run of the running cell: IPython's number of it, or marimo's object. Else None."""
    shell = ipython_shell()
    if find_environment(shell) is Environment.MARIMO:
        from toolcall_nb.notebook.cell_outputs import running_marimo_cell

        return running_marimo_cell()[1]
    return getattr(shell, "execution_count", None)


def note_shown(value: object, cell: Any) -> None:
    """Notes that a run of a cell, as `running_cell` returned it, has shown the value."""
    _shown[:] = [*(pair for pair in _shown if pair[0] == cell), (cell, value)]


def is_on_screen(value: object) -> bool:
    """Whether the running cell has shown this very object already."""
    cell = running_cell()
    return any(value is each and shown_in == cell for shown_in, each in _shown)
