"""The tools that come with the package. None is there for a model before it is asked for by name."""

from __future__ import annotations

from toolcall_nb.tools.bash import bash
from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.edit import edit
from toolcall_nb.tools.show import show

__all__ = ["BUILTIN", "builtin"]

_FUNCTIONS = {function.__name__: function for function in (edit, show, bash)}

BUILTIN = tuple(_FUNCTIONS)
"""Their names, in the order of seed 004."""


def builtin(name: str) -> Tool | None:
    """The tool ``edit``, ``show`` or ``bash``; None for any other name.

    registry.add(builtin("show"))
    """
    function = _FUNCTIONS.get(name)
    return None if function is None else Tool.from_function(function)
