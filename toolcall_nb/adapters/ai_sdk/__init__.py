"""The AI SDK's own formats: UI message chunks and UI messages."""

from __future__ import annotations

from toolcall_nb.adapters.ai_sdk.chunks import UI_CHUNKS, UIChunksAdapter
from toolcall_nb.adapters.ai_sdk.messages import UI_MESSAGES, UIMessagesAdapter

__all__ = ["UI_CHUNKS", "UI_MESSAGES", "UIChunksAdapter", "UIMessagesAdapter"]
