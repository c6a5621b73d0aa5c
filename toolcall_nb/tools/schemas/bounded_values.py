"""Quotes, counts and searches values of any size with bounded work, for the check of a stranger's JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

QUOTED_LENGTH = 200
"""Characters of a value that a message quotes."""

_QUOTED_DEPTH = 2
"""Arrays and objects inside each other that are quoted."""


def quote(value: Any, depth: int = 0) -> str:
    """Returns the beginning of a value's repr, without building all of a long or deep one."""
    if isinstance(value, str):
        text = repr(value[: QUOTED_LENGTH + 1])
    elif isinstance(value, list | dict) and (depth == _QUOTED_DEPTH or not value):
        text = ("[…]" if isinstance(value, list) else "{…}") if value else repr(value)
    elif isinstance(value, list):
        text = f"[{', '.join(quote(item, depth + 1) for item in value[:10])}{', …' if len(value) > 10 else ''}]"
    elif isinstance(value, dict):
        pairs = [f"{quote(key)}: {quote(item, depth + 1)}" for key, item in islice(value.items(), 10)]
        text = f"{{{', '.join(pairs)}{', …' if len(value) > 10 else ''}}}"
    elif isinstance(value, int) and abs(value) > 10**QUOTED_LENGTH:
        text = "a very long number"
    else:
        text = repr(value)
    return text if len(text) <= QUOTED_LENGTH else f"{text[:QUOTED_LENGTH]}…"


def first_names(names: Mapping[str, Any]) -> str:
    """Lists the first names of a mapping, at most `QUOTED_LENGTH` characters."""
    text = ", ".join(islice(names, 20))
    return f"{text[:QUOTED_LENGTH]}{', …' if len(names) > 20 or len(text) > QUOTED_LENGTH else ''}" or "none"


def count_values(value: Any) -> int:
    """Counts the values inside a value, long strings by their length."""
    size, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        size += 1 + (len(item) // 100 if isinstance(item, str) else 0)
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return size


def with_whole_numbers(value: Any) -> Any:
    """Returns the value with whole floats as integers: for JSON Schema, 1.0 and 1 are equal."""
    if isinstance(value, list):
        return [with_whole_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: with_whole_numbers(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


_REPEATED = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")


@lru_cache(maxsize=256)
def pattern_size(pattern: str, limit: int) -> int:
    """Returns an upper bound of a pattern's length with its repetitions written out, at most ``limit`` + 1."""
    size = len(pattern) + 1
    for repeated in _REPEATED.finditer(pattern):
        size = min(size * (1 + int(repeated[2] or repeated[1])), limit + 1)
    return size


@lru_cache(maxsize=256)
def pattern_searcher(pattern: str, trusted: bool) -> Callable[[str], bool] | None:
    """Returns a search for a pattern that takes time linear in the text; None where there is no such search.

    The engine is that of ``pydantic_core``, a dependency of the package ``mcp``. Without it no schema comes from a
    stranger, so Python's engine is used. It is also used for a ``trusted`` schema's patterns that need backtracking.
    """
    try:
        from pydantic_core import SchemaError, SchemaValidator, core_schema
    except ImportError:
        return _python_searcher(pattern)
    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except (SchemaError, ValueError):
        return _python_searcher(pattern) if trusted else None
    return lambda text: validator.isinstance_python(text.encode("utf-8", "replace").decode())


def _python_searcher(pattern: str) -> Callable[[str], bool] | None:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
    return lambda text: compiled.search(text) is not None
