"""pydantic-ai: streams of its models and agents, their results, and lists of messages."""

from __future__ import annotations

from toolcall_nb.adapters.pydantic_ai.stream import PYDANTIC_AI, PydanticAIAdapter, streamed_run_items

__all__ = ["PYDANTIC_AI", "PydanticAIAdapter", "streamed_run_items"]
