"""The models that a notebook can name: objects and functions of its own, and those that have a name everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

from toolcall_nb import models
from toolcall_nb.chat import Chat
from toolcall_nb.models.callable_models import CallableModel

__all__ = ["named", "names"]

_MESSAGES = "messages"


def named(name: str, namespace: Mapping[str, Any], dialect: str) -> Any:
    """What the notebook holds under this name, a function as a model that bears it; or else the name itself.

    A variable that holds a text is another name of a model, unless a model has the variable's. A variable that is no
    model hides none of that name, and is refused otherwise, by whoever makes the model.
    """
    value = namespace.get(name)
    if value is None or isinstance(value, Chat | ModuleType):
        return name
    if not isinstance(value, type) and callable(getattr(value, "stream", None)):
        return value
    if isinstance(value, FunctionType) or (callable(value) and not _is_known(name)):
        return CallableModel(value, name, dialect=dialect)
    return name if _is_known(name) else value


def names(namespace: Mapping[str, Any]) -> list[str]:
    """The variables that most likely hold one: what streams, and functions whose first parameter is ``messages``."""
    return [name for name, value in namespace.items() if not name.startswith("_") and _is_likely(value)]


def _is_known(name: str) -> bool:
    return name in models.model_names()


def _is_likely(value: Any) -> bool:
    if isinstance(value, FunctionType):
        return value.__code__.co_varnames[: value.__code__.co_argcount][:1] == (_MESSAGES,)
    return hasattr(type(value), "stream") and not isinstance(value, Chat | type)
