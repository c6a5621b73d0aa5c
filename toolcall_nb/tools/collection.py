"""The tools that are there: a registry, the default one, and the ``@tool`` decorator that fills it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from toolcall_nb.core.result_text import RESULT_LIMIT
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.definition import Tool, as_tool, mark

__all__ = ["Registry", "registry", "tool"]

F = TypeVar("F", bound=Callable[..., Any])


class Registry(Mapping[str, Tool]):
    """Tools by name, in the order in which they were added."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for item in tools:
            self.add(item)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"<Registry: {', '.join(self) or 'no tools'}>"

    def add(self, thing: Tool | Callable[..., Any]) -> Tool:
        """Add a tool or a function. The same function again replaces its tool, as a cell that is run twice does.

        Raises `UsageError` where the name belongs to another function.
        """
        new = as_tool(thing)
        old = self._tools.get(new.name)
        if old is not None and old.origin != new.origin:
            raise UsageError(
                f"There is a tool {new.name!r} already ({old.origin}). Give the new one another name with "
                f"@tool(name=…), or take the old one out with registry.remove({new.name!r})."
            )
        self._tools[new.name] = new
        return new

    def remove(self, name: str) -> None:
        """Take a tool out; raises `UsageError` where there is none of this name."""
        self._known(name)
        del self._tools[name]

    def restrict(self, names: Iterable[str]) -> Registry:
        """A registry of these tools only, in this order; raises `UsageError` for a name that is not there."""
        return Registry(self._known(name) for name in names)

    def unknown(self, name: str) -> str:
        """One sentence for a name that is not there: what it may have meant, and what there is."""
        close = difflib.get_close_matches(name, self._tools, 1)
        there = f"Tools: {', '.join(self)}." if self._tools else "There are no tools; make one with @tool."
        return f"There is no tool {name!r:.100}." + (f" Did you mean {close[0]!r}?" if close else "") + f" {there}"

    def _known(self, name: str) -> Tool:
        found = self._tools.get(name)
        if found is None:
            raise UsageError(self.unknown(name))
        return found


registry = Registry()
"""The tools of this session: `tool` adds to it, and a chat takes them from it unless told otherwise."""


# Bare, or with options; the docstring is that of the function below.
@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    into: Registry = registry,
    timeout: float | None = None,
    parallel: bool = False,
    limit: int = RESULT_LIMIT,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    into: Registry = registry,
    timeout: float | None = None,
    parallel: bool = False,
    limit: int = RESULT_LIMIT,
) -> F | Callable[[F], F]:
    """Let models call a function: ``@tool``, or ``@tool(name=…, description=…)``.

    The schema comes from the signature, the descriptions from the docstring. The function itself is returned
    unchanged; its tool is in the registry ``into``. See `Tool` for ``timeout``, ``parallel`` and ``limit``.
    """

    def decorate(function: F) -> F:
        made = Tool.from_function(
            function, name=name, description=description, timeout=timeout, parallel=parallel, limit=limit
        )
        into.add(made)
        mark(function, made)
        return function

    return decorate if function is None else decorate(function)
