"""Facts about providers and models that need no import: the names of providers, and which models see pictures.

Source of the names: pydantic_ai/providers/__init__.py, version 2.68. They are listed here so that a name can be checked
and completed without importing the package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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


def canonical(name: str) -> str:
    """Returns ``provider:model`` with the provider's name in pydantic-ai."""
    provider, _, model = name.partition(":")
    return f"{ALIASES.get(provider, provider)}:{model}" if model else name


def is_provider_model(name: str) -> bool:
    """Whether a name is ``provider:model`` with a known provider (also through pydantic's gateway), or ``test``."""
    provider, _, model = name.partition(":")
    provider = provider.removeprefix("gateway/")
    return name == "test" or (bool(model) and (provider in PROVIDER_NAMES or provider in ALIASES))


# Pictures ---------------------------------------------------------------------------------------------------

PICTURES = "pictures"
"""The setting by which the user says whether a model sees: True or False."""

_SEEING = re.compile(
    r"claude-(?:3|opus|sonnet|haiku)|gemini-|gpt-4o|gpt-4\.1|gpt-[5-9]|o[13](?!-mini|-preview)(?:-|$)|o4-mini"
    r"|pixtral|llava|(?:qwen|llama|internvl)[\d.]{0,9}-?(?:vl|vision)\b"
)
"""Model names, from their beginning, whose providers document pictures as input."""

_MAKER = re.compile(r"^(?:models/|[\w-]+[/.](?=[a-z]))+")
"""What hubs and clouds write before a model's name: ``anthropic/``, ``anthropic.``, ``models/``."""


def sees_pictures(name: str, profile: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether a model may be sent pictures: as the setting says, not against pydantic-ai's profile, else by its name.

    The profile alone does not tell: it allows pictures for every model that it does not know.
    """
    setting = settings.get(PICTURES)
    if isinstance(setting, bool):
        return setting
    return profile.get("supports_image_input") is not False and bool(_SEEING.match(_MAKER.sub("", name.lower())))
