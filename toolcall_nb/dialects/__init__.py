"""Dialects: the ways in which a model without a tool API writes calls in its text. Each has a file.

A dialect instructs the model, detects calls in the stream of its text, and writes calls and results for the next
request. `find_dialect` returns one by its name; `detector` and `instructions` are short for its most used parts.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from toolcall_nb.core.dialect_names import DIALECTS
from toolcall_nb.core.similar_names import did_you_mean
from toolcall_nb.dialects.base import Detector, Dialect, TextDialect, ToolDescription
from toolcall_nb.errors import UsageError

__all__ = [
    "DIALECTS",
    "Detector",
    "Dialect",
    "TextDialect",
    "ToolDescription",
    "detector",
    "find_dialect",
    "find_text_dialect",
    "instructions",
]

_HOMES = {
    "callout": ("toolcall_nb.dialects.callout", "CALLOUT_DIALECT"),
    "signature": ("toolcall_nb.dialects.signature", "SIGNATURE_DIALECT"),
    "json": ("toolcall_nb.dialects.json_call", "JSON_DIALECT"),
}
_NATIVE = Dialect()


def detector(name: str) -> Detector:
    """Returns a new detector for the dialect ``name``. Raises `UsageError` for an unknown name."""
    return find_text_dialect(name).detector()


def instructions(name: str, tools: Any) -> str:
    """Returns what to tell a model in its system prompt, so that it calls ``tools`` in the dialect ``name``.

    ``tools`` is whatever a `Chat` takes, or a list of `ToolDescription`. Raises `UsageError` for an unknown dialect,
    and for something that is not a tool.
    """
    dialect = find_text_dialect(name)
    if isinstance(tools, list | tuple) and all(isinstance(tool, ToolDescription) for tool in tools):
        return dialect.instructions(tools)
    from toolcall_nb.tools import as_tools

    return dialect.instructions(as_tools(tools))


def find_dialect(name: str) -> Dialect:
    """Returns the dialect ``name``, which may be ``native``. Raises `UsageError` for an unknown name."""
    return _NATIVE if name == "native" else find_text_dialect(name)


def find_text_dialect(name: str) -> TextDialect:
    """Returns the text dialect ``name``. Raises `UsageError` for an unknown name."""
    if name in _HOMES:
        module, attribute = _HOMES[name]
        dialect: TextDialect = getattr(import_module(module), attribute)
        return dialect
    hint = did_you_mean(name, DIALECTS)
    raise UsageError(f"There is no dialect {name!r}.{hint} The dialects are: {', '.join(DIALECTS)}.")
