"""Approvals: who is asked whether a tool call may run, what the answer is, and how long it holds.

decisions.py         the modes and scopes, the `Decision` about one call, and `RememberedApprovals`
gate.py              `ApprovalGate`: the chat asks it before each call
edited_arguments.py  the one check of arguments that a person or a program has edited
page.py              `PageApprovals`: asks in a page, with buttons
terminal.py          `TerminalApprover`: asks in a terminal, by keys
"""

from __future__ import annotations

from toolcall_nb.approvals.decisions import (
    APPROVAL_MODES,
    APPROVAL_SCOPES,
    ApprovalMode,
    ApprovalScope,
    Approver,
    Decision,
    RememberedApprovals,
)

__all__ = [
    "APPROVAL_MODES",
    "APPROVAL_SCOPES",
    "ApprovalMode",
    "ApprovalScope",
    "Approver",
    "Decision",
    "RememberedApprovals",
]
