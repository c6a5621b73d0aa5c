"""Imports the public members of a package when they are first used: `lazy_members`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_members(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a ``__getattr__`` for ``package`` (PEP 562); ``homes`` has the module of each member.

    A module is ``.name`` in the package, or a whole path.
    """

    def find(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(homes[name], package), name)
            setattr(sys.modules[package], name, value)
            return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
