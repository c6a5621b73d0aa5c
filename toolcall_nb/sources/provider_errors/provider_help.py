"""The providers that users meet most: their titles, key variables, hosts and packages. `find_provider` finds one."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct


class ProviderHelp(Struct, frozen=True):
    """The help for users of one provider. Fields with several values separate them by blanks.

    ``prefixes`` are the names before the colon of its models. ``packages`` raise its errors. ``start`` says what to do
    when nothing answers at its address. An unknown provider has empty fields.
    """

    prefixes: str = ""
    title: str = ""
    variable: str = ""
    hosts: str = ""
    packages: str = ""
    start: str = ""


_PROVIDERS = (
    ProviderHelp("openai openai-chat openai-responses", "OpenAI", "OPENAI_API_KEY", "api.openai.com", "openai"),
    ProviderHelp("anthropic", "Anthropic", "ANTHROPIC_API_KEY", "api.anthropic.com", "anthropic"),
    ProviderHelp(
        *("google google-gla gemini", "Google", "GOOGLE_API_KEY (or GEMINI_API_KEY)"),
        *("generativelanguage.googleapis.com", "google"),
    ),
    ProviderHelp(
        "google-vertex google-cloud", "Google Cloud", "GOOGLE_APPLICATION_CREDENTIALS", "aiplatform.googleapis.com"
    ),
    ProviderHelp("groq", "Groq", "GROQ_API_KEY", "api.groq.com", "groq"),
    ProviderHelp("mistral", "Mistral", "MISTRAL_API_KEY", "api.mistral.ai", "mistralai"),
    ProviderHelp(
        *("ollama", "Ollama", "OLLAMA_API_KEY", "localhost:11434 127.0.0.1:11434"),
        start="Start it with `ollama serve`, or check OLLAMA_BASE_URL.",
    ),
    ProviderHelp("openrouter", "OpenRouter", "OPENROUTER_API_KEY", "openrouter.ai"),
    ProviderHelp("deepseek", "DeepSeek", "DEEPSEEK_API_KEY", "api.deepseek.com"),
    ProviderHelp("xai grok", "xAI", "XAI_API_KEY", "api.x.ai", "xai_sdk"),
    ProviderHelp("cohere", "Cohere", "CO_API_KEY", "api.cohere.com", "cohere"),
    ProviderHelp("azure", "Azure OpenAI", "AZURE_OPENAI_API_KEY", "openai.azure.com"),
    ProviderHelp("bedrock", "Amazon Bedrock", "AWS_ACCESS_KEY_ID", "amazonaws.com", "botocore"),
    ProviderHelp("together", "Together", "TOGETHER_API_KEY", "api.together.xyz api.together.ai"),
    ProviderHelp("fireworks", "Fireworks", "FIREWORKS_API_KEY", "api.fireworks.ai"),
    ProviderHelp("cerebras", "Cerebras", "CEREBRAS_API_KEY", "api.cerebras.ai", "cerebras"),
    ProviderHelp("moonshotai", "Moonshot", "MOONSHOTAI_API_KEY", "api.moonshot.ai"),
    ProviderHelp("huggingface", "Hugging Face", "HF_TOKEN", "huggingface.co", "huggingface_hub"),
    ProviderHelp("voyageai", "Voyage AI", "VOYAGE_API_KEY", "api.voyageai.com", "voyageai"),
)
_UNKNOWN = ProviderHelp()
_BY_PREFIX = {prefix: provider for provider in _PROVIDERS for prefix in provider.prefixes.split()}

ERROR_PACKAGES = frozenset(
    (
        " ".join(provider.packages for provider in _PROVIDERS)
        + " httpx httpx2 httpcore httpcore2 requests urllib3 aiohttp http urllib socket ssl"
        + " pydantic_ai litellm langchain_core ollama together replicate dashscope boto3"
    ).split()
)
"""The packages whose exceptions are about a request: those of providers, of HTTP and of the network."""


def find_provider(model: str, packages: Iterable[str] = (), url: str | None = None) -> ProviderHelp:
    """Returns the provider of a model: by its name's prefix, by the host that was asked, or by the raising package.

    A host that belongs to no provider is the user's own server, whichever package asked it.
    """
    if ":" in model and (named := _BY_PREFIX.get(model.partition(":")[0])) is not None:
        return named
    try:
        host = urlsplit(url or "").netloc.rpartition("@")[2].lower()
    except ValueError:
        host = ""
    if host:
        for provider in _PROVIDERS:
            for domain in provider.hosts.split():
                if host == domain or host.endswith((f".{domain}", f"-{domain}")):
                    return provider
        return _UNKNOWN
    raising = (provider for provider in _PROVIDERS if not set(packages).isdisjoint(provider.packages.split()))
    return next(raising, _UNKNOWN)
