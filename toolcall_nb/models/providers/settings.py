"""Checks the settings of a request: `check_setting` the names, `native_tools_of` the provider's own tools."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolcall_nb.core.similar_names import did_you_mean
from toolcall_nb.errors import UsageError
from toolcall_nb.models.providers.catalog import PICTURES, PROVIDER_NAMES

if TYPE_CHECKING:
    from pydantic_ai.models import Model as PydanticModel
    from pydantic_ai.native_tools import AbstractNativeTool

NATIVE_TOOLS = "native_tools"
"""The setting that switches on tools that the provider runs itself."""

_PREFIXES = frozenset(name.partition("-")[0] for name in PROVIDER_NAMES)
"""The settings of one provider begin with its name: ``openai_reasoning_effort``."""

_MODULE = "pydantic_ai.models"


def check_setting(name: str, model: PydanticModel | None = None) -> None:
    """Raises `UsageError` for an unknown setting, with the most similar name.

    For a ``model``, a setting that its class does not have is refused too. Settings of other providers are accepted:
    the user may change the model later.
    """
    from pydantic_ai.settings import ModelSettings

    prefix = name.partition("_")[0]
    usable = {NATIVE_TOOLS, PICTURES, *ModelSettings.__annotations__}
    if model is not None:
        usable |= _class_settings(type(model))
    if name in usable:
        return
    if not is_provider_setting(name):
        raise UsageError(_refusal(name, usable))
    of_provider = _provider_settings(prefix)
    if of_provider is not None and name not in of_provider and (of_provider or model is not None):
        raise UsageError(_refusal(name, of_provider | usable))
    if model is not None and any(setting.startswith(f"{prefix}_") for setting in usable):
        raise UsageError(f"This model has no setting {name!r}. {_hint(name, usable)}")


def is_provider_setting(name: str) -> bool:
    """Whether a setting of this name belongs to one provider."""
    prefix, _, setting = name.partition("_")
    return bool(setting) and prefix in _PREFIXES


def _refusal(name: str, settings: Iterable[str]) -> str:
    return f"There is no setting {name!r:.100}. {_hint(name, settings)}"


def _hint(name: str, valid_names: Iterable[str]) -> str:
    """The most similar name, or all names."""
    listed = sorted(valid_names)
    return did_you_mean(name, listed).lstrip() or f"There are: {', '.join(listed)}."


def _class_settings(model: type) -> set[str]:
    """The settings of a model's class: ``OpenAIChatModelSettings`` holds those of ``OpenAIChatModel``."""
    names: set[str] = set()
    for base in model.__mro__:
        package = base.__module__.rpartition("._")[0] or base.__module__
        for module in (base.__module__, package):
            settings = getattr(sys.modules.get(module), f"{base.__name__}Settings", None)
            names |= set(getattr(settings, "__annotations__", ()))
    return names


def _provider_settings(prefix: str) -> set[str] | None:
    """The settings that pydantic-ai has for a provider; None if the provider's package is not installed."""
    try:
        module = import_module(f"{_MODULE}.{prefix}")
    except ImportError as error:
        return set() if error.name == f"{_MODULE}.{prefix}" else None
    classes = [thing for name, thing in vars(module).items() if name.endswith("ModelSettings")]
    return {name for cls in classes for name in cls.__annotations__ if name.startswith(f"{prefix}_")}


# A provider's own tools ---------------------------------------------------------------------------------------

_NATIVE_TOOL_KINDS = frozenset(
    {
        *("advisor", "code_execution", "file_search", "image_generation", "mcp_server", "memory"),
        *("tool_search", "web_fetch", "web_search", "x_search"),
    }
)
"""Source: pydantic_ai/native_tools, version 2.68."""


def native_tools_of(setting: Any) -> list[AbstractNativeTool]:
    """Returns the tools of the setting `NATIVE_TOOLS`: names, objects with a ``kind`` and options, or pydantic-ai's.

    Raises `UsageError` for an unknown tool or option.
    """
    if setting is None:
        return []
    return [_native_tool(entry) for entry in (setting if isinstance(setting, list | tuple) else [setting])]


def _native_tool(entry: Any) -> AbstractNativeTool:
    from pydantic_ai.native_tools import NATIVE_TOOL_TYPES, AbstractNativeTool

    if isinstance(entry, AbstractNativeTool):
        return entry
    options: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {"kind": entry}
    kind = options.get("kind")
    if kind not in _NATIVE_TOOL_KINDS:
        raise UsageError(
            f"No provider has a tool {kind!r:.100} ({NATIVE_TOOLS}). {_hint(str(kind), _NATIVE_TOOL_KINDS)}"
        )
    valid_options = {field.name for field in fields(NATIVE_TOOL_TYPES[kind])}
    for name in options:
        if name not in valid_options:
            hint = _hint(name, valid_options)
            raise UsageError(f"The tool {kind!r} has no option {name!r:.100} ({NATIVE_TOOLS}). {hint}")
    try:
        return NATIVE_TOOL_TYPES[kind](**{name: value for name, value in options.items() if name != "kind"})
    except (TypeError, ValueError) as error:
        reason = str(error).rpartition("() ")[2]
        raise UsageError(f"The tool {kind!r} ({NATIVE_TOOLS}) cannot be used so: {reason}.") from None
