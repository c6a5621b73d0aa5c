"""Who may decide that a tool runs: the answer to the question, and what was allowed for longer than one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import MISSING, Json, Missing
from toolcall_nb.tools.definition import Tool

__all__ = ["Decision", "Grants", "Scope"]

Scope: TypeAlias = Literal["once", "chat", "always"]


class Decision(Struct, frozen=True):
    """The answer to the question whether a call may run.

    ``input`` is what it may run with, where that is not what the model asked for. ``scope`` says how far the
    permission goes: this call, this chat, or every chat of the session.
    """

    approved: bool
    reason: str | None = None
    input: Json | Missing = MISSING
    scope: Scope = "once"


_Key: TypeAlias = tuple[str, Callable[..., Any]]


class Grants:
    """The tools that may run without a question. ``always`` is shared by the chats of a session.

    A permission is for a function, not for a name: a tool that is defined anew is asked for anew.
    """

    def __init__(self, always: list[_Key] | None = None) -> None:
        self._chat: list[_Key] = []
        self._always = always if always is not None else []

    def reason(self, tool: Tool) -> str | None:
        """Why the tool may run without a question; None where it may not."""
        if _key(tool) in self._always:
            return "Always allowed for this tool."
        return "Allowed for this chat." if _key(tool) in self._chat else None

    def add(self, tool: Tool, scope: Scope) -> None:
        """Allow the tool for longer than one call; ``once`` adds nothing."""
        granted = {"once": None, "chat": self._chat, "always": self._always}[scope]
        if granted is not None and _key(tool) not in granted:
            granted.append(_key(tool))

    def clear(self) -> None:
        """Ask again for everything, in every chat that shares ``always``."""
        self._chat.clear()
        self._always.clear()


def _key(tool: Tool) -> _Key:
    return tool.name, tool.function
