"""Reads how long a provider asks to wait before the next request. `waiting_time` is the entry point."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from toolcall_nb.core.events import Json
from toolcall_nb.sources.provider_errors.exception_details import ExceptionDetails

_MAX_WAIT = 366 * 24 * 3600.0
_MIN_EPOCH = 1e9
_MAX_EPOCH = 4e9
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PIECE = re.compile(
    r"(?<!\d)(\d++(?:\.\d++)?)\s*+(ms|milliseconds?|d|days?|h|hours?|m|min|minutes?|s|sec|seconds?)(?![a-z])"
)
_IN_SENTENCE = re.compile(
    r"(?:try again|retry|wait|reset[s]?)[a-z ]{0,24}?((?:\d+(?:\.\d+)?\s*[a-z]{1,12}[ ,]*(?:and )?)+)"
)
_RESET = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:reset(?:-(?P<one>.+))?|(?P<other>.+)-reset)")
_DELAY_KEYS = ("retryDelay", "retry_delay", "retry_after", "retry_after_seconds")


def waiting_time(details: ExceptionDetails) -> float | None:
    """Returns the seconds until the request may be made again; None if the provider does not say.

    Reads, in this order: ``retry-after-ms`` and ``retry-after`` (RFC 9110, 10.2.3: seconds or a date), Google's
    ``RetryInfo``, the sentence ("Please try again in 20s"), and for status 429 the headers that say when a limit is
    reset, of which the longest counts. A date is relative to the response's own date, or else to the clock.
    """
    headers = details.headers
    sentence = _IN_SENTENCE.search(details.text.lower())
    waits = (
        _number(headers.get("retry-after-ms"), 0.001),
        _number(headers.get("retry-after")),
        _until(headers.get("retry-after"), headers),
        next(_delays(details.body), None),
        _duration(sentence[1]) if sentence and _PIECE.search(sentence[1]) else None,
        max(_resets(headers), default=None) if details.status == 429 else None,
    )
    return next((seconds for seconds in waits if seconds is not None and 0 <= seconds < _MAX_WAIT), None)


def in_words(seconds: float) -> str:
    """Formats a wait as ``4 s``, ``2 min 5 s`` or ``3 h 20 min``, rounded up."""
    minutes, second = divmod(max(1, math.ceil(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minute} min" if minute else f"{hours} h"
    return f"{minute} min {second} s" if minute and second else f"{minute} min" if minute else f"{second} s"


def _number(text: str | None, unit: float = 1.0) -> float | None:
    try:
        return float(text) * unit if text is not None else None
    except ValueError:
        return None


def _until(text: str | None, headers: Mapping[str, str]) -> float | None:
    """Seconds until a date; 0 if it has passed."""
    when = _date(text)
    if when is None:
        return None
    now = _date(headers.get("date")) or datetime.now(UTC)
    return max(0.0, (when - now).total_seconds())


def _date(text: str | None) -> datetime | None:
    """A date in the form of HTTP or of RFC 3339."""
    if text is None or ":" not in text:  # ISO 8601 would read digits alone as a date
        return None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            when = parse(text)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue
        return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return None


def _delays(body: Json) -> Iterator[float]:
    """Yields ``retryDelay`` of google.rpc.RetryInfo and ``retry_after`` of others, at any depth of the body."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name in _DELAY_KEYS:
                seconds = _duration(value) if isinstance(value, str) else _number(str(value))
                yield from () if seconds is None else (seconds,)
            else:
                yield from _delays(value)
    elif isinstance(body, list):
        for item in body:
            yield from _delays(item)


def _duration(text: str) -> float | None:
    """Seconds of ``6m0s``, ``20ms`` or ``1 minute``; a bare number is seconds."""
    pieces = _PIECE.findall(text.lower())
    if not pieces:
        return _number(text)
    return sum(float(number) * _UNITS["ms" if unit.startswith(("ms", "mil")) else unit[0]] for number, unit in pieces)


def _resets(headers: Mapping[str, str]) -> Iterator[float]:
    """Yields when each exhausted limit is reset, written as ``6m0s``, a date, or an epoch in (milli)seconds."""
    for name, value in headers.items():
        match = _RESET.fullmatch(name)
        if match is None or not _is_exhausted(headers, match["one"] or match["other"]):
            continue
        seconds = _until(value, headers) if _date(value) else _duration(value)
        if seconds is not None and seconds > _MIN_EPOCH:
            epoch = seconds / 1000 if seconds > 1000 * _MIN_EPOCH else seconds
            seconds = _until(datetime.fromtimestamp(min(epoch, _MAX_EPOCH), UTC).isoformat(), headers)
        if seconds is not None:
            yield seconds


def _is_exhausted(headers: Mapping[str, str], limit: str | None) -> bool:
    """Whether nothing remains of a limit, or the headers do not say."""
    middles = (f"remaining-{limit}", f"{limit}-remaining") if limit else ("remaining",)
    names = (f"{start}ratelimit-{middle}" for start in ("x-", "anthropic-", "") for middle in middles)
    remaining = next((headers[name] for name in names if name in headers), "0")
    return _number(remaining) in (0, None)
