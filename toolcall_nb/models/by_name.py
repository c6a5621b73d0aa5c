"""Models by name, or whatever else answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from toolcall_nb.errors import UsageError
from toolcall_nb.models import providers
from toolcall_nb.models.base import Model
from toolcall_nb.models.calling import CallableModel
from toolcall_nb.models.config import Config
from toolcall_nb.models.langchain import LangChainModel, is_runnable
from toolcall_nb.models.mock.model import MockModel
from toolcall_nb.models.mock.scenarios import SCENARIOS
from toolcall_nb.models.refusals import refuse

__all__ = ["model", "names"]


def _mock(variant: str, **options: Any) -> Model:
    return MockModel(scenario=variant or "auto", **options)


_FAMILIES: Mapping[str, Callable[..., Model]] = {"mock": _mock}
"""What stands before the colon of a name, and what makes the model of what stands after it."""


def model(
    name_or_object: Any,
    *,
    dialect: str = "native",
    speed: float | None = 1.0,
    config: Config | None = None,
) -> Model:
    """The model of a name, or what answers for an object.

    A name is ``mock``, ``mock:<scenario>``, ``provider:model``, or the address of a server (`HttpModel`). An object
    with a ``stream`` is taken as it is; model objects of pydantic-ai and of LangChain are asked in their own ways;
    anything else that can be called is asked with the messages (`CallableModel`). ``dialect`` is the chat's; ``speed``
    is for the mock; ``config`` is for providers and servers. Raises `UsageError` for a name that is not known, with
    those that are, and `MissingPackageError` for a provider without the package.
    """
    config = config if config is not None else Config()
    if isinstance(name_or_object, str):
        return _named(name_or_object, dialect, speed, config)
    if providers.knows(name_or_object):
        return providers.provider_model(name_or_object, config, dialect=dialect)
    refuse(name_or_object)
    if is_runnable(name_or_object):
        return LangChainModel(name_or_object, dialect=dialect)
    if not isinstance(name_or_object, type) and callable(getattr(name_or_object, "stream", None)):
        found: Model = name_or_object
        return found
    if callable(name_or_object):
        return CallableModel(name_or_object, dialect=dialect)
    raise UsageError(
        f"A model is a name, an object with stream(messages, tools), a model of pydantic-ai or LangChain, or a "
        f"function of the messages, but got {name_or_object!r:.100}."
    )


def _named(name: str, dialect: str, speed: float | None, config: Config) -> Model:
    if name.startswith(("http://", "https://")):
        from toolcall_nb.models.over_http.model import HttpModel

        return HttpModel(name, config, dialect=dialect)
    family, _, variant = name.partition(":")
    if family in _FAMILIES:
        return _FAMILIES[family](variant, dialect=dialect, speed=speed)
    if providers.is_known(name):
        return providers.provider_model(name, config, dialect=dialect)
    known = names()
    close = get_close_matches(name, known, 1) or get_close_matches(f"{family}:", known, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    if f"{name.rstrip(':')}:" in known:
        hint = f" Which one of {name.rstrip(':')}? Write its name after the colon."
    raise UsageError(f"There is no model {name!r:.100}.{hint} There are: {', '.join(known)}.")


def names() -> list[str]:
    """The names that `model` knows, the default first. After a colon at the end stands a model of that provider."""
    mocks = ["mock", *(f"mock:{scenario}" for scenario in SCENARIOS)]
    return [*mocks, *(f"{provider}:" for provider in providers.NAMES)]
