"""Fuzz targets for a model's text: the dialects, a callout's parts, Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tests.fuzz.inputs import in_pieces, text_of, ways
from tests.fuzz.oracles import calls_cover_the_rest, is_json, is_transcript, lives_once, reads_back, same_at_any_cut
from tests.support.dialect_texts import all_text, detect, event_summary, steps
from toolcall_nb.core.text import well_formed
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.dialects import detector
from toolcall_nb.dialects.callout import create_stream_chunks
from toolcall_nb.incremental_markdown.flavor import render_markdown
from toolcall_nb.incremental_markdown.incremental import IncrementalMarkdown
from toolcall_nb.markdown.callout import HeaderGrammar, quote_value
from toolcall_nb.markdown.reading import CALLOUT_KINDS
from toolcall_nb.markdown.scanner import CalloutClosed, Text, scan
from toolcall_nb.markdown.yaml_text import MAX_ALIASED, BodyError, load_body, yaml_lines

__all__ = [
    "callout_body",
    "callout_detector",
    "callout_header",
    "incremental_markdown",
    "json_detector",
    "portable_markdown",
    "signature_detector",
]

_GRAMMAR = HeaderGrammar(CALLOUT_KINDS)
_LINE_ENDS = 4
_MARK = 8


def callout_detector(data: bytes) -> None:
    """Laws 1, 2, 5 and 6 for the callout detector."""
    text = text_of(data)
    events = detect("callout", text)
    transcript = lives_once(events)
    is_transcript(transcript)
    same_at_any_cut(_result("callout", [text]), lambda pieces: _result("callout", pieces), ways(text, data))
    assert all_text(events) == _outside_callouts(well_formed(text))
    for fed, held in _holding("callout", text, data):
        line = fed[max(fed.rfind("\n"), fed.rfind("\r", 0, -1)) + 1 :]
        assert held <= len(line) + _LINE_ENDS, f"{held} characters of {fed!r} are held back"
    is_json(create_stream_chunks(text))


def _result(dialect: str, pieces: Iterable[str]) -> Any:
    events = detect(dialect, *pieces)
    transcript = Transcript.from_events(events)
    return transcript.messages, transcript.diagnostics, all_text(events)


def _outside_callouts(text: str) -> str:
    """Returns the text segments, and the sources of callouts that cannot be read."""
    kept = []
    for segment in scan(text):
        if isinstance(segment, Text):
            kept.append(segment.text)
        elif isinstance(segment, CalloutClosed):
            try:
                load_body(segment.body)
            except BodyError:
                kept.append(segment.source)
    return "".join(kept)


def _holding(dialect: str, text: str, data: bytes) -> Iterable[tuple[str, int]]:
    """Yields the text fed so far and the number of characters held back, after each piece; 0 at the end."""
    found, fed = detector(dialect), ""
    for piece in in_pieces(text, data):
        found.feed(piece)
        fed += piece
        yield fed, found.held
    found.close()
    assert found.held == 0


def signature_detector(data: bytes) -> None:
    """Laws 1, 2 and 5 for the signature detector; without its mark, no text is held back."""
    _detector_of_json("signature", data, "###")


def json_detector(data: bytes) -> None:
    """Laws 1, 2 and 5 for the JSON detector; without a brace or a fence, no text is held back."""
    _detector_of_json("json", data, "{`~")


def _detector_of_json(dialect: str, data: bytes, marks: str) -> None:
    text = text_of(data)
    events = detect(dialect, text)
    is_transcript(lives_once(events))

    def read(pieces: Iterable[str]) -> Any:
        found = detect(dialect, *pieces)
        return steps(found), event_summary(found)

    same_at_any_cut(read([text]), read, ways(text, data))
    calls_cover_the_rest(text, events)
    for fed, held in _holding(dialect, text, data):
        begun = min((place for mark in marks if (place := fed.find(mark)) >= 0), default=len(fed))
        blank = len(fed[:begun]) - len(fed[:begun].rstrip(" \t\r\n"))
        assert held <= len(fed) - begun + blank + 1, f"{held} characters of {fed!r} are held back"


def callout_body(data: bytes) -> None:
    """A callout's body is a mapping of JSON values, of bounded size, that round-trips, or an error with a place."""
    text = text_of(data)
    try:
        body = load_body(text)
    except BodyError as error:
        _is_place(error, text)
        return
    is_json(body.fields)
    assert _size(body.fields) <= MAX_ALIASED + len(text) + 1
    assert body.written.keys() <= body.fields.keys()
    again = load_body("\n".join(yaml_lines(body.fields)) + "\n").fields
    assert again == body.fields, f"{body.fields!r} reads back as {again!r}"
    assert list(again) == list(body.fields)


def _is_place(error: BodyError, text: str) -> None:
    assert 0 <= error.line <= len(re.findall("[\n\r\x85\u2028\u2029]", text)) + 1
    assert 0 <= error.column <= len(text)


def _size(value: Any) -> int:
    size, stack = 0, [value]
    while stack:
        found = stack.pop()
        size += 1
        stack += found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return size


def callout_header(data: bytes) -> None:
    """Each prefix of a callout's header is accepted as a possible header, and quoted values read back."""
    line = text_of(data).partition("\n")[0].partition("\r")[0]
    for start in ("", "> [!tool "):
        header = _GRAMMAR.read(start + line)
        if header is None:
            continue
        assert all(_GRAMMAR.may_start((start + line)[:end]) for end in range(len(start + line)))
        assert header.kind in CALLOUT_KINDS
        for value in (*header.positional, *header.assigned.values(), line):
            _written_as_it_is_read(value)


def _written_as_it_is_read(value: str) -> None:
    written = quote_value(value)
    if written is not None:
        header = _GRAMMAR.read(f"> [!tool id={written}]")
        assert header is not None
        assert header.assigned == {"id": value}


def portable_markdown(data: bytes) -> None:
    """Any text is a valid transcript, and law 4 holds for it."""
    transcript = Transcript.from_markdown(text_of(data))
    is_transcript(transcript)
    reads_back(transcript)


def incremental_markdown(data: bytes) -> None:
    """Law 3: after each piece the HTML is that of the whole text so far; exactly the changed blocks are reported."""
    text = text_of(data)
    for pieces in ways(text, data):
        _as_the_whole(pieces)


def _as_the_whole(pieces: Iterable[str]) -> None:
    stream, fed = IncrementalMarkdown(), ""
    before: tuple[str, ...] = ()
    for piece in pieces:
        changed = stream.feed(piece)
        fed += piece
        blocks = tuple(stream.blocks)
        expected = render_markdown(fed)
        assert stream.html == expected, f"{fed!r} gives {stream.html!r} instead of {expected!r}"
        differ = [at for at, html in enumerate(blocks) if at >= len(before) or before[at] != html]
        assert list(changed) == differ
        before = blocks
    stream.close()
    assert tuple(stream.blocks) == before
