"""Mistral's conversations API."""

from __future__ import annotations

from toolcall_nb.adapters.mistral.conversations import FORMAT, MistralAdapter

__all__ = ["FORMAT", "MistralAdapter"]
