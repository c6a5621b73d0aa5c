"""Chooses how thoroughly the tests run; its main entry points are `TIER` and `share_of`.

`TOOLCALL_NB_TIER` names the tier: "quick" (`./dev check`), "usual" (`./dev test` and plain pytest) or "all"
(`./dev test --all`). `HYPOTHESIS_PROFILE=search` selects the tier "all" with more examples, which differ each time.
"""

from __future__ import annotations

import os

__all__ = ["IS_QUICK", "IS_SEARCH", "IS_THOROUGH", "PROFILE", "TIER", "share_of"]

IS_SEARCH = os.environ.get("HYPOTHESIS_PROFILE") == "search"
TIER = "all" if IS_SEARCH else os.environ.get("TOOLCALL_NB_TIER", "usual")
if TIER not in ("quick", "usual", "all"):
    raise ValueError(f"TOOLCALL_NB_TIER is {TIER!r}. Use quick, usual or all.")
IS_QUICK = TIER == "quick"
IS_THOROUGH = TIER == "all"
PROFILE = "search" if IS_SEARCH else TIER

_SHARES = {"quick": 20, "usual": 10, "all": 1}
_FEWEST = 10
_SEARCHED = 2000


def share_of(thorough: int) -> int:
    """Returns the number of examples for this tier; ``thorough`` is the number for the tier "all"."""
    if IS_SEARCH:
        return max(thorough, _SEARCHED)
    return max(min(thorough, _FEWEST), thorough // _SHARES[TIER])
