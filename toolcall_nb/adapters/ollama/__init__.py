"""Ollama's own API."""

from __future__ import annotations

from toolcall_nb.adapters.ollama.chat import OLLAMA_CHAT, OllamaAdapter

__all__ = ["OLLAMA_CHAT", "OllamaAdapter"]
