"""Models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from toolcall_nb.errors import UsageError
from toolcall_nb.models.base import Model
from toolcall_nb.models.mock import MockModel
from toolcall_nb.models.scenarios import SCENARIOS

__all__ = ["model", "names"]


def _mock(variant: str, **options: Any) -> Model:
    return MockModel(scenario=variant or "auto", **options)


_FAMILIES: Mapping[str, Callable[..., Model]] = {"mock": _mock}
"""What stands before the colon of a name, and what makes the model of what stands after it."""


def model(name_or_object: str | Model, *, dialect: str = "native", speed: float | None = 1.0) -> Model:
    """The model of a name (``mock``, ``mock:<scenario>``), or the object itself if it has a ``stream``.

    ``dialect`` and ``speed`` are for named models; an object is taken as it is. Raises `UsageError` for a name
    that is not known, with those that are.
    """
    if not isinstance(name_or_object, str):
        if not callable(getattr(name_or_object, "stream", None)):
            raise UsageError(
                f"A model is a name or an object with stream(messages, tools), but got {name_or_object!r:.100}."
            )
        return name_or_object
    family, _, variant = name_or_object.partition(":")
    if family not in _FAMILIES:
        close = get_close_matches(name_or_object, names(), 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"There is no model {name_or_object!r:.100}.{hint} There are: {', '.join(names())}.")
    return _FAMILIES[family](variant, dialect=dialect, speed=speed)


def names() -> list[str]:
    """The names that `model` knows, the default first."""
    return ["mock", *(f"mock:{scenario}" for scenario in SCENARIOS)]
