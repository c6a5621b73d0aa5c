"""Cohere's chat API, version 2."""

from __future__ import annotations

from toolcall_nb.adapters.cohere.chat import FORMAT, CohereAdapter

__all__ = ["FORMAT", "CohereAdapter"]
