"""Bounds the work for a document by exact counts of parsing, rendering and sending, independent of the machine.

The bounds are slightly above the current counts. They ensure that a document twice as long takes twice the work: code
that processes earlier text again breaks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from markdown_it.parser_block import ParserBlock
from markdown_it.parser_inline import ParserInline

from tests.benchmarks.documents import (
    GIANTS,
    GROWING,
    conversation,
    deltas,
    flushes,
    giant,
    growing,
    input_deltas,
    mixed,
)
from tests.benchmarks.payload import Sent, count
from tests.benchmarks.streaming import stream
from tests.support.call_counts import counted
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.dialects import detector
from toolcall_nb.live_runs.document import LiveDocument
from toolcall_nb.markdown import IncrementalMarkdown, yaml_text
from toolcall_nb.render import LiveHtml, to_html

TWICE = 2.15
"""The largest allowed ratio of work for a document twice as long; more than 2, since its pieces differ."""


class WorkCounts:
    """Counts calls of the parsers and the characters that they receive."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parses = self.characters = self.yaml_loads = self.yaml_characters = 0
        for parser in (ParserBlock, ParserInline):
            monkeypatch.setattr(parser, "parse", self._markdown(parser.parse))
        monkeypatch.setattr(yaml_text, "_LOADER", self._yaml(yaml_text._LOADER))

    def of(self, run: Callable[[], object]) -> WorkCounts:
        """Resets the counts and counts the work of ``run``."""
        self.parses = self.characters = self.yaml_loads = self.yaml_characters = 0
        run()
        return self

    def _markdown(self, parse: Callable[..., Any]) -> Callable[..., Any]:
        def counted(parser: Any, source: str, *rest: Any) -> Any:
            self.parses += 1
            self.characters += len(source)
            return parse(parser, source, *rest)

        return counted

    def _yaml(self, parser: Callable[[str], Any]) -> Callable[[str], Any]:
        def counted(source: str) -> Any:
            self.yaml_loads += 1
            self.yaml_characters += len(source)
            return parser(source)

        return counted


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> WorkCounts:
    return WorkCounts(monkeypatch)


def detect(dialect: str, pieces: Sequence[str]) -> None:
    found = detector(dialect)
    for piece in pieces:
        found.feed(piece)
    found.close()


