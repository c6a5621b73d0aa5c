"""How far the tests go: a steady share, or with ``HYPOTHESIS_PROFILE=search`` all there is, and new examples."""

from __future__ import annotations

import os

__all__ = ["IS_SEARCH", "PROFILE"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "steady")
IS_SEARCH = PROFILE == "search"
