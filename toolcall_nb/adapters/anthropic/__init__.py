"""Anthropic's Messages API: streams and replies, and lists of messages."""

from __future__ import annotations

from toolcall_nb.adapters.anthropic.messages import ANTHROPIC_MESSAGES
from toolcall_nb.adapters.anthropic.stream import ANTHROPIC, AnthropicAdapter

__all__ = ["ANTHROPIC", "ANTHROPIC_MESSAGES", "AnthropicAdapter"]
