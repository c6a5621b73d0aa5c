"""Local models, which need no key: `LOCAL`."""

from __future__ import annotations

LOCAL = ("openai-chat", "openai", "ollama")
"""The providers, as models are named, whose protocols the server speaks."""
