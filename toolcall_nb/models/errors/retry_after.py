"""For how long a provider asks to wait."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from toolcall_nb.core.events import Json
from toolcall_nb.models.errors.exception_details import Said

__all__ = ["in_words", "waiting_time"]

_LONGEST = 366 * 24 * 3600.0
_AN_EPOCH = 1e9
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PIECE = re.compile(
    r"(?<!\d)(\d++(?:\.\d++)?)\s*+(ms|milliseconds?|d|days?|h|hours?|m|min|minutes?|s|sec|seconds?)(?![a-z])"
)
_SAID = re.compile(r"(?:try again|retry|wait|reset[s]?)[a-z ]{0,24}?((?:\d+(?:\.\d+)?\s*[a-z]{1,12}[ ,]*(?:and )?)+)")
_RESET = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:reset(?:-(?P<one>.+))?|(?P<other>.+)-reset)")


def waiting_time(said: Said) -> float | None:
    """Seconds until the request may be made again, as far as the provider says so, in whichever of its ways.

    ``retry-after-ms`` and ``retry-after`` (RFC 9110, 10.2.3: seconds or a date), Google's ``RetryInfo``, the sentence
    ("Please try again in 20s"), and the headers that tell when a limit is reset, of which the longest counts.
    A date is measured against the answer's own date, and against the clock where it has none.
    """
    told = [
        _number(said.headers.get("retry-after-ms"), 0.001),
        _number(said.headers.get("retry-after")),
        _until(said.headers.get("retry-after"), said.headers),
        next(_delays(said.body), None),
        _in_sentence(said.text),
        max(_resets(said.headers), default=None) if said.status == 429 else None,
    ]
    return next((seconds for seconds in told if seconds is not None and 0 <= seconds < _LONGEST), None)


def in_words(seconds: float) -> str:
    """``4 s``, ``2 min 5 s``, ``3 h 20 min``; never less than was asked for."""
    whole = max(1, int(-(-seconds // 1)))
    minutes, rest = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left} min" if minutes_left else f"{hours} h"
    return f"{minutes} min {rest} s" if minutes and rest else f"{minutes} min" if minutes else f"{rest} s"


def _number(text: str | None, unit: float = 1.0) -> float | None:
    try:
        return float(text) * unit if text is not None else None
    except ValueError:
        return None


def _until(text: str | None, headers: Mapping[str, str]) -> float | None:
    """Seconds until a date, of HTTP or of RFC 3339; one that has passed is no wait."""
    when = _date(text)
    if when is None:
        return None
    now = _date(headers.get("date")) or datetime.now(UTC)
    return max(0.0, (when - now).total_seconds())


def _date(text: str | None) -> datetime | None:
    if text is None or ":" not in text:  # digits alone may be read as a date of ISO 8601
        return None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            when = parse(text)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue
        return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return None


def _delays(body: Json) -> Iterator[float]:
    """``retryDelay`` of google.rpc.RetryInfo, and ``retry_after`` of others, wherever in the body they stand."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name in ("retryDelay", "retry_delay", "retry_after", "retry_after_seconds"):
                found = _number(str(value)) if not isinstance(value, str) else _duration(value)
                yield from () if found is None else (found,)
            else:
                yield from _delays(value)
    elif isinstance(body, list):
        for item in body:
            yield from _delays(item)


def _duration(text: str) -> float | None:
    """``6m0s``, ``20ms``, ``1 minute``; a bare number is of seconds."""
    pieces = _PIECE.findall(text.lower())
    if not pieces:
        return _number(text)
    return sum(float(number) * _UNITS["ms" if unit.startswith(("ms", "mil")) else unit[0]] for number, unit in pieces)


def _in_sentence(text: str) -> float | None:
    found = _SAID.search(text.lower())
    return _duration(found[1]) if found and _PIECE.search(found[1]) else None


def _resets(headers: Mapping[str, str]) -> Iterator[float]:
    """When the limits that are used up are reset: ``1s``, ``6m0s``, a date, or an epoch in (milli)seconds."""
    for name, value in headers.items():
        found = _RESET.fullmatch(name)
        if found is None or not _is_used_up(headers, found["one"] or found["other"]):
            continue
        seconds = _until(value, headers) if _date(value) else _duration(value)
        if seconds is not None and seconds > _AN_EPOCH:
            epoch = seconds / 1000 if seconds > 1000 * _AN_EPOCH else seconds
            seconds = _until(datetime.fromtimestamp(min(epoch, 4e9), UTC).isoformat(), headers)
        if seconds is not None:
            yield seconds


def _is_used_up(headers: Mapping[str, str], what: str | None) -> bool:
    """Whether nothing is left of it, as far as that is told."""
    names = (f"{start}ratelimit-{middle}" for start in ("x-", "anthropic-", "") for middle in _names_of(what))
    left = next((headers[name] for name in names if name in headers), "0")
    return _number(left) in (0, None)


def _names_of(what: str | None) -> tuple[str, ...]:
    return (f"remaining-{what}", f"{what}-remaining") if what else ("remaining",)
