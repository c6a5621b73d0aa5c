"""The settings of a request: which there are, and the tools that a provider runs itself.

`check_setting` refuses a name that is none; `native_tools_of` reads the setting `NATIVE_TOOLS`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolcall_nb.errors import UsageError
from toolcall_nb.models.providers.catalog import NAMES

if TYPE_CHECKING:
    from pydantic_ai.models import Model as PydanticModel
    from pydantic_ai.native_tools import AbstractNativeTool

__all__ = ["NATIVE_TOOLS", "check_setting", "is_of_a_provider", "native_tools_of"]

NATIVE_TOOLS = "native_tools"
"""The setting that switches on tools that the provider runs itself, by their names in pydantic-ai."""

_FAMILIES = frozenset(name.partition("-")[0] for name in NAMES)
"""Settings of one provider begin with its name: ``openai_reasoning_effort``."""

_MODULE = "pydantic_ai.models"


def check_setting(name: str, model: PydanticModel | None = None) -> None:
    """Raises `UsageError` for a name that no setting has, with the nearest that there is.

    For a ``model``, what its own class does not know is refused too. Settings of another provider are left alone: they
    wait for the model to be changed.
    """
    from pydantic_ai.settings import ModelSettings

    family = name.partition("_")[0]
    own = {NATIVE_TOOLS, *ModelSettings.__annotations__}
    if model is not None:
        own |= _settings_of(type(model))
    if name in own:
        return
    if not is_of_a_provider(name):
        raise UsageError(_refusal(name, own))
    theirs = _settings_in(family)
    if theirs is not None and name not in theirs and (theirs or model is not None):
        raise UsageError(_refusal(name, theirs | own))
    if model is not None and any(known.startswith(f"{family}_") for known in own):
        raise UsageError(f"This model has no setting {name!r}. {_hint(name, own)}")


def is_of_a_provider(name: str) -> bool:
    """Whether a setting of this name would be one provider's alone."""
    family, _, rest = name.partition("_")
    return bool(rest) and family in _FAMILIES


def _refusal(name: str, known: Iterable[str]) -> str:
    return f"There is no setting {name!r:.100}. {_hint(name, known)}"


def _hint(name: str, known: Iterable[str]) -> str:
    """The nearest that there is, or all."""
    close = get_close_matches(name, sorted(known), 1)
    return f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(sorted(known))}."


def _settings_of(model: type) -> set[str]:
    """The settings of a model's class: ``OpenAIChatModelSettings`` holds those of ``OpenAIChatModel``."""
    found: set[str] = set()
    for base in model.__mro__:
        package = base.__module__.rpartition("._")[0] or base.__module__
        for module in (base.__module__, package):
            settings = getattr(sys.modules.get(module), f"{base.__name__}Settings", None)
            found |= set(getattr(settings, "__annotations__", ()))
    return found


def _settings_in(family: str) -> set[str] | None:
    """The settings that pydantic-ai has for a provider; None where that provider's own package is not installed."""
    try:
        module = import_module(f"{_MODULE}.{family}")
    except ImportError as error:
        return set() if error.name == f"{_MODULE}.{family}" else None
    known = [thing for name, thing in vars(module).items() if name.endswith("ModelSettings")]
    return {name for thing in known for name in thing.__annotations__ if name.startswith(f"{family}_")}


# A provider's own tools ---------------------------------------------------------------------------------------


_KINDS = frozenset(
    {
        *("advisor", "code_execution", "file_search", "image_generation", "mcp_server", "memory"),
        *("tool_search", "web_fetch", "web_search", "x_search"),
    }
)
"""Source: pydantic_ai/native_tools, version 2.68."""


def native_tools_of(given: Any) -> list[AbstractNativeTool]:
    """The tools of the setting `NATIVE_TOOLS`: names, objects with a ``kind`` and options, or pydantic-ai's own.

    Raises `UsageError` for a tool or an option that there is not.
    """
    if given is None:
        return []
    return [_native_tool(one) for one in (given if isinstance(given, list | tuple) else [given])]


def _native_tool(given: Any) -> AbstractNativeTool:
    from pydantic_ai.native_tools import NATIVE_TOOL_TYPES, AbstractNativeTool

    if isinstance(given, AbstractNativeTool):
        return given
    options: Mapping[str, Any] = given if isinstance(given, Mapping) else {"kind": given}
    kind = options.get("kind")
    if kind not in _KINDS:
        raise UsageError(f"No provider has a tool {kind!r:.100} ({NATIVE_TOOLS}). {_hint(str(kind), _KINDS)}")
    known = {field.name for field in fields(NATIVE_TOOL_TYPES[kind])}
    for name in options:
        if name not in known:
            raise UsageError(f"The tool {kind!r} has no option {name!r:.100} ({NATIVE_TOOLS}). {_hint(name, known)}")
    try:
        return NATIVE_TOOL_TYPES[kind](**{name: value for name, value in options.items() if name != "kind"})
    except (TypeError, ValueError) as error:
        said = str(error).rpartition("() ")[2]
        raise UsageError(f"The tool {kind!r} ({NATIVE_TOOLS}) cannot be used so: {said}.") from None
