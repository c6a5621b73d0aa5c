"""Cohere's chat API, version 2."""

from __future__ import annotations

from toolcall_nb.adapters.cohere.chat import COHERE_CHAT, CohereAdapter

__all__ = ["COHERE_CHAT", "CohereAdapter"]
