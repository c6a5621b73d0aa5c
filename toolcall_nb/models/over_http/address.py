"""Addresses, as they are asked and as they are shown."""

from __future__ import annotations

from urllib.parse import urlsplit

from toolcall_nb.errors import UsageError

__all__ = ["is_url", "place_of", "shown_url"]


def is_url(text: str) -> bool:
    """Whether it begins as an address of HTTP does."""
    return text.startswith(("http://", "https://"))


def place_of(url: str) -> str:
    """Scheme and host, for what is said to people."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def shown_url(url: str) -> str:
    """The address as people see it: without what may be a secret in it. Raises `UsageError` for what is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{url!r:.200} is no address: {error}.") from None
    if not is_url(url) or not parts.hostname:
        raise UsageError(f"{url!r:.200} is no address. One is like http://127.0.0.1:8000/api/chat.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}{parts.path}"
