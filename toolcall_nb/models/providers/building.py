"""From a name and a `Config` to a model of pydantic-ai, and what goes with each request."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcall_nb.errors import UsageError
from toolcall_nb.models.config import Config
from toolcall_nb.models.providers.catalog import canonical
from toolcall_nb.models.providers.errors_as_replies import reveal_errors
from toolcall_nb.models.providers.settings import NATIVE_TOOLS, check_setting, native_tools_of

if TYPE_CHECKING:
    from pydantic_ai.models import Model as PydanticModel
    from pydantic_ai.models import ModelRequestParameters

    from toolcall_nb.tools import Tool

__all__ = ["build", "keys_of", "parameters_of", "settings_of"]

_OLLAMA = "http://localhost:11434/v1"
_KEY_NAMES = ("api_key", "token")
_URL_NAMES = ("base_url", "azure_endpoint", "api_base")


def build(name: str, config: Config) -> PydanticModel:
    """The model, with its provider's own HTTP client. Raises whatever pydantic-ai raises: `UserError` without a key."""
    from pydantic_ai.models import infer_model

    model = infer_model(canonical(name), lambda provider: _provider(provider, config))
    reveal_errors(getattr(model.provider, "_own_http_client", None))  # a client that somebody else made is left alone
    return model


def _provider(name: str, config: Config) -> Any:
    from pydantic_ai.providers import infer_provider, infer_provider_class

    base_url = config.base_url
    if name == "ollama" and base_url is None and not os.environ.get("OLLAMA_BASE_URL"):
        base_url = _OLLAMA
    if base_url is None and config.api_key is None:
        return infer_provider(name)
    provider_class = infer_provider_class(name)
    takes = inspect.signature(provider_class.__init__).parameters
    given: dict[str, Any] = {}
    if config.api_key is not None:
        key_name = next((one for one in _KEY_NAMES if one in takes), None)
        if key_name is None:
            raise UsageError(f"The provider {name!r} takes no API key. Sign in the way that its own tools do.")
        given[key_name] = config.api_key.reveal()
    url_name = next((one for one in _URL_NAMES if one in takes), None)
    if base_url is not None and url_name is not None:
        given[url_name] = base_url
    provider = provider_class(**given)
    if base_url is not None and url_name is None:
        _move(provider.client, base_url, name)
    return provider


def _move(client: Any, base_url: str, name: str) -> None:
    """Send a client elsewhere whose provider has one address only: those made by Stainless (OpenAI's) can be told."""
    if not isinstance(getattr(type(client), "base_url", None), property):
        raise UsageError(f"The provider {name!r} takes no base URL here. Set it in its environment variable.")
    client.base_url = base_url


def keys_of(model: PydanticModel) -> list[str]:
    """The keys that the model's client holds, for masking them."""
    client: Any = getattr(model, "client", None)
    held = [client, getattr(client, "_api_client", None), getattr(client, "sdk_configuration", None)]
    found = [getattr(one, name, None) for one in held for name in ("api_key", "auth_token", "security")]
    return [key for key in (getattr(one, "api_key", one) for one in found) if isinstance(key, str)]


# What goes with a request -----------------------------------------------------------------------------------


def settings_of(model: PydanticModel, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of one request. No package tries again by itself, unless asked to: it would do so unseen.

    Raises `UsageError` for a setting that there is not.
    """
    for name in given:
        check_setting(name, model)
    ours = {} if "max_retries" in model.unsupported_settings else {"max_retries": 0}
    return {**ours, **{name: value for name, value in given.items() if name != NATIVE_TOOLS}}


def parameters_of(tools: Sequence[Tool], settings: Mapping[str, Any]) -> ModelRequestParameters:
    """The tools as they are described to the provider, each with its schema as it is: none is made strict.

    With them go the provider's own tools, which ``settings`` switch on.
    """
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    described = [
        ToolDefinition(
            name=tool.name,
            parameters_json_schema=tool.parameters,
            description=tool.description or None,
            strict=False,
        )
        for tool in tools
    ]
    return ModelRequestParameters(function_tools=described, native_tools=native_tools_of(settings.get(NATIVE_TOOLS)))
