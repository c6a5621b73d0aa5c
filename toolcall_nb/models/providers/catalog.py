"""The providers that can be named before a colon. Source: pydantic_ai/providers/__init__.py, version 2.68.

They are listed here so that a name can be checked and completed without importing the package.
"""

from __future__ import annotations

PROVIDER_NAMES = (
    *("openai", "openai-chat", "anthropic", "google", "ollama", "groq", "mistral", "openrouter", "deepseek"),
    *("azure", "bedrock", "cohere", "huggingface", "xai"),
    *("alibaba", "azure-responses", "bedrock-mantle", "cerebras", "crusoe", "fireworks", "github", "github-copilot"),
    *("google-cloud", "heroku", "litellm", "meta", "moonshotai", "nebius", "openai-chatgpt", "openai-codex"),
    *("ovhcloud", "sambanova", "snowflake", "together", "vercel", "vllm", "zai"),
)
"""The most used ones come first."""

ALIASES = {
    "openai-responses": "openai",
    "google-gla": "google",
    "gemini": "google",
    "google-vertex": "google-cloud",
    "grok": "xai",
}
"""Other names of the same providers, some of them former names in pydantic-ai."""

_GATEWAY = "gateway/"


def canonical(name: str) -> str:
    """Returns ``provider:model`` with the provider's name in pydantic-ai."""
    provider, _, model = name.partition(":")
    return f"{ALIASES.get(provider, provider)}:{model}" if model else name


def is_provider_model(name: str) -> bool:
    """Whether a name is ``provider:model`` with a known provider (also through pydantic's gateway), or ``test``."""
    provider, _, model = name.partition(":")
    provider = provider.removeprefix(_GATEWAY)
    return name == "test" or (bool(model) and (provider in PROVIDER_NAMES or provider in ALIASES))
