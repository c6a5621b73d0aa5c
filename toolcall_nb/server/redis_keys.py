"""The names of the keys that a server uses in Redis, and small values that are stored under them."""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from toolcall_nb.errors import UsageError
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.redaction.registered_secrets import HeldSecret

_log = logger("toolcall_nb.server")

_PREFIX = "toolcall-nb:"


class TurnHead(Struct, frozen=True):
    """The newest turn of a thread: its id, the worker that runs it, its tools and its model."""

    turn: str
    worker: str
    tools: tuple[str, ...] = ()
    model: str = ""


def decode_head(data: bytes) -> TurnHead | None:
    """Returns what is stored under `head_key`; logs a warning and returns None if it is no turn of a server."""
    try:
        return msgspec.json.decode(data, type=TurnHead)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        _log.warning("The store holds a turn that cannot be read, %.80r: %s", data, error)
        return None


def thread_key(thread: str) -> str:
    """Returns the key of a thread: a hash of its text and version."""
    return f"{_PREFIX}thread:{thread}"


def head_key(thread: str) -> str:
    """Returns the key of the newest turn of a thread: a `TurnHead`."""
    return f"{_PREFIX}turn:{thread}"


def events_key(turn: str) -> str:
    """Returns the key of the changes of a turn: a stream."""
    return f"{_PREFIX}events:{turn}"


def inbox_key(worker: str) -> str:
    """Returns the key of a worker's inbox: a stream."""
    return f"{_PREFIX}inbox:{worker}"


def worker_key(worker: str) -> str:
    """Returns the key that exists while a worker lives."""
    return f"{_PREFIX}worker:{worker}"


def is_wrong_type(error: object) -> bool:
    """Whether Redis refused a command since the key holds a value of another type than the server writes there."""
    return isinstance(error, Exception) and "WRONGTYPE Operation" in str(error)


def version_of(data: bytes) -> str:
    """Returns the version of a stored thread, which follows from its text."""
    return blake2b(data, digest_size=8).hexdigest()


def redis_address(url: str) -> tuple[HeldSecret, str]:
    """Returns the password of a URL, which is masked in logs from now on, and its address without it."""
    try:
        parts = urlsplit(url)
        name = parts.path if parts.scheme == "unix" else f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
    except ValueError:
        raise UsageError("The URL of the store is malformed. Write it like redis://127.0.0.1:6379/0.") from None
    return HeldSecret(unquote(parts.password or "")), name
