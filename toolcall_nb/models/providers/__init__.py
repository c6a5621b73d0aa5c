"""Models of providers, through pydantic-ai's direct requests: any provider that it knows, one stream of events.

pydantic-ai is imported when the first request is made; `catalog` knows the names without it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from toolcall_nb.errors import MissingPackageError, UsageError
from toolcall_nb.models.config import Config
from toolcall_nb.models.providers.catalog import NAMES, is_known
from toolcall_nb.models.providers.model import ProviderModel
from toolcall_nb.models.providers.settings import check_setting, is_of_a_provider, native_tools_of

__all__ = [
    "NAMES",
    "ProviderModel",
    "check_setting",
    "is_known",
    "is_of_a_provider",
    "knows",
    "native_tools_of",
    "provider_model",
]

_MODEL = ("pydantic_ai.models", "Model")
_PROVIDER = ("pydantic_ai.providers", "Provider")


def knows(thing: Any) -> bool:
    """Whether this is a model or a provider object of pydantic-ai; nothing is imported to find out."""
    return _is_made_from(thing, *_MODEL) or _is_made_from(thing, *_PROVIDER)


def provider_model(model: Any, config: Config, *, dialect: str = "native") -> ProviderModel:
    """The model of a name, or around a model object of pydantic-ai.

    Raises `MissingPackageError` where pydantic-ai is not installed, and `UsageError` for a provider without a model.
    """
    if isinstance(model, str):
        if find_spec("pydantic_ai") is None:
            raise MissingPackageError("pydantic-ai-slim", "models", f"The model {model!r}")
    elif _is_made_from(model, "pydantic_ai.providers", "Provider"):
        raise UsageError(
            f"{model!r:.100} is a provider without a model. Give it to one: OpenAIChatModel(…, provider=…)."
        )
    return ProviderModel(model, config, dialect=dialect)


def _is_made_from(thing: Any, module: str, name: str) -> bool:
    return any((base.__module__, base.__name__) == (module, name) for base in type(thing).__mro__)
