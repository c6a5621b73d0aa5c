"""pydantic-ai: streams of its models and agents, their results, and lists of messages."""

from __future__ import annotations

from toolcall_nb.adapters.pydantic_ai.stream import FORMAT, PydanticAIAdapter, items_of

__all__ = ["FORMAT", "PydanticAIAdapter", "items_of"]
