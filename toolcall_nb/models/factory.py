"""Makes a model from a name or an object. `model` is the entry point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.sdk_objects import class_names
from toolcall_nb.core.similar_names import did_you_mean
from toolcall_nb.errors import UsageError
from toolcall_nb.models import providers
from toolcall_nb.models.base import Model
from toolcall_nb.models.config import Config
from toolcall_nb.models.mock.model import MockModel
from toolcall_nb.models.mock.scenarios import SCENARIOS

_CLIENT = (
    "A client is not a model. Name one ({provider}:MODEL), or write a function of the messages that asks the client."
)
_FUNCTION = """This function makes a model of any agent:

async def model(messages):
    prompt = messages[-1]["content"]
    async for text in agent.stream(prompt):  # whatever your agent's method is called
        yield text"""
"""The end of the error for an object of an unknown kind."""

_NOT_MODELS: Mapping[tuple[str, str], str] = {
    ("openai._base_client", "BaseClient"): _CLIENT.format(provider="openai"),
    ("anthropic._base_client", "BaseClient"): _CLIENT.format(provider="anthropic"),
    ("groq._base_client", "BaseClient"): _CLIENT.format(provider="groq"),
    ("google.genai.client", "Client"): _CLIENT.format(provider="google"),
    ("mistralai.client.sdk", "Mistral"): _CLIENT.format(provider="mistral"),
}
"""Classes (module and name) that users mistake for models, and the error text with the remedy."""


_FAMILIES: Mapping[str, tuple[str, ...]] = {
    **{"openai": ("gpt", "chatgpt", "o1", "o3", "o4"), "anthropic": ("claude",), "google": ("gemini",)},
    **{"mistral": ("mistral-", "codestral", "magistral"), "deepseek": ("deepseek-",), "xai": ("grok",)},
    **{"cohere": ("command-",)},
}
"""How the names of a provider's models begin, for a name without its provider."""


def model(
    name_or_object: Any,
    *,
    dialect: str = "native",
    speed: float | None = 1.0,
    config: Config | None = None,
) -> Model:
    """Returns the model of a name, or a model that asks an object.

    A name is ``mock``, ``mock:<scenario>``, ``provider:model``, or the URL of a server (`HttpModel`). An object with a
    ``stream`` method is a model already. Model objects of pydantic-ai and of LangChain are asked in their own ways;
    any other callable is called with the messages (`CallableModel`). ``dialect`` is the chat's; ``speed`` is for the
    mock; ``config`` is for providers and servers. An agent of a framework in `toolcall_nb.agents.frameworks.FRAMEWORKS`
    is run with its own tools. Raises `UsageError` for an unknown name, with the known ones, and
    `MissingPackageError` for a provider without its package.
    """
    config = config if config is not None else Config()
    if isinstance(name_or_object, str):
        return _named_model(name_or_object, dialect, speed, config)
    if providers.is_pydantic_ai_object(name_or_object):
        return providers.provider_model(name_or_object, config, dialect=dialect)
    from toolcall_nb.agents.recognise import agent_model, find_framework, framework_titles
    from toolcall_nb.models.langchain import LangChainModel, is_runnable

    if find_framework(name_or_object) is not None:
        if dialect != "native":
            raise UsageError(f"An agent writes its calls in its own way, so leave the dialect {dialect!r} out.")
        return agent_model(name_or_object)
    for class_name in class_names(type(name_or_object)):
        if class_name in _NOT_MODELS:
            raise UsageError(_NOT_MODELS[class_name])
    if is_runnable(name_or_object):
        return LangChainModel(name_or_object, dialect=dialect)
    if not isinstance(name_or_object, type) and callable(getattr(name_or_object, "stream", None)):
        with_stream: Model = name_or_object
        return with_stream
    if callable(name_or_object):
        from toolcall_nb.models.callable_models import CallableModel

        return CallableModel(name_or_object, dialect=dialect)
    raise UsageError(
        f"A model is a name, an object with stream(messages, tools), a model of pydantic-ai or LangChain, an agent "
        f"({framework_titles()}), or a function of the messages, but got {name_or_object!r:.100}, of the type "
        f"{type(name_or_object).__module__}.{type(name_or_object).__qualname__}. {_FUNCTION}"
    )


def _named_model(name: str, dialect: str, speed: float | None, config: Config) -> Model:
    if name.startswith(("http://", "https://")):
        from toolcall_nb.models.http_model import HttpModel

        return HttpModel(name, config, dialect=dialect)
    prefix, _, variant = name.partition(":")
    if prefix == "mock":
        return MockModel(scenario=variant or "auto", dialect=dialect, speed=speed)
    if providers.is_provider_model(name):
        return providers.provider_model(name, config, dialect=dialect)
    names = model_names()
    provider = next((provider for provider, starts in _FAMILIES.items() if name.lower().startswith(starts)), None)
    hint = f" Did you mean {f'{provider}:{name}'!r:.100}?" if provider and ":" not in name else ""
    hint = hint or did_you_mean(name, names) or did_you_mean(f"{prefix}:", names)
    if f"{name.rstrip(':')}:" in names:
        hint = f" Which one of {name.rstrip(':')}? Write its name after the colon."
    raise UsageError(f"There is no model {name!r:.100}.{hint} There are: {', '.join(names)}.")


def model_names() -> list[str]:
    """Returns the names that `model` knows, the default first. One that ends with a colon is completed with a model."""
    mocks = ["mock", *(f"mock:{scenario}" for scenario in SCENARIOS)]
    return [*mocks, *(f"{provider}:" for provider in providers.PROVIDER_NAMES)]
