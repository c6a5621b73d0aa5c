"""Parts that several providers have: files, sources, things of their own, errors, items of another stream."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.plain import get, json_value
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object

__all__ = [
    "Sources",
    "custom",
    "error_event",
    "file_event",
    "is_sign_of_life",
    "json_text",
    "strange_item",
    "text_of",
]

_SIGNS_OF_LIFE = frozenset({"keepalive", "keep-alive", "keep_alive", "ping", "heartbeat"})
_ABOUT_A_SIGN = frozenset({"type", "id", "event_id", "sequence_number", "timestamp", "time", "ts"})


def custom(provider: str, kind: str, content: Any) -> Event:
    """Something of one provider that has no part of its own: kept whole, under its kind."""
    return ev.Custom(f"{provider}.{kind}", {provider: json_value(content)})


def file_event(
    media_type: str | None, data: Any = None, url: str | None = None, metadata: Object | None = None
) -> Event | None:
    """A file by its URL, or by its content (base64 text, or bytes) as a ``data:`` URL. None where neither is given."""
    media_type = media_type or "application/octet-stream"
    if isinstance(data, bytes):
        data = base64.b64encode(data).decode("ascii")
    if isinstance(data, str):
        return ev.File(f"data:{media_type};base64,{data}", media_type, metadata)
    return ev.File(url, media_type, metadata) if isinstance(url, str) else None


def error_event(who: str, error: Any) -> Event:
    """What ``who`` sent instead of the rest: its message, and the whole of it as details."""
    message = error if isinstance(error, str) else get(error, "message", str)
    text = f"{who} ended the reply with an error{f': {message}' if message else ''}"
    return ev.Error(f"{text.rstrip('. ')}. What came before it is kept; ask again to go on.", details=json_text(error))


def strange_item(title: str, item: Any) -> list[Event]:
    """The diagnostic of what does not belong to a stream; of a sign of life, nothing."""
    return [] if is_sign_of_life(item) else [ev.Diagnostic(f"{_shown(item)} is no item of {title}.", ev.LEFT_OUT)]


def is_sign_of_life(item: Any) -> bool:
    """Whether an item only says that the connection is still there, as servers and proxies of any kind send it."""
    return get(item, "type", str) in _SIGNS_OF_LIFE and item.keys() <= _ABOUT_A_SIGN


def json_text(value: Any) -> str:
    """The value as JSON text, or as Python shows it where it is none."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return _shown(value)


def text_of(content: Any) -> str:
    """The text in a provider's content: a string, or a list of parts with ``text``; else the content as JSON."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [text for part in parts if (text := get(part, "text", str)) is not None]
    return "\n\n".join(texts) if texts else json_text(content)


class Sources:
    """The sources of one message: each URL and each document once, numbered from 1."""

    def __init__(self) -> None:
        self._known: set[Any] = set()

    def page(self, url: Any, title: Any = None, metadata: Object | None = None) -> Event | None:
        """A web page; None for one that was told already, and for what is no URL."""
        if not isinstance(url, str) or not url or not self.first_time(url):
            return None
        return ev.SourceUrl(self._number(), url, title if isinstance(title, str) else None, metadata)

    def document(self, key: Any, media_type: str, title: Any, metadata: Object | None = None) -> Event | None:
        """A document that is known by ``key`` (JSON); None for one that was told already."""
        if not self.first_time(json_text(["document", key])):
            return None
        name = title if isinstance(title, str) and title else "Document"
        return ev.SourceDocument(self._number(), media_type, name, provider_metadata=metadata)

    def first_time(self, key: str) -> bool:
        """Whether this was not told before."""
        is_new = key not in self._known
        self._known.add(key)
        return is_new

    def _number(self) -> str:
        return f"source-{len(self._known)}"


def _shown(item: Any) -> str:
    if isinstance(item, Mapping):
        return f"A mapping with {', '.join(repr(key)[:40] for key in list(item)[:6]) or 'nothing'}"
    return f"Something of the type {type(item).__qualname__}"
