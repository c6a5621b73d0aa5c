"""Anthropic's Messages API."""

from __future__ import annotations

from toolcall_nb.adapters.anthropic.stream import FORMAT, AnthropicAdapter, is_message

__all__ = ["FORMAT", "AnthropicAdapter", "is_message"]
