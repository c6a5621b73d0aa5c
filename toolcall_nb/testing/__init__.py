"""Tests of programs that call tools: scripted models, cassettes, faults, and assertions on the calls of a run.

| name | is |
| --- | --- |
| `MockModel` | a model that plays a script |
| `cassette` | a model and the results of tools, recorded once and replayed strictly |
| `assert_calls` | compares the calls of a run with those that are expected |
| `assert_outcome` | compares how a run ended with how it should have |
| `faults` | what can go wrong with a model's stream, its connection, and tools |

The names are imported on first use, so that the pytest plugin costs nothing where it is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcall_nb.models.base import with_faults
    from toolcall_nb.models.mock.model import MockModel
    from toolcall_nb.models.replay import ReplayModel
    from toolcall_nb.testing import faults
    from toolcall_nb.testing.call_assertions import assert_calls, assert_outcome
    from toolcall_nb.testing.cassettes import Cassette, CassetteError, cassette

__all__ = [
    "Cassette",
    "CassetteError",
    "MockModel",
    "ReplayModel",
    "assert_calls",
    "assert_outcome",
    "cassette",
    "faults",
    "with_faults",
]

_MODULES = {
    "Cassette": "toolcall_nb.testing.cassettes",
    "CassetteError": "toolcall_nb.testing.cassettes",
    "MockModel": "toolcall_nb.models.mock.model",
    "ReplayModel": "toolcall_nb.models.replay",
    "assert_calls": "toolcall_nb.testing.call_assertions",
    "assert_outcome": "toolcall_nb.testing.call_assertions",
    "cassette": "toolcall_nb.testing.cassettes",
    "with_faults": "toolcall_nb.models.base",
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use (PEP 562)."""
    if name == "faults":
        return import_module("toolcall_nb.testing.faults")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names, also those that were not used yet."""
    return sorted({*globals(), *__all__})