def in_cuts(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


# Parsing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("together", "times"), [(1, 24), (8, 9), (25, 7)])
def test_each_character_is_parsed_only_a_few_times_on_the_whole_path(
    work: WorkCounts, together: int, times: int
) -> None:
    text = mixed(30_000)
    found = work.of(lambda: stream(flushes(text, together)))
    assert found.characters <= times * len(text)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("calls", [True, False], ids=["with calls", "without"])
@pytest.mark.parametrize("together", [1, 8, 25])
def test_a_document_twice_as_long_takes_twice_the_parsing(work: WorkCounts, together: int, calls: bool) -> None:
    short, long = mixed(20_000, calls=calls), mixed(40_000, calls=calls)
    first = work.of(lambda: stream(flushes(short, together)))
    parses, characters = first.parses, first.characters
    second = work.of(lambda: stream(flushes(long, together)))
    ratio = len(long) / len(short) * TWICE / 2
    assert second.parses <= ratio * parses
    assert second.characters <= ratio * characters


@pytest.mark.parametrize("kind", GROWING)
def test_a_growing_block_twice_as_long_takes_twice_the_parsing(work: WorkCounts, kind: str) -> None:
    def feed(pieces: Sequence[str]) -> None:
        markdown = IncrementalMarkdown()
        for piece in pieces:
            markdown.feed(piece)

    short, long = growing(kind, 4_000), growing(kind, 8_000)
    first = work.of(lambda: feed(flushes(short, 8)))
    parses, characters = first.parses, first.characters
    second = work.of(lambda: feed(flushes(long, 8)))
    ratio = len(long) / len(short) * TWICE / 2
    assert second.parses <= ratio * parses + 10
    assert second.characters <= ratio * characters + 1_000
    assert second.characters <= 12 * len(long)


def test_most_deltas_are_applied_without_parsing(work: WorkCounts) -> None:
    parts = deltas(mixed(30_000))
    live, found = LiveHtml(), detector("callout")

    def take(part: str) -> None:
        for event in found.feed(part):
            live.apply(event)

    parsed = sum(work.of(partial(take, part)).parses > 0 for part in parts)
    assert parsed <= 0.5 * len(parts)


def test_a_callouts_body_is_loaded_once_however_it_is_cut(work: WorkCounts) -> None:
    text = mixed(30_000)
    calls = text.count("> [!tool")
    assert calls > 5
    for pieces in ([text], in_cuts(text, 64), deltas(text)):
        assert work.of(partial(detect, "callout", pieces)).yaml_loads == calls
    found = work.of(lambda: stream(deltas(text)))
    assert found.yaml_loads <= 2 * calls
    assert found.yaml_characters <= 0.2 * len(text)


@pytest.mark.parametrize("size", [20_000, 40_000])
def test_a_saved_transcript_is_read_and_rendered_in_one_pass_each(work: WorkCounts, size: int) -> None:
    text = Transcript.from_markdown(mixed(size)).to_markdown()
    found = work.of(lambda: to_html(Transcript.from_markdown(text)))
    # Reading parses blocks; rendering parses blocks and their inline content.
    assert found.characters <= 3 * len(text)
    assert found.yaml_characters <= 0.2 * len(text)


# Sending ---------------------------------------------------------------------------------------------------------


def final_bytes(sent: Sent) -> int:
    return sum(len(patch[4].encode()) for patch in sent.html.snapshot())


@pytest.mark.parametrize("size", [15_000, 30_000, 60_000])
def test_a_document_of_any_length_sends_a_small_multiple_of_its_html(size: int) -> None:
    sent = count(mixed(size))
    assert sent.html_bytes <= 1.5 * final_bytes(sent)
    assert sent.patch_bytes <= 2.5 * final_bytes(sent)


def test_a_flush_sends_at_most_one_message_and_none_without_changes() -> None:
    text = mixed(10_000)
    sent = count(text, 8)
    assert len(sent.messages) <= len(deltas(text)) // 8 + 2
    before = len(sent.messages)
    sent.document.flush()
    assert len(sent.messages) == before


def test_a_delta_without_a_visible_change_sends_nothing() -> None:
    sent = Sent()
    sent.feed("A paragraph.")
    sent.document.flush()
    before = len(sent.messages)
    for delta in (" ", " ", "\n", "\n", "\n", "  ", "\n"):
        sent.feed(delta)
        sent.document.flush()
    assert len(sent.messages) == before
    sent.feed("More")
    sent.document.flush()
    assert len(sent.messages) == before + 1


def encoded(patches: Sequence[Any]) -> int:
    return sum(len(value) for patch in patches for value in patch if isinstance(value, str))


@pytest.mark.parametrize("kind", GIANTS)
def test_a_block_twice_as_long_sends_twice_the_bytes(kind: str) -> None:
    def sent(size: int) -> int:
        live, found = LiveHtml(), detector("callout")
        feeds = (found.feed(part) for part in deltas(giant(kind, size)))
        return sum(encoded(live.apply(event)) for events in feeds for event in events)

    assert sent(8_000) <= TWICE * sent(4_000) + 4_000


def test_an_input_twice_as_long_sends_twice_the_bytes() -> None:
    def sent(size: int) -> int:
        live = LiveHtml()
        return sum(encoded(live.apply(event)) for event in input_deltas(size))

    assert sent(8_000) <= TWICE * sent(4_000) + 4_000


# Independence of earlier calls ---------------------------------------------------------------------------------


def step_of(events: Sequence[Event], before: int) -> tuple[int, int]:
    """Returns the number of patches, and the bytes of their HTML, for ``events`` after ``before`` calls."""
    steps: list[dict[str, Any]] = []
    document = LiveDocument(LiveHtml(), steps.append)
    for event in conversation(before, before):
        if not isinstance(event, ev.Finish):
            document.apply(event)
    document.flush()
    steps.clear()
    for event in events:
        document.apply(event)
    document.flush()
    patches = [patch for step in steps for patch in step["patches"]]
    return len(patches), encoded(patches)


def test_a_call_sends_as_much_after_two_hundred_calls_as_after_two() -> None:
    events: list[Event] = [
        ev.ToolInputStart("last", "weather"),
        ev.ToolInputDelta("last", '{"city": "Lyon"}'),
        ev.ToolInputAvailable("last", "weather", {"city": "Lyon"}),
        ev.ToolOutputAvailable("last", {"sky": "clear"}),
    ]
    assert step_of(events, 200)[0] == step_of(events, 2)[0]
    assert step_of(events, 200)[1] <= step_of(events, 2)[1] + 50  # ids are longer


def test_a_call_enters_as_many_functions_after_two_hundred_calls_as_after_two() -> None:
    counts = []
    for before in (2, 2, 200):  # the first run fills caches
        live = LiveHtml()
        for event in conversation(before, before):
            if not isinstance(event, ev.Finish):
                live.apply(event)
        with counted() as calls:
            for event in (
                ev.ToolInputStart("last", "weather"),
                ev.ToolInputDelta("last", "{}"),
                ev.TextDelta("t", "End"),
            ):
                live.apply(event)
        counts.append({key: count for key, count in calls.items() if "render" in key[0]})
    assert counts[1] == counts[2]
