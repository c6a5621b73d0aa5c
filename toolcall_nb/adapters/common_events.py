"""Events that the adapters of several providers create: sources, files, errors, custom parts, and token counts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_json_text, as_json_value, describe_shape, get

_KEEPALIVES = frozenset({"keepalive", "keep-alive", "keep_alive", "ping", "heartbeat"})
_KEEPALIVE_KEYS = frozenset({"type", "id", "event_id", "sequence_number", "timestamp", "time", "ts"})
_MAX_COUNT = 2**53


def custom_part_event(provider: str, kind: str, content: Any) -> Event:
    """Returns an event that keeps a provider's own content, which has no event type of its own, as it is."""
    return ev.Custom(f"{provider}.{kind}", {provider: as_json_value(content)})


def file_event(
    media_type: str | None,
    data: Any = None,
    url: str | None = None,
    metadata: Object | None = None,
    filename: str | None = None,
) -> Event | None:
    """Returns the event of a file, given by its URL or by its content (base64 text or bytes); None for neither."""
    media_type = media_type or "application/octet-stream"
    if isinstance(data, bytes):
        data = base64.b64encode(data).decode("ascii")
    if isinstance(data, str):
        url = f"data:{media_type};base64,{data}"
    return ev.File(url, media_type, metadata, filename) if isinstance(url, str) else None


def error_event(sender: str, error: Any) -> Event:
    """Returns the event of an error that ``sender`` sent, with its message and the whole error as details."""
    message = error if isinstance(error, str) else get(error, "message", str)
    text = f"{sender} ended the reply with an error{f': {message}' if message else ''}"
    details = as_json_text(error)
    return ev.Error(f"{text.rstrip('. ')}. What came before it is kept; ask again to go on.", details=details)


def unknown_item(title: str, item: Any) -> list[Event]:
    """Returns the diagnostic of an item that does not belong to a stream; nothing for a keep-alive."""
    if is_keepalive(item):
        return []
    return [ev.Diagnostic(f"{describe_shape(item)} is no item of {title}.", ev.LEFT_OUT)]


def is_keepalive(item: Any) -> bool:
    """Whether an item only says that the connection is alive, as servers and proxies of any kind send it."""
    return get(item, "type", str) in _KEEPALIVES and item.keys() <= _KEEPALIVE_KEYS


class Sources:
    """The sources of one message: each URL and each document once, numbered from 1."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def page(self, url: Any, title: Any = None, metadata: Object | None = None) -> Event | None:
        """Returns the event of a web page; None if it is a repetition or has no URL."""
        if not isinstance(url, str) or not url or not self.is_new(url):
            return None
        return ev.SourceUrl(f"source-{len(self._keys)}", url, title if isinstance(title, str) else None, metadata)

    def document(self, key: Any, media_type: str, title: Any, metadata: Object | None = None) -> Event | None:
        """Returns the event of a document, which ``key`` (JSON) identifies; None for a repetition."""
        if not self.is_new(as_json_text(["document", key])):
            return None
        name = title if isinstance(title, str) and title else "Document"
        return ev.SourceDocument(f"source-{len(self._keys)}", media_type, name, provider_metadata=metadata)

    def is_new(self, key: str) -> bool:
        """Whether this key comes for the first time; it is no longer new then."""
        is_new = key not in self._keys
        self._keys.add(key)
        return is_new


def usage_of(reported: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Returns a provider's token counts under the names of this package.

    ``names`` gives the provider's path by our name, or several paths whose counts are added. Our names are
    ``inputTokens`` (including cached ones), ``outputTokens`` (including reasoning), ``totalTokens``,
    ``cachedInputTokens``, ``cacheWriteTokens``, ``reasoningTokens``. A path ``a.b`` is the field ``b`` within ``a``.
    Values that are not counts are ignored.
    """
    usage: dict[str, int] = {}
    for name, paths in names.items():
        for path in (paths,) if isinstance(paths, str) else paths:
            count: Any = reported
            for field in path.split("."):
                count = count.get(field) if isinstance(count, Mapping) else None
            if isinstance(count, int | float) and not isinstance(count, bool) and 0 <= count < _MAX_COUNT:
                usage[name] = usage.get(name, 0) + int(count)
    return usage


def add_counts(usages: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Returns the sum of the token counts of several requests."""
    total: dict[str, int] = {}
    for usage in usages:
        for name, count in usage.items():
            total[name] = total.get(name, 0) + count
    return total
