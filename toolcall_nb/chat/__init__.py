"""The chat: `Chat` is a conversation. The loop of its turns is in `toolcall_nb.chat.turn`."""

from __future__ import annotations

from toolcall_nb.approvals import Decision
from toolcall_nb.chat.conversation import Chat
from toolcall_nb.chat.outputs import TypedAnswer
from toolcall_nb.core.deprecated_names import renamed_members

__all__ = ["Chat", "Decision", "TypedAnswer"]

__getattr__ = renamed_members(
    __name__,
    {
        "Approve": "toolcall_nb.approvals.ApprovalMode",
        "Grants": "toolcall_nb.approvals.RememberedApprovals",
    },
)
