"""Reads the body of a response as events, whatever it is: `ResponseBody` takes streams, JSON, Markdown and text.

`ReconnectingStream` reads server-sent events, in any wire, over as many connections as it takes.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from toolcall_nb import wire
from toolcall_nb.adapters import Adapter, Format, events_of, format_of_item, format_of_whole
from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Json
from toolcall_nb.core.replay import message_events
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import ModelError, ToolcallError
from toolcall_nb.sources.provider_errors.exception_details import sentence_in
from toolcall_nb.wire.base import DONE, EventJson, NotJson, mark_as_cut_off
from toolcall_nb.wire.sse import MAX_EVENT_BYTES, ServerSentEvent, SseDecoder

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
        self._lines: Adapter | None = None  # once a line is an item of a stream
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
            if line.strip() and self._lines is None:
                if (format := _format_of_item(item)) is None:
                    self._is_whole = True
                    return
                self._lines = format.adapter()
            del self._data[: len(line) + 1]
            if item is not None and self._lines is not None:
                yield from self._lines.take(item)

    def _read_whole(self) -> Iterable[Event]:
        value = _json(self._data)
        for candidate in (value, value.get("messages") if isinstance(value, dict) else None):
            if candidate is not None and format_of_whole(candidate) is not None:
                return events_of(candidate)
        if (format := _format_of_item(value)) is not None:
            adapter = format.adapter()
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


def _format_of_item(value: Any) -> Format | None:
    return format_of_item(value) if isinstance(value, dict) else None


def _json(data: bytes | bytearray) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError, ToolcallError):
        return None


# Streams of server-sent events ------------------------------------------------------------------------------

_RESUMABLE = ("chat", "ui", "ag-ui")
"""The wires whose servers keep the rest of a stream."""
_MAX_UNKNOWN = 50
"""A stream that is not recognised by so many events is refused."""
_UNKNOWN = (
    "{server} answered with a stream that is none of those that can be read here: chat contract, AI SDK, AG-UI, or a "
    "provider's. Check the address."
)


class ReconnectingStream:
    """Reads one answer. ``headers`` are the response's, in lower case; ``server`` is its name in error messages.

    A client that reconnects calls `reconnected` and feeds what it gets: a server repeats everything after the last id
    that it sent, or the whole stream if it sent none. Events that were read before are recognised and left out. `feed`
    and `close` raise `ModelError` for a stream that is not recognised, and `feed` raises `WireError` for a line
    without an end.
    """

    def __init__(self, headers: Mapping[str, str], server: str) -> None:
        self._headers, self._server = headers, server
        self._json = EventJson()
        self._sse = SseDecoder(is_whole=self._is_whole)
        self._decoder: wire.Decoder | None = None  # for one of the wires, once it is recognised
        self._adapter: Adapter | None = None  # for a provider's stream
        self._unknown: list[Json] = []  # values before the stream is recognised
        self._hashes: list[int] = []  # of the data of the events after the last one that had an id
        self._repeated: list[int] = []  # those of them that may still be repeated
        self._is_finished = True  # the message has had its end, or none has begun
        self._is_done = False  # a provider's stream has sent `DONE`
        self.wire: str | None = None
        self.last_event_id = ""
        self.retry: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether the stream has announced its end, and nothing more is to be read."""
        return self._is_done or (self.wire in ("chat", "ui") and self._decoder is not None and self._decoder.is_over)

    @property
    def is_cut(self) -> bool:
        """Whether the end is missing, if the stream's wire can tell."""
        if self._decoder is None or self._decoder.is_over:
            return False
        return not (self._is_finished and self.wire == "ui")

    @property
    def is_resumable(self) -> bool:
        """Whether the server may have kept the rest. Providers don't keep it."""
        is_unknown = self._decoder is None and self._adapter is None and not self._unknown
        return not self.is_over and (self.wire in _RESUMABLE or is_unknown)

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events that these bytes complete."""
        events = [event for sent in self._sse.feed(data) for event in self._read(sent)]
        if self._sse.last_event_id not in ("", self.last_event_id):  # an id that came after its data
            self._remember_id(self._sse.last_event_id)
        self.retry = self.retry if self._sse.retry is None else self._sse.retry
        return events

    def reconnected(self) -> None:
        """Prepares for the bytes of another connection."""
        self._sse = SseDecoder(is_whole=self._is_whole)
        self._repeated = [*self._hashes]

    def close(self) -> list[Event]:
        """Returns the last events, once the stream is over or lost."""
        sent = self._sse.feed(b"\n\n") if self._sse.refusal is None else []
        events = [mark_as_cut_off(event) for each in sent for event in self._read(each)]
        reader = self._decoder or self._adapter
        if reader is None:
            raise self._not_recognised()
        return [*events, *reader.close()]

    def _is_whole(self, line: str) -> bool:
        """Whether the line is an event of its own, as in seed 003. If there are ids, one may follow the data."""
        return not self._sse.last_event_id and self._json.is_whole(line)

    def _remember_id(self, event_id: str) -> None:
        self.last_event_id = event_id
        self._hashes.clear()

    def _read(self, sent: ServerSentEvent) -> Iterator[Event]:
        data_hash = hash(sent.data)
        is_repeated = bool(self._repeated) and self._repeated[0] == data_hash
        self._repeated = self._repeated[1:] if is_repeated else []
        if sent.id not in ("", self.last_event_id):
            self._remember_id(sent.id)
        elif not is_repeated:
            self._hashes.append(data_hash)
        if not is_repeated:
            for value in self._json.values(sent.data):
                yield from self._take(value)

    def _take(self, value: Json) -> Iterator[Event]:
        if self._decoder is None and self._adapter is None:
            self._recognise(value)
        if self._decoder is not None:
            for event in self._decoder.take(value):
                if not isinstance(event, ev.Data | ev.Diagnostic | ev.Status | ev.ToolExecution):
                    self._is_finished = isinstance(event, ev.Finish | ev.Abort)
                yield event
        elif self._adapter is not None:
            if not isinstance(value, NotJson):
                yield from self._adapter.take(value)
            elif value.strip() == DONE:
                self._is_done = True
            elif value.strip():
                yield ev.Diagnostic(f"An event of the stream holds no JSON, but {value!r:.200}.", ev.LEFT_OUT)

    def _recognise(self, value: Json) -> None:
        """Chooses who reads the stream, as soon as a value shows it."""
        self.wire = wire.wire_of_response(self._headers.get("content-type"), self._headers, [value])
        if self.wire is not None:
            self._decoder = wire.decoder(self.wire)
        elif not isinstance(value, NotJson) and (format := format_of_item(value)) is not None:
            self._adapter = format.adapter()
        elif value != "":
            self._unknown.append(value)
        if len(self._unknown) >= _MAX_UNKNOWN:
            raise self._not_recognised()

    def _not_recognised(self) -> ModelError:
        if not self._unknown:
            return ModelError(f"{self._server} answered with nothing. Ask again, or check the address.")
        details = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in self._unknown)
        return ModelError(_UNKNOWN.format(server=self._server), details=details)
