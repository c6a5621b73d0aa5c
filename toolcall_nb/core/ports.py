"""Functions of upper rooms by which values of the core draw and write themselves: `port` returns one.

The package's ``__init__`` names these functions with `open_ports`. Python runs it before any module of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_paths: dict[str, str] = {}


def open_ports(modules: Mapping[str, str]) -> None:
    """Says in which module the function of each name is."""
    _paths.update(modules)


def port(name: str) -> Callable[..., Any]:
    """Returns the function of this name. Its module is imported when it is first needed."""
    function: Callable[..., Any] = getattr(import_module(_paths[name]), name)
    return function
