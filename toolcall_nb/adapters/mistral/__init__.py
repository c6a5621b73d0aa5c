"""Mistral's conversations API; its chat completions are read as OpenAI's."""

from __future__ import annotations

from toolcall_nb.adapters.mistral.conversations import MISTRAL_CONVERSATIONS, MistralAdapter

__all__ = ["MISTRAL_CONVERSATIONS", "MistralAdapter"]
