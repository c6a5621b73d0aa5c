"""Ollama's own API."""

from __future__ import annotations

from toolcall_nb.adapters.ollama.chat import FORMAT, OllamaAdapter

__all__ = ["FORMAT", "OllamaAdapter"]
