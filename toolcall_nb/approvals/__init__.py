"""Approvals: who is asked whether a tool call may run, what the answer is, and how long it holds.

The terms are defined here: `ApprovalMode`, `ApprovalScope`, `Decision`, `Approver` and `RememberedApprovals`. The
command line and the magics import them when they start, so this module imports no tools.

gate.py      `ApprovalGate`: the chat asks it before each call; the check of arguments that somebody has edited
page.py      `PendingApprovals`: asks in a page, with buttons
terminal.py  `TerminalApprover`: asks in a terminal, by keys
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from msgspec import Struct

from toolcall_nb.core.events import MISSING, Json, Missing
from toolcall_nb.core.transcript import ToolCall

if TYPE_CHECKING:
    from toolcall_nb.tools.definition import Tool

__all__ = [
    "APPROVAL_MODES",
    "APPROVAL_SCOPES",
    "ApprovalMode",
    "ApprovalScope",
    "Approver",
    "Decision",
    "RememberedApprovals",
]

ApprovalMode: TypeAlias = Literal["auto", "ask", "never"]
"""Whether calls run unasked (``auto``), after somebody has approved them (``ask``), or not at all (``never``)."""

APPROVAL_MODES: tuple[ApprovalMode, ...] = get_args(ApprovalMode)

ApprovalScope: TypeAlias = Literal["once", "chat", "always"]
"""How long an approval holds: for this call, for this chat, or for every chat of the session."""

APPROVAL_SCOPES: tuple[ApprovalScope, ...] = get_args(ApprovalScope)


class Decision(Struct, frozen=True):
    """The answer to the question whether a call may run.

    ``input`` holds edited arguments, where the call is to run with other arguments than the model wrote.
    """

    approved: bool
    reason: str | None = None
    input: Json | Missing = MISSING
    scope: ApprovalScope = "once"


Approver: TypeAlias = Callable[[ToolCall], Decision]
"""A function that is asked before a call runs."""

_ToolKey: TypeAlias = tuple[str, Callable[..., Any]]


class RememberedApprovals:
    """The tools that may run without another question. The chats of a session share the list ``always``.

    An approval is for a function, not for a name: a tool that was defined again needs a new approval.
    """

    def __init__(self, always: list[_ToolKey] | None = None) -> None:
        self._chat: list[_ToolKey] = []
        self._always = always if always is not None else []

    def reason(self, tool: Tool) -> str | None:
        """Returns why the tool may run without a question; None where it may not."""
        if _key(tool) in self._always:
            return "Always allowed for this tool."
        return "Allowed for this chat." if _key(tool) in self._chat else None

    def add(self, tool: Tool, scope: ApprovalScope) -> None:
        """Remembers an approval of the tool; the scope ``once`` adds nothing."""
        remembered = {"once": None, "chat": self._chat, "always": self._always}[scope]
        if remembered is not None and _key(tool) not in remembered:
            remembered.append(_key(tool))

    def clear(self) -> None:
        """Forgets every approval, also those in the shared ``always``."""
        self._chat.clear()
        self._always.clear()


def _key(tool: Tool) -> _ToolKey:
    return tool.name, tool.function
