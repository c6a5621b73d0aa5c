"""Fuzz targets for data from peers: server-sent events, wires, chunks, stages, SDK objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.fuzz.inputs import in_pieces, lines_of_json, text_of, ways
from tests.fuzz.oracles import events_are_those_of, is_json, is_transcript, lives_once, reads_back, same_at_any_cut
from tests.support.dialect_texts import steps
from toolcall_nb.adapters import events_of, format_of_whole, recognise_source
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import ModelError, UsageError, WireError
from toolcall_nb.sources.http_response_body import ReconnectingStream
from toolcall_nb.sources.sdk_streams import ItemReader
from toolcall_nb.stages import StageReader, to_stages, validate
from toolcall_nb.wire import WIRE_NAMES, decoder, encoder, recognised
from toolcall_nb.wire.sse import ServerSentEvent, SseDecoder, encode_sse

__all__ = ["answer_of_a_server", "chunks", "sdk_objects", "server_sent_events", "stage_log", "wire_of"]


def server_sent_events(data: bytes) -> None:
    """Law 1 for server-sent events; and events that were read can be written and read again."""
    whole = _sse([data])
    same_at_any_cut(whole, _sse, ways(data, data))
    for sent in whole[0]:
        if "\0" in sent.event:  # NUL can be read but not written
            continue
        again = _sse([encode_sse(sent.data, sent.event or None, sent.id)])[0]
        said = sent.data.replace("\r\n", "\n").replace("\r", "\n")
        assert again == [ServerSentEvent(sent.event, said, sent.id)]


def _sse(pieces: Iterable[bytes]) -> tuple[list[ServerSentEvent], int | None, str]:
    reader = SseDecoder()
    found = [sent for piece in pieces for sent in reader.feed(piece)] + reader.close()
    return found, reader.retry, reader.last_event_id


def wire_of(name: str) -> Callable[[bytes], None]:
    """Makes the check of one wire: laws 1 and 5, and its events can be written in every wire without an exception."""

    def read(pieces: Iterable[bytes]) -> list[Event]:
        reader = decoder(name)
        return [event for piece in pieces for event in reader.feed(piece)] + reader.close()

    def check(data: bytes) -> None:
        events = events_are_those_of(lambda: read([data]))
        same_at_any_cut(events, read, ways(data, data))
        transcript = lives_once(events)
        is_transcript(transcript)
        reads_back(transcript)
        for other in WIRE_NAMES:
            _written_in(other, events)
        recognised("text/event-stream", {}, data)

    return check


def _written_in(name: str, events: Iterable[Event]) -> None:
    writer, reader = encoder(name), decoder(name)
    data = b"".join(map(writer.encode, events)) + writer.close()
    again = [*reader.feed(data), *reader.close()]
    found = Transcript.from_events(again)
    if name == "ui":
        expected = Transcript.from_events(ev.from_dict(well_formed_json(ev.to_dict(event))) for event in events)
        assert found.messages == expected.messages, f"{found.messages!r} was {expected.messages!r}"


def answer_of_a_server(data: bytes) -> None:
    """A stream of unknown format gives an error message, any other gives events, independent of cuts."""

    def read(pieces: Iterable[bytes]) -> list[Event] | str:
        stream = ReconnectingStream({"content-type": "text/event-stream"}, "the server")
        try:
            return steps([event for piece in pieces for event in stream.feed(piece)] + stream.close())
        except (ModelError, WireError) as error:
            return str(error)

    found = read([data])
    same_at_any_cut(found, read, ways(data, data))
    if isinstance(found, list):
        is_transcript(lives_once(found))


def chunks(data: bytes) -> None:
    """A value is a chunk that round-trips, or raises a `WireError`; chunks in any order give a valid transcript."""
    events: list[Event] = []
    for value in lines_of_json(text_of(data)):
        try:
            event = ev.from_dict(value)
        except WireError:
            continue
        assert ev.from_dict(ev.to_dict(event)) == event
        events.append(event)
    transcript = lives_once(events)
    is_transcript(transcript)
    reads_back(transcript)


def stage_log(data: bytes) -> None:
    """Any stage log can be read and validated, and the stage log of any events is valid."""
    values = lines_of_json(text_of(data))
    validate(values)
    events = _read_stages(values)
    is_transcript(lives_once(events))
    log = to_stages(events)
    assert validate(log) == []
    is_json(well_formed_json(log))
    assert validate(to_stages(_chunks_of(values))) == []


def _read_stages(values: Iterable[Any]) -> list[Event]:
    """Returns the events of the updates; skips invalid and outdated ones, which are refused."""
    reader = StageReader()
    events: list[Event] = []
    for value in values:
        try:
            events += reader.feed(value)
        except WireError:
            continue
    return [*events, *reader.close()]


def _chunks_of(values: Iterable[Any]) -> Iterable[Event]:
    for value in values:
        try:
            yield ev.from_dict(value)
        except WireError:
            continue


def sdk_objects(data: bytes) -> None:
    """Stream items in any order and complete replies give events, or a `UsageError` if the format is unknown."""
    values = lines_of_json(text_of(data))
    recognise_source(values)
    for thing in (values, *values):
        recognise_source(thing)
        if format_of_whole(thing) is not None:
            _check_transcript(events_of(thing))
    _stream(values)
    for _ in in_pieces(data, data)[:1]:
        _stream(values[len(values) // 2 :])


def _stream(values: Iterable[Any]) -> None:
    reader = ItemReader()
    events: list[Event] = []
    for value in values:
        try:
            events += reader.take(value)
        except UsageError:
            assert reader.is_whole, "once a stream has begun, no item is of unknown kind"
            return
    _check_transcript([*events, *reader.close()])


def _check_transcript(events: Iterable[Event]) -> None:
    transcript = lives_once(list(events))
    is_transcript(transcript)
    reads_back(transcript)
