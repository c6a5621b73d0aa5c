"""Escapes all that a command prints: `escaped_output`, through which text reaches both standard streams."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from toolcall_nb.core.escaping import visible


class _EscapedStream:
    """A text stream that writes control characters, and those that reverse a line, as visible ones.

    A model, a file's name or an exception may have written them, and a terminal obeys them.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)


@contextmanager
def escaped_output() -> Iterator[None]:
    """Escapes what is written to `sys.stdout` and `sys.stderr`, as UTF-8, until the block ends, whatever fails."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    sys.stdout, sys.stderr = map(_EscapedStream, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def unescaped_output() -> TextIO:
    """Returns the stream below `sys.stdout`, for rich, which writes our colours and gets text that is escaped."""
    return sys.stdout.stream if isinstance(sys.stdout, _EscapedStream) else sys.stdout
