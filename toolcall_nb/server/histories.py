"""Continues a chat from the conversation that a request sends: `merge_history`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.errors import ToolcallError
from toolcall_nb.server.responses import Problem


def merge_history(chat: Chat, history: Sequence[Message]) -> None:
    """Lets the chat continue from ``history``, with its own messages as far as they agree, which hold more."""
    own = chat.transcript.messages
    same = 0
    while same < min(len(own), len(history)) and _fingerprint(own[same]) == _fingerprint(history[same]):
        same += 1
    if same < max(len(own), len(history)):
        try:
            chat.load(Transcript((*own[:same], *history[same:])))
        except ToolcallError as error:
            raise Problem(409, str(error)) from None


def _fingerprint(message: Message) -> tuple[Any, ...]:
    """Returns what every wire keeps of a message; how its text is divided into parts differs between wires."""
    return message.role, "".join(message.text.split()), tuple(call.id for call in message.calls)
