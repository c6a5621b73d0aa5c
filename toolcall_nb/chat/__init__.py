"""The chat: the only loop from the model to events, to tools, and back to the model."""

from __future__ import annotations

from toolcall_nb.chat.calls import Approve
from toolcall_nb.chat.conversation import Chat
from toolcall_nb.tools import Decision, Grants

__all__ = ["Approve", "Chat", "Decision", "Grants"]
