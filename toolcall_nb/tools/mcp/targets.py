"""Where an MCP server is: what a person may write for it, and the clients that reach it."""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count, takewhile
from typing import IO, TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from toolcall_nb.errors import MissingPackageError, UsageError
from toolcall_nb.tools.head_and_tail import HeadAndTail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import StdioServerParameters

__all__ = ["LastWords", "Target", "clients", "identity", "label"]

Target: TypeAlias = Any
"""A command (text, or a list of its words), a URL, or an object of the ``mcp`` package: `StdioServerParameters`, a
server in this process, a transport, or a function that makes a transport. A transport by itself opens only once."""

_objects = count()

_KEPT = 4_000
"""Bytes of a server's stderr that are kept, to be told when it has died."""

_LATE = 1.0
"""Seconds to wait for the rest of it, where a process that the server started still holds the pipe."""


_SILENT = logging.NullHandler()
"""Where nobody has set up logging, a lost connection is told once, by the call, and not by a traceback besides."""


class LastWords:
    """What a server last wrote to its stderr. Each server gets a pipe of its own, since a notebook's stderr is none."""

    def __init__(self) -> None:
        self._kept = HeadAndTail(_KEPT)
        self._reader: threading.Thread | None = None

    @property
    def text(self) -> str:
        """The text of the last server, without blanks around it; of one that has ended, all that it wrote."""
        if self._reader is not None:
            self._reader.join(_LATE)
        return self._kept.text.strip()

    def pipe(self) -> IO[str]:
        """A file to give to a process, and to close then; what it writes is read until its end."""
        reading, writing = os.pipe()
        self._kept = HeadAndTail(_KEPT)
        arguments = (reading, self._kept)
        self._reader = threading.Thread(target=_read, args=arguments, name="toolcall-nb MCP stderr", daemon=True)
        self._reader.start()
        return os.fdopen(writing, "w")


def _read(descriptor: int, kept: HeadAndTail) -> None:
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while data := file.read(_KEPT):
            kept.feed(data)


def label(target: Target) -> str:
    """What to call a server in a message, which a model may read: no password, no query, no options of a command."""
    if _is_url(target):
        parts = urlsplit(target)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    words = _words(target)
    if words is None:
        return str(getattr(target, "name", None) or type(target).__name__)
    return shlex.join(takewhile(lambda word: not word.startswith("-"), words)) or "an MCP server"


def identity(target: Target) -> str:
    """The label, and what tells this server from others with the same: equal only for one command or address."""
    if isinstance(target, str | Sequence):
        whole = repr(target)
    else:
        whole = target.model_dump_json() if _words(target) is not None else f"object {next(_objects)}"
    return f"{label(target)} {hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _is_url(target: Target) -> bool:
    return isinstance(target, str) and target.startswith(("http://", "https://"))


def _words(target: Target) -> list[str] | None:
    """The words of a command; None for what is no command."""
    if isinstance(target, str):
        return shlex.split(target)
    if isinstance(target, Sequence):
        return [os.fspath(word) for word in target]
    command = getattr(target, "command", None)
    return None if command is None else [command, *target.args]


def clients(target: Target, words: LastWords) -> Sequence[Callable[[], AbstractAsyncContextManager[Any]]]:
    """Makers of clients, to be tried in order: more than one for an address, which may speak either HTTP transport.

    Raises `UsageError` for a command without words, `MissingPackageError` without the package.
    """
    try:
        from mcp import Client, StdioServerParameters
        from mcp.client.sse import sse_client
    except ImportError:
        raise MissingPackageError("mcp>=2", "mcp", "A server of the Model Context Protocol") from None

    logging.getLogger("mcp").addHandler(_SILENT)
    if _is_url(target):
        return [lambda: Client(target), lambda: Client(sse_client(target))]
    if isinstance(target, str | Sequence):
        command = _words(target)
        if not command:
            raise UsageError("The command of an MCP server is empty. Give its program and arguments, or its URL.")
        target = StdioServerParameters(command=command[0], args=command[1:])
    if isinstance(target, StdioServerParameters):
        return [partial(_started, target, words)]
    return [lambda: Client(target() if callable(target) else target)]


@asynccontextmanager
async def _started(parameters: StdioServerParameters, words: LastWords) -> AsyncIterator[Any]:
    from mcp import Client
    from mcp.client.stdio import stdio_client

    with words.pipe() as stderr:
        async with Client(stdio_client(parameters, errlog=stderr)) as client:  # type: ignore[arg-type] # it is one
            yield client
