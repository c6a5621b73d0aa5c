"""Defines a tool's `Parameter`, and the errors about parameters and arguments."""

from __future__ import annotations

import inspect
from typing import Any

from msgspec import Struct

from toolcall_nb.core.events import Json


class Parameter(Struct, frozen=True):
    """One parameter: its type as annotated, and whether it is required.

    ``argument`` is the name that the model uses; it differs from ``name`` where the author declared an alias.
    """

    name: str
    argument: str
    type: Any
    kind: inspect._ParameterKind
    required: bool
    default: Any = None
    description: str | None = None

    @property
    def is_rest(self) -> bool:
        """Whether it is ``**options``, which takes all arguments that no other parameter takes."""
        return self.kind is inspect.Parameter.VAR_KEYWORD


class Unsupported(Exception):
    """A schema library does not support a type; ``parameter`` is the parameter's name, where it is known."""

    def __init__(self, parameter: str | None, reason: str) -> None:
        super().__init__(reason)
        self.parameter = parameter
        self.reason = reason


class WrongArguments(Exception):
    """The arguments of a call do not fit the parameters; ``problems`` holds one line for each that is wrong."""

    def __init__(self, tool: str, problems: list[str]) -> None:
        self.problems = problems
        lines = "".join(f"\n- {problem}" for problem in problems)
        super().__init__(f"The arguments of {tool!r} are wrong:{lines}")


def json_type(value: Json) -> str:
    """Names the JSON type of a value in words."""
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array"}
    return names.get(type(value), "an object")
