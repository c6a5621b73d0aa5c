"""The built-in tools ``edit``, ``show`` and ``bash``, made by `built_in_tool`. A model gets only those it is given.

edit.py, show_file.py, bash.py   one tool each
shell_command.py                 runs a command as a process group, for ``bash``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcall_nb.tools.built_in import bash, edit, show_file
from toolcall_nb.tools.definition import Tool

__all__ = ["BUILT_IN_NAMES", "built_in_tool"]

_FUNCTIONS: dict[str, Callable[..., Any]] = {"edit": edit.edit, "show": show_file.show_file, "bash": bash.bash}

BUILT_IN_NAMES = tuple(_FUNCTIONS)
"""The names of the built-in tools, in the order of seed 004."""


def built_in_tool(name: str) -> Tool | None:
    """Returns the tool ``edit``, ``show`` or ``bash``; None for any other name.

    registry.add(built_in_tool("show"))
    """
    function = _FUNCTIONS.get(name)
    return None if function is None else Tool.from_function(function, name=name)
