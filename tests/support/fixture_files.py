"""Reads fixture files. An entry has a title, the input and the expected result, each followed by a line with a dot."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["read_fixtures"]

_ENTRY = re.compile(r"^(?P<title>\S[^\n]*)\n\.\n(?P<input>.*?\n)\.\n(?P<expected>.*?\n)\.$", re.MULTILINE | re.DOTALL)


def read_fixtures(name: str) -> list[tuple[str, str, str]]:
    """Returns the entries of a file in ``tests/fixtures`` as (title, input, expected), without its introduction."""
    text = (Path(__file__).parents[1] / "fixtures" / name).read_text(encoding="utf-8")
    return [(entry["title"], entry["input"], entry["expected"]) for entry in _ENTRY.finditer(text)]
