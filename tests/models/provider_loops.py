"""Conversations with each provider: `LOOPS`."""

from __future__ import annotations

from tests.support.provider_bodies import NAMES

WIRES = sorted(NAMES)


LOOPS = [
    *((wire, *NAMES[wire]) for wire in WIRES),
    ("openai_chat", "groq:llama-3.3-70b-versatile", ""),
    ("openai_chat", "mistral:mistral-large-latest", ""),
    ("openai_chat", "openrouter:minimax/minimax-m2", "/v1"),
    ("openai_chat", "deepseek:deepseek-chat", ""),
    ("openai_chat", "ollama:llama3.2", "/v1"),
]
