"""Callouts in a stream: what is found does not depend on the cuts, nothing is lost, and the plugin agrees."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.support.corpora import corpus
from tests.support.documents import cuts, documents, in_pieces
from toolcall_nb.markdown import plugin
from toolcall_nb.markdown.callout import MAX_HEADER
from toolcall_nb.markdown.scanner import (
    CalloutClosed,
    CalloutGrew,
    CalloutOpened,
    Scanner,
    Segment,
    Text,
    UnreadableHeader,
)


def scan(pieces: list[str], kinds: tuple[str, ...] = ("tool",)) -> list[Segment]:
    scanner = Scanner(kinds)
    return [segment for piece in pieces for segment in scanner.feed(piece)] + scanner.close()


def merged(segments: list[Segment]) -> list[Segment]:
    """Segments with neighbours of one kind joined: what does not depend on the cuts."""
    out: list[Segment] = []
    for segment in segments:
        last = out[-1] if out else None
        match last, segment:
            case Text(), Text() if last.seam == segment.seam:
                out[-1] = Text(last.text + segment.text, last.seam)
            case CalloutGrew(), CalloutGrew():
                out[-1] = CalloutGrew(last.text + segment.text, last.source + segment.source)
            case _:
                out.append(segment)
    return out


def source(segments: list[Segment]) -> str:
    pieces = (
        s.text if isinstance(s, Text) else s.source
        for s in segments
        if isinstance(s, Text | CalloutOpened | CalloutGrew)
    )
    return "".join(pieces)


def found_by_plugin(text: str) -> list[tuple[int, str]]:
    """Line and body of each callout that markdown-it-py finds with the plugin's rule."""
    found: list[tuple[int, str]] = []
    md = MarkdownIt("commonmark").use(plugin.tool_callout_plugin)
    with patch.object(plugin, "_push_callout", lambda state, header, body, start: found.append((start + 1, body))):
        md.parse(text)
    return found


def found_by_scanner(segments: list[Segment]) -> list[tuple[int, str]]:
    return [
        (segment.line, segment.body.replace("\0", "\ufffd"))
        for segment in segments
        if isinstance(segment, CalloutClosed)
    ]


@settings(max_examples=400)
@given(st.data())
def test_segments_do_not_depend_on_the_cuts(data: st.DataObject) -> None:
    text = data.draw(documents())
    whole = merged(scan([text]))
    assert merged(scan(in_pieces(text, data.draw(cuts(text))))) == whole
    assert merged(scan(list(text))) == whole


@settings(max_examples=400)
@given(documents())
def test_every_character_is_in_one_segment(text: str) -> None:
    assert source(scan([text])) == text
    assert source(scan(list(text))) == text


@settings(max_examples=1000)
@given(documents())
def test_stream_and_plugin_find_the_same_callouts(text: str) -> None:
    assert found_by_scanner(scan([text])) == found_by_plugin(text)


@settings(max_examples=300)
@given(documents(max_lines=8))
def test_released_text_never_becomes_a_callout(text: str) -> None:
    scanner = Scanner()
    released = ""
    for end, character in enumerate(text, 1):
        released += source(scanner.feed(character))
        assert text.startswith(released)
        assert scanner.held == end - len(released)
    assert released + source(scanner.close()) == text


@settings(max_examples=300)
@given(documents())
def test_only_a_short_suffix_is_withheld(text: str) -> None:
    scanner = Scanner()
    for end, character in enumerate(text, 1):
        scanner.feed(character)
        line = text[:end].rstrip("\r\n").replace("\r", "\n").rsplit("\n", 1)[-1]
        assert scanner.held <= len(line) + len("\r\n\r\n")


def test_plain_text_is_released_at_once() -> None:
    scanner = Scanner()
    assert scanner.feed("Hello, wor") == [Text("Hello, wor")]
    assert scanner.held == 0


@pytest.mark.parametrize("beginning", ["> [!", " ", "   >", ">", "> [!to", "> [!tool search"])
def test_a_line_that_may_become_a_header_is_withheld(beginning: str) -> None:
    scanner = Scanner()
    assert scanner.feed(beginning) == []
    assert scanner.held == len(beginning)


def test_a_body_line_streams_before_it_ends() -> None:
    scanner = Scanner()
    scanner.feed("> [!tool x]\n")
    assert scanner.feed("> query: ca") == [CalloutGrew("query: ca", "> query: ca")]
    assert scanner.feed("ts") == [CalloutGrew("ts", "ts")]


def test_a_header_line_beyond_the_limit_is_text() -> None:
    text = "> [!tool " + "x" * (2 * MAX_HEADER)
    segments = scan([text[i : i + 100] for i in range(0, len(text), 100)])
    assert source(segments) == text
    assert [type(segment) for segment in segments if not isinstance(segment, Text)] == [UnreadableHeader]


def test_a_header_that_cannot_be_read_is_reported_with_its_place() -> None:
    segments = scan(["Text\n\n  > [!tool broken\n"])
    assert [s for s in segments if isinstance(s, UnreadableHeader)] == [
        UnreadableHeader("a callout's first line that cannot be read", 3, 3)
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("> [!tool t]\n> input: 1\n\n" * 2_000, id="callouts"),
        pytest.param("```\n" + "> [!tool t]\n" * 4_000, id="callouts in an open fence"),
        pytest.param("- a\n" + "  > [!tool t]\nlazy\n" * 2_000, id="callouts in a list, with lazy lines"),
        pytest.param("> a\n" + "lazy\n> [!tool t]\n" * 2_000, id="callouts in a quote, with lazy lines"),
        pytest.param("<!--\n" + "> [!tool t]\n" * 4_000, id="callouts in a comment"),
    ],
)
def test_parsing_again_stays_within_a_budget(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolcall_nb.markdown import block_context

    parsed = 0
    real = block_context._blocks

    def counted(kinds: tuple[str, ...], text: str, settled: int) -> object:
        nonlocal parsed
        parsed += len(text)
        return real(kinds, text, settled)

    monkeypatch.setattr(block_context, "_blocks", counted)
    segments = scan([hostile[i : i + 64] for i in range(0, len(hostile), 64)])
    assert source(segments) == hostile
    assert parsed <= 10 * len(hostile) + (1 << 17)


def test_real_documents_with_alerts_have_no_tool_calls() -> None:
    documents_read = 0
    for path in sorted(corpus("markdown_docs_alerts").glob("*.md")):
        text = path.read_bytes().decode("utf-8", "replace")
        assert not [s for s in scan([text]) if isinstance(s, CalloutClosed)], path.name
        documents_read += 1
    assert documents_read > 10


def test_the_plugin_agrees_on_every_document_of_the_specifications() -> None:
    for path in sorted(corpus("markdown_specs").glob("*")):
        text = path.read_bytes().decode("utf-8", "replace")
        text = text.replace("\n\n", "\n> [!tool x]\n> a: 1\n\n", 50)
        assert found_by_scanner(scan([text])) == found_by_plugin(text), path.name
