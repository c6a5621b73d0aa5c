"""Tells ids and times in metadata from the rest: `name_aspect` by the name of a field, `value_aspect` by two values.

Providers and agent frameworks name a response, thread, checkpoint or span, and say when it was made and what it took.
Each run has other ones. So in metadata they count as ids and timings, whatever the provider; everything else there
counts as it stands. Arguments and results are no metadata: an id in them is part of what happened, but for the
results of tools that a provider runs (`without_ids`).
"""

from __future__ import annotations

import re

from toolcall_nb.core.comparison import Aspect
from toolcall_nb.core.events import Json

_TIME_OF_DAY = r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?"
VOLATILE = re.compile(
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"  # a UUID
    rf"|{_TIME_OF_DAY}"
    r"|\b(?:call|toolu|chatcmpl|msg|resp|run|req)[_-][A-Za-z0-9]{12,}\b"  # an id of a provider
    r"|\b[0-9a-f]{32,64}\b",  # a hash
    re.IGNORECASE,
)
"""Ids, times and hashes within a text."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_IDS = frozenset(
    {
        *("id", "ids", "uid", "uuid", "guid", "ulid", "etag", "nonce", "cursor", "fingerprint", "signature"),
        *("signatures", "traceparent", "tracestate", "encrypted"),
    }
)
"""The words of a name that make the field an id: ``responseId``, ``system_fingerprint``, ``thoughtSignature``."""
_KINDS = frozenset({"assistant", "deployment", "model"})
"""The words of a name that make an id the name of what answers, which is a difference: ``modelId``."""
_OWNERS = frozenset({"checkpoint", "container", "conversation", "generation", "interaction", "request", "response"})
_OWNERS |= {"run", "session", "span", "task", "thread", "trace", "turn", "previous"}
"""The names of what providers and frameworks keep: a text in a field of such a name is an id."""
_TIMES = frozenset(
    {
        *("at", "created", "date", "duration", "elapsed", "expires", "expiry", "finished", "latency", "modified"),
        *("ms", "ns", "seconds", "started", "time", "timestamp", "timestamps", "times", "timing", "timings", "ts"),
        *("updated", "us"),
        *("billed", "cost", "costs", "metrics", "price", "token", "tokens", "usage"),
    }
)
"""The last words of a name that make the field a time, or tokens and costs, which count with the times."""


def name_aspect(name: str) -> Aspect | None:
    """Returns "ids" or "timings" for a field that holds an id or a time, whatever its value; None for any other."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not _IDS.isdisjoint(words) and _KINDS.isdisjoint(words):
        return "ids"
    return "timings" if words and words[-1] in _TIMES else None


def value_aspect(name: str, a: Json, b: Json) -> Aspect | None:
    """Returns "ids" or "timings" where two values of a field differ only in ids or times; None where in more.

    ``name`` is that of the field, or the path to it; each value is no object or list.
    """
    texts = [value for value in (a, b) if isinstance(value, str)]
    words = _WORD.findall(name)
    if texts and words and words[-1].lower() in _OWNERS and not any(" " in text for text in texts):
        return "ids"
    if len(texts) < 2 or len({VOLATILE.sub("*", text) for text in texts}) > 1:
        return None
    return "timings" if len({re.sub(_TIME_OF_DAY, "*", text) for text in texts}) == 1 else "ids"


def without_ids(value: Json) -> Json:
    """Returns a JSON value without the fields that hold ids, at any depth."""
    if isinstance(value, list):
        return [without_ids(item) for item in value]
    if isinstance(value, dict):
        return {name: without_ids(item) for name, item in value.items() if name_aspect(name) != "ids"}
    return value
