"""Anthropic's Messages API: streams and replies, and lists of messages."""

from __future__ import annotations

from toolcall_nb.adapters.anthropic.messages import ANTHROPIC_MESSAGES, anthropic_messages
from toolcall_nb.adapters.anthropic.stream import ANTHROPIC, AnthropicAdapter, request_counts

__all__ = ["ANTHROPIC", "ANTHROPIC_MESSAGES", "AnthropicAdapter", "anthropic_messages", "request_counts"]
