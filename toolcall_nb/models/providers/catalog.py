"""The providers that can be named before a colon. Source: pydantic_ai/providers/__init__.py, version 2.68.

They are written out so that a name can be checked, and completed, without importing the package.
"""

from __future__ import annotations

__all__ = ["ALIASES", "NAMES", "canonical", "is_known"]

NAMES = (
    *("openai", "openai-chat", "anthropic", "google", "ollama", "groq", "mistral", "openrouter", "deepseek"),
    *("azure", "bedrock", "cohere", "huggingface", "xai"),
    *("alibaba", "azure-responses", "bedrock-mantle", "cerebras", "crusoe", "fireworks", "github", "github-copilot"),
    *("google-cloud", "heroku", "litellm", "meta", "moonshotai", "nebius", "openai-chatgpt", "openai-codex"),
    *("ovhcloud", "sambanova", "snowflake", "together", "vercel", "vllm", "zai"),
)
"""What people use most comes first."""

ALIASES = {
    "openai-responses": "openai",
    "google-gla": "google",
    "gemini": "google",
    "google-vertex": "google-cloud",
    "grok": "xai",
}
"""Other names of the same, some of them older ones of pydantic-ai."""

_GATEWAY = "gateway/"


def canonical(name: str) -> str:
    """The whole name of a model, ``provider:model``, as pydantic-ai has it."""
    provider, _, model = name.partition(":")
    return f"{ALIASES.get(provider, provider)}:{model}" if model else name


def is_known(name: str) -> bool:
    """Whether this is ``provider:model`` of a known provider (also through pydantic's gateway), or ``test``."""
    provider, _, model = name.partition(":")
    provider = provider.removeprefix(_GATEWAY)
    return name == "test" or (bool(model) and (provider in NAMES or provider in ALIASES))
