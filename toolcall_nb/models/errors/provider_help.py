"""What people need to know of the providers when something is wrong: their names, and where their keys are."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct

__all__ = ["NOBODY", "PACKAGES", "PROVIDERS", "Provider", "provider_of"]


class Provider(Struct, frozen=True):
    """A provider: the beginnings of its models' names (the first is its own), title, key variable, hosts, packages.

    ``start`` is what to do when nothing answers.
    """

    names: tuple[str, ...] = ()
    title: str = ""
    variable: str = ""
    hosts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    start: str = ""

    @property
    def name(self) -> str:
        """Its own name; empty for nobody."""
        return self.names[0] if self.names else ""


NOBODY = Provider()

PROVIDERS = (
    Provider(
        ("openai", "openai-chat", "openai-responses"),
        "OpenAI",
        "OPENAI_API_KEY",
        ("api.openai.com",),
        ("openai",),
    ),
    Provider(("anthropic",), "Anthropic", "ANTHROPIC_API_KEY", ("api.anthropic.com",), ("anthropic",)),
    Provider(
        ("google", "google-gla", "gemini"),
        "Google",
        "GOOGLE_API_KEY (or GEMINI_API_KEY)",
        ("generativelanguage.googleapis.com",),
        ("google",),
    ),
    Provider(
        ("google-vertex", "google-cloud"),
        "Google Cloud",
        "GOOGLE_APPLICATION_CREDENTIALS",
        ("aiplatform.googleapis.com",),
    ),
    Provider(("groq",), "Groq", "GROQ_API_KEY", ("api.groq.com",), ("groq",)),
    Provider(("mistral",), "Mistral", "MISTRAL_API_KEY", ("api.mistral.ai",), ("mistralai",)),
    Provider(
        ("ollama",),
        "Ollama",
        "OLLAMA_API_KEY",
        ("localhost:11434", "127.0.0.1:11434"),
        start="Start it with `ollama serve`, or check OLLAMA_BASE_URL.",
    ),
    Provider(("openrouter",), "OpenRouter", "OPENROUTER_API_KEY", ("openrouter.ai",)),
    Provider(("deepseek",), "DeepSeek", "DEEPSEEK_API_KEY", ("api.deepseek.com",)),
    Provider(("xai", "grok"), "xAI", "XAI_API_KEY", ("api.x.ai",), ("xai_sdk",)),
    Provider(("cohere",), "Cohere", "CO_API_KEY", ("api.cohere.com",), ("cohere",)),
    Provider(("azure",), "Azure OpenAI", "AZURE_OPENAI_API_KEY", ("openai.azure.com",)),
    Provider(("bedrock",), "Amazon Bedrock", "AWS_ACCESS_KEY_ID", ("amazonaws.com",), ("botocore",)),
    Provider(("together",), "Together", "TOGETHER_API_KEY", ("api.together.xyz", "api.together.ai")),
    Provider(("fireworks",), "Fireworks", "FIREWORKS_API_KEY", ("api.fireworks.ai",)),
    Provider(("cerebras",), "Cerebras", "CEREBRAS_API_KEY", ("api.cerebras.ai",), ("cerebras",)),
    Provider(("moonshotai",), "Moonshot", "MOONSHOTAI_API_KEY", ("api.moonshot.ai",)),
    Provider(("huggingface",), "Hugging Face", "HF_TOKEN", ("huggingface.co",), ("huggingface_hub",)),
    Provider(("voyageai",), "Voyage AI", "VOYAGE_API_KEY", ("api.voyageai.com",), ("voyageai",)),
)
"""Those of `pydantic_ai.providers` that people meet most."""

PACKAGES = frozenset(
    {
        *(package for provider in PROVIDERS for package in provider.packages),
        *(
            "httpx",
            "httpx2",
            "httpcore",
            "httpcore2",
            "requests",
            "urllib3",
            "aiohttp",
            "http",
            "urllib",
            "socket",
            "ssl",
        ),
        *("pydantic_ai", "litellm", "langchain_core", "ollama", "together", "replicate", "dashscope", "boto3"),
    }
)
"""Those whose exceptions are about a peer, so that their classes and words are heard: providers' and the network's."""

_BY_NAME = {name: provider for provider in PROVIDERS for name in provider.names}


def provider_of(model: str, packages: Iterable[str] = (), url: str | None = None) -> Provider:
    """Whose model it is: by the name before its colon, by the host that was asked, by who raised; else `NOBODY`.

    A host that is none of theirs is a server of somebody's own, whatever package was used to ask it.
    """
    named = _BY_NAME.get(model.partition(":")[0]) if ":" in model else None
    host = _host(url)
    at_host = next((provider for provider in PROVIDERS if any(_is_at(host, known) for known in provider.hosts)), None)
    if named or at_host:
        return named or at_host or NOBODY
    if host:
        return NOBODY
    raised = set(packages)
    return next((provider for provider in PROVIDERS if raised.intersection(provider.packages)), NOBODY)


def _host(url: str | None) -> str:
    try:
        return urlsplit(url or "").netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""


def _is_at(host: str, known: str) -> bool:
    return host == known or host.endswith(f".{known}") or host.endswith(f"-{known}")
