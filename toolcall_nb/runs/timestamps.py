"""Reads the times of log records, in whatever form: `parse_timestamp`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
"""For each unit, from seconds to nanoseconds: the times below this number have it, and how many of it make a second."""


def parse_timestamp(value: Any) -> float | None:
    """Returns a time in seconds since 1970; None for anything that is no time. Never raises.

    A text is ISO 8601, in UTC where it names no zone, or a number. The unit of a number follows from its size.
    """
    if isinstance(value, str):
        if len(value) > 40:
            return None
        try:
            if value.replace(".", "", 1).isdecimal():
                return parse_timestamp(float(value))
            time = datetime.fromisoformat(value)
            return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e20:
        return None
    return value / next(per_second for limit, per_second in _UNITS if value < limit)
