"""Says which of the known names was probably meant: `did_you_mean`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 100
"""A longer name is no misspelled one, and comparing takes time."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns `` Did you mean 'NAME'?``, with the blank before it; empty if no name is similar, in any case."""
    by_lower = {each.lower(): each for each in names}
    close = get_close_matches(name.lower(), by_lower, 1) if len(name) <= _LONGEST else []
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""
