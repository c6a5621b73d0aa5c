"""Google's Gemini APIs: generateContent and Interactions."""

from __future__ import annotations

from toolcall_nb.adapters.google.generate_content import FORMAT, GoogleAdapter

__all__ = ["FORMAT", "GoogleAdapter"]
