"""Reads the body of a response as events, whatever it is: `ResponseBody` takes streams, JSON, Markdown and text."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from toolcall_nb.adapters import AnyAdapter, events_of, format_of_item, format_of_whole
from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.core.events import Event
from toolcall_nb.core.replay import message_events
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import ModelError, ToolcallError
from toolcall_nb.sources.http_stream import ReconnectingStream
from toolcall_nb.sources.provider_errors.exception_details import sentence_in
from toolcall_nb.wire.sse import MAX_EVENT_BYTES

_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\Z")
_JSON_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
_HTML = ("text/html", "application/xhtml+xml")
_STREAMS = ("text/event-stream", "application/octet-stream", "text/plain", "")
_HTML_START = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_SSE_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry):")
_HEAD_SIZE = 32
"""Bytes that show whether a body is a stream of events."""


class _Body(Protocol):
    def feed(self, data: bytes) -> Iterable[Event]: ...

    def close(self) -> Iterable[Event]: ...


class ResponseBody:
    """Reads the body of one response: `feed` its bytes, then `close`. The names in ``headers`` may be in any case.

    Both raise `ModelError` for a body that is no reply: a web page, nothing at all, JSON of something else. ``server``
    is its name in error messages.
    """

    def __init__(self, headers: Mapping[str, str], server: str) -> None:
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._server = server
        self._type = self._headers.get("content-type", "").partition(";")[0].strip().lower()
        self._head = b""
        self._body: _Body | None = None
        if self._type in _HTML:
            self._body = _HtmlBody(server)
        elif self._type == "text/event-stream":
            self._body = ReconnectingStream(self._headers, server)

    @property
    def stream(self) -> ReconnectingStream | None:
        """The body as a stream of events, for a client that reconnects; None if it is something else."""
        return self._body if isinstance(self._body, ReconnectingStream) else None

    def feed(self, data: bytes) -> Iterable[Event]:
        """Returns the events that these bytes complete."""
        if self._body is not None:
            return self._body.feed(data)
        self._head += data
        if len(self._head.lstrip()) < _HEAD_SIZE and b"\n" not in self._head.strip():
            return []
        self._body, head, self._head = self._choose(self._head), self._head, b""
        return self._body.feed(head)

    def close(self) -> Iterable[Event]:
        """Returns the last events, once the body has ended."""
        if self._body is None:
            if not self._head.strip():
                raise ModelError(f"{self._server} answered with nothing. Ask again, or check the address.")
            body = self._choose(self._head)
            return [*body.feed(self._head), *body.close()]
        return self._body.close()

    def _choose(self, head: bytes) -> _Body:
        """Returns the reader for the body, by its content type or else by its first bytes."""
        if self._type in ("", "application/octet-stream") and _HTML_START.match(head):
            return _HtmlBody(self._server)
        if self._type in _STREAMS and _SSE_START.match(head):
            return ReconnectingStream(self._headers, self._server)
        if _JSON.match(self._type) or self._type in _JSON_LINES or head.lstrip()[:1] in (b"{", b"["):
            return _JsonBody(self._server)
        if self._type in ("text/markdown", "text/x-markdown"):
            return _MarkdownBody()
        if self._type in _STREAMS or self._type.startswith("text/"):
            return _TextBody()
        raise ModelError(
            f"{self._server} answered with {self._type!r:.80}, which is no reply of a model. Check the address."
        )


class _Collected:
    """A body that is read once it is whole."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterable[Event]:
        if len(self._data) + len(data) > MAX_EVENT_BYTES:
            raise ModelError(
                f"The answer has more than {MAX_EVENT_BYTES:,} bytes, and is no stream. Check the address."
            )
        self._data += data
        return ()

    @property
    def text(self) -> str:
        return self._data.decode("utf-8-sig", "replace")


class _HtmlBody(_Collected):
    """A web page of a proxy, a login or a server's front page, which is refused."""

    def __init__(self, server: str) -> None:
        super().__init__()
        self._server = server

    def close(self) -> Iterable[Event]:
        raise ModelError(
            f"{self._server} answered with a web page, and not with a reply. Check the address: a chat is asked at one "
            "like http://127.0.0.1:8000/api/chat.",
            details=self.text[:2_000],
        )


class _MarkdownBody(_Collected):
    """A transcript as portable Markdown."""

    def close(self) -> Iterable[Event]:
        for message in Transcript.from_markdown(self.text).messages:
            yield from message_events(message)


class _JsonBody(_Collected):
    """JSON: a whole reply, messages, a thread; or a stream of one object a line, which is read line by line."""

    def __init__(self, server: str) -> None:
        super().__init__()
        self._server = server
        self._lines: AnyAdapter | None = None  # once a line is an item of a stream
        self._is_whole = False  # whether it is one JSON value

    def feed(self, data: bytes) -> Iterable[Event]:
        """Reads whole lines, until one shows that they are no stream."""
        super().feed(data)
        return [*self._read_lines()]

    def close(self) -> Iterable[Event]:
        if self._lines is not None:
            self._data += b"\n"
            return [*self._read_lines(), *self._lines.close()]
        return self._read_whole()

    def _read_lines(self) -> Iterator[Event]:
        while not self._is_whole and b"\n" in self._data:
            line, _, _ = self._data.partition(b"\n")
            item = _json(line)
            if line.strip() and self._lines is None and not _is_item(item):
                self._is_whole = True
                return
            del self._data[: len(line) + 1]
            if item is not None:
                self._lines = self._lines or AnyAdapter()
                yield from self._lines.take(item)

    def _read_whole(self) -> Iterable[Event]:
        value = _json(self._data)
        for candidate in (value, value.get("messages") if isinstance(value, dict) else None):
            if candidate is not None and format_of_whole(candidate) is not None:
                return events_of(candidate)
        if _is_item(value):
            adapter = AnyAdapter()
            return [*adapter.take(value), *adapter.close()]
        if isinstance(value, str):
            out = Assembler()
            return [*out.text(value), *out.close()]
        raise self._error(value)

    def _error(self, value: Any) -> ModelError:
        what = "JSON that is no reply of a model" if value is not None else "what begins as JSON and is none"
        sentence = sentence_in(value)[:500].rstrip(" .") if isinstance(value, dict | list) else ""
        sentence = f": {' '.join(sentence.split())}" if sentence else ""
        return ModelError(
            f"{self._server} answered with {what}{sentence}. Check the address.", details=self.text[:10_000]
        )


class _TextBody:
    """Plain text, which is read as it comes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._out = Assembler()

    def feed(self, data: bytes) -> Iterable[Event]:
        text = self._decoder.decode(data)
        return self._out.text(text) if text else []

    def close(self) -> Iterable[Event]:
        tail = self._decoder.decode(b"", final=True)
        return [*(self._out.text(tail) if tail else ()), *self._out.close()]


def _is_item(value: Any) -> bool:
    return isinstance(value, dict) and format_of_item(value) is not None


def _json(data: bytes | bytearray) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError, ToolcallError):
        return None
