"""A tool: a Python function that a model may call, with its name, description and JSON schema."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from toolcall_nb.core.events import Json, Object
from toolcall_nb.core.result_text import RESULT_LIMIT
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.docstrings import read_docstring
from toolcall_nb.tools.progress import Tell
from toolcall_nb.tools.running import Binding, Outcome, run
from toolcall_nb.tools.schema import describe

__all__ = ["Tool", "as_tool", "is_function", "made_tool", "mark", "origin_of"]

_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}")
_TOOL_ATTRIBUTE = "__toolcall__"


class Tool(Struct, frozen=True, eq=False, kw_only=True):
    """What a model may call.

    ``parameters`` is a JSON Schema (draft 2020-12) of type object. ``origin`` is ``module:qualname`` of the
    function: by it a cell that is run again replaces its own tool.

    ``timeout`` is the number of seconds that a call may take, None for any. ``parallel`` says that calls may run
    beside others, in threads of their own. ``limit`` is how many characters of a result the model is told.
    """

    name: str
    description: str
    parameters: Object
    function: Callable[..., Any]
    signature: Binding
    origin: str
    timeout: float | None = None
    parallel: bool = False
    limit: int = RESULT_LIMIT

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.timeout is not None and not (_is_number(self.timeout) and self.timeout > 0):
            raise UsageError(f"A timeout is a number of seconds above 0, or None, but is {self.timeout!r:.100}.")
        if not (isinstance(self.limit, int) and _is_number(self.limit) and self.limit >= 0):
            raise UsageError(f"A limit is a number of characters, at least 0, but is {self.limit!r:.100}.")

    def __repr__(self) -> str:
        return f"<Tool {self.name}({', '.join(self.parameters['properties'])})>"

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        parallel: bool = False,
        limit: int = RESULT_LIMIT,
    ) -> Tool:
        """The tool that a function is; raises `UsageError` where a model could not call it."""
        if not callable(function):
            raise UsageError(f"A tool is a function, but got {function!r:.100}.")
        name = name if name is not None else getattr(function, "__name__", type(function).__name__)
        documentation = read_docstring(function)
        signature = describe(function, name, documentation.parameters)
        return cls(
            name=name,
            description=description if description is not None else documentation.description,
            parameters=signature.schema,
            function=function,
            signature=signature,
            origin=origin_of(function),
            timeout=timeout,
            parallel=parallel,
            limit=limit,
        )

    def run(self, arguments: Json, tell: Tell | None = None, whole: str = "") -> Outcome:
        """Call the function with a JSON object of arguments. Only `KeyboardInterrupt` gets out.

        ``tell`` gets what the tool prints and displays and what it has so far, while it runs; without it the tool
        prints where everybody does. ``whole`` is where the caller keeps the value, for what the output leaves out.
        """
        return run(self.function, self.signature, arguments, tell, timeout=self.timeout, limit=self.limit, whole=whole)


def as_tool(thing: Tool | Callable[..., Any]) -> Tool:
    """The tool itself, the tool that ``@tool`` made of a function, or a new one."""
    made = made_tool(thing)
    return made if made is not None else Tool.from_function(thing)  # type: ignore[arg-type] # a Tool was made before


def made_tool(thing: Any) -> Tool | None:
    """Returns the tool itself, or the one that ``@tool`` made of a function; None for anything else."""
    if isinstance(thing, Tool):
        return thing
    try:
        made = vars(thing).get(_TOOL_ATTRIBUTE)
    except TypeError:  # it has no attributes of its own
        return None
    return made if isinstance(made, Tool) else None


def is_function(thing: Any) -> bool:
    """Whether something can be called and is no class."""
    return callable(thing) and not isinstance(thing, type)


def origin_of(function: Any) -> str:
    """Returns ``module:qualname`` of a function, or of the type of what can be called."""
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function))}"


def mark(function: Callable[..., Any], made: Tool) -> None:
    """Remember on the function which tool it is, where it lets itself be marked (a built-in does not)."""
    try:
        setattr(function, _TOOL_ATTRIBUTE, made)
    except AttributeError:
        return


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "<lambda>":
        raise UsageError(
            f"{name!r:.100} is no name for a tool. Give one of up to 128 characters without blanks: @tool(name=…)."
        )
