"""What stands for a secret: the same mark each time, with its name where it has one."""

from __future__ import annotations

import re

__all__ = ["MARK", "MASK", "mark"]

MASK = "[masked]"
MARK = re.compile(r"\[masked(?:: [A-Za-z0-9_.\-]{1,60})?\]")
"""Every mark; what overlaps one is no secret any more."""

_LONGEST_NAME = 60


def mark(name: str | None) -> str:
    """``[masked: OPENAI_API_KEY]``: the name helps a reader and tells nothing of the value. `MASK` without one."""
    told = re.sub(r"[^A-Za-z0-9_.\-]+", "_", name or "").strip("_")[:_LONGEST_NAME]
    return f"[masked: {told}]" if told else MASK
