"""Keeps former spellings of parameters, attributes and module members working, with a `DeprecationWarning`.

`renamed_parameters` decorates a function, `RenamedAttribute` is assigned in a class, and `renamed_members` makes the
``__getattr__`` of a module. Former paths of whole modules are the task of `toolcall_nb._old_paths`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast
from warnings import warn

__all__ = ["RenamedAttribute", "renamed_members", "renamed_parameters"]

_F = TypeVar("_F", bound=Callable[..., Any])


def renamed_parameters(**new_names: str) -> Callable[[_F], _F]:
    """Lets a function take keyword arguments by their former names: ``@renamed_parameters(old="new")``."""

    def decorate(function: _F) -> _F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old in sorted(kwargs.keys() & new_names.keys()):
                new = new_names[old]
                warn(f"The parameter {old!r} is now {new!r}", DeprecationWarning, stacklevel=2)
                if new in kwargs:
                    raise TypeError(f"{old!r} is the former name of {new!r}. Give one of them.")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast(_F, call)

    return decorate


class RenamedAttribute:
    """The former name of an attribute; reads and writes go to the new one."""

    def __init__(self, new: str) -> None:
        self._new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.__doc__ = f"The former name of `{self._new}`."
        self._message = f"{owner.__name__}.{name} is now {owner.__name__}.{self._new}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        warn(self._message, DeprecationWarning, stacklevel=2)
        return getattr(instance, self._new)

    def __set__(self, instance: Any, value: Any) -> None:
        warn(self._message, DeprecationWarning, stacklevel=2)
        setattr(instance, self._new, value)


def renamed_members(module: str, new_paths: Mapping[str, str], stacklevel: int = 2) -> Callable[[str], Any]:
    """Returns a ``__getattr__`` for ``module`` that finds its former members: old name, new ``package.module.name``.

    ``stacklevel`` is that of the warning: 3 if another ``__getattr__`` calls this one.
    """

    def find(name: str) -> Any:
        if name not in new_paths:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = new_paths[name].rpartition(".")
        warn(f"{module}.{name} is now {new_paths[name]}", DeprecationWarning, stacklevel=stacklevel)
        return getattr(import_module(home), new)

    return find
