"""The chat: `Chat` is a conversation. The loop of its turns is in `toolcall_nb.chat.turn`."""

from __future__ import annotations

from toolcall_nb.approvals import Decision
from toolcall_nb.chat.conversation import Chat
from toolcall_nb.chat.outputs import TypedAnswer

__all__ = ["Chat", "Decision", "TypedAnswer"]
