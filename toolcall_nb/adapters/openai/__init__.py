"""OpenAI's two APIs, chat completions and responses, which many other providers imitate, and its lists of messages."""

from __future__ import annotations

from toolcall_nb.adapters.openai.chat import CHAT_COMPLETIONS, OpenAIChatAdapter
from toolcall_nb.adapters.openai.message_lists import OPENAI_MESSAGES, OpenAIMessages, OpenAITurn
from toolcall_nb.adapters.openai.responses import OPENAI_RESPONSES, OpenAIResponsesAdapter

__all__ = [
    "CHAT_COMPLETIONS",
    "OPENAI_MESSAGES",
    "OPENAI_RESPONSES",
    "OpenAIChatAdapter",
    "OpenAIMessages",
    "OpenAIResponsesAdapter",
    "OpenAITurn",
]
