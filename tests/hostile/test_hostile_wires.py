"""Whatever a peer, a provider or a model writes into its wire, dialect or format: it is drawn, and it is text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from tests.fixtures.render.samples import body as drawn
from tests.render.test_safety import Reader
from tests.support.hostile_forms import ITEMS, WHOLES, filled
from tests.support.hostile_transcripts import END, everywhere, one_of, own_payloads, payloads
from tests.support.hostile_variants import variants
from tests.support.hostile_wires import WAYS
from tests.support.profile import IS_SEARCH, IS_THOROUGH
from tests.support.wire_round_trips import decoded_transcript
from toolcall_nb.adapters import FORMATS, format_of_item, format_of_whole
from toolcall_nb.adapters.ai_sdk.messages import to_ui
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.dialects import DIALECTS
from toolcall_nb.render import LiveHtml, to_text
from toolcall_nb.render.run_footer import footer_html, info_line
from toolcall_nb.runs.document import LiveDocument
from toolcall_nb.wire import WIRE_NAMES, encoder

SHARE = 25
"""The number of texts that go every way. In `./dev test --all`, a peer writes all of the project's own."""

every_way = pytest.mark.parametrize("way", WAYS)


def texts_for(way: str) -> Sequence[str]:
    """Returns the texts for ``way``: all in a search, all of the project's own where a peer writes, or a share."""
    if IS_SEARCH:
        return payloads()
    if not IS_THOROUGH:
        return [*one_of(own_payloads(), SHARE, [*WAYS].index(way)), *one_of(payloads(), 5, 7 * [*WAYS].index(way))]
    offset = [*WAYS].index(way)
    some = [*one_of(own_payloads(), SHARE, offset), *one_of(payloads(), SHARE, 7 * offset)]
    return own_payloads() if way.startswith("dialect") or way.endswith("peer's") else some


def taken_in(events: Iterable[Event]) -> Transcript:
    return Transcript.from_events(events)


def look_at(transcript: Transcript) -> None:
    """All that a page is given, read as a browser reads it."""
    html = drawn(transcript)
    Reader(html)
    assert "<script" not in html
    Reader(footer_html(info_line("model", transcript), transcript))


def test_the_ways_are_all_wires_dialects_and_formats() -> None:
    assert {way.split()[1].rstrip(",") for way in WAYS if way.startswith("wire")} == set(WIRE_NAMES)
    assert {way.split()[1] for way in WAYS if way.startswith("dialect")} == set(DIALECTS)
    assert {*ITEMS, *WHOLES} == {known.name for known in FORMATS}


def test_the_forms_are_what_they_say_whatever_stands_in_them() -> None:
    for text in ("word", "<script>alert(1)</script>"):
        for name, items in ITEMS.items():
            assert {known.name for item in filled(items, text) if (known := format_of_item(item))} == {name}
        for name, thing in WHOLES.items():
            found = format_of_whole(filled(thing, text))
            assert found is not None
            assert found.name == name


@every_way
def test_a_word_that_is_sent_this_way_is_seen(way: str) -> None:
    assert "qwzx" in "".join(Reader(drawn(taken_in(WAYS[way]("qwzx")))).text)


@every_way
def test_what_comes_this_way_is_drawn_with_the_tags_of_the_renderer_alone(way: str) -> None:
    for text in texts_for(way):
        look_at(taken_in(WAYS[way](text)))


@pytest.mark.parametrize("wire", WIRE_NAMES)
def test_a_text_in_every_place_of_a_transcript_is_safe_behind_each_wire(wire: str) -> None:
    for text in one_of(payloads(), 400 if IS_SEARCH else 12, WIRE_NAMES.index(wire)):
        found = decoded_transcript(wire, everywhere(text).events())
        look_at(found)
        assert END in found.messages[-1].text


def test_other_spellings_and_hiding_places_come_no_further() -> None:
    ways = [*WAYS.values()]
    for number, text in enumerate(one_of(own_payloads(), 200 if IS_SEARCH else 12)):
        for place, variant in enumerate(variants(text)):
            look_at(taken_in(ways[(number + 7 * place) % len(ways)](variant)))


# Half characters -----------------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("half", ["\ud83d<b>", "a\udc00b", "é\ud83d\ud83d"], ids=ascii)
def test_half_a_character_that_comes_this_way_can_be_told_and_stored(way: str, half: str) -> None:
    steps: list[dict[str, Any]] = []
    document = LiveDocument(LiveHtml(), steps.append)
    events = [*WAYS[way](half)]
    for event in events:
        document.apply(event)
        document.flush()
    transcript = taken_in(events)
    look_at(transcript)
    told = [*steps, document.state(), to_ui(transcript.messages), transcript.to_markdown(), to_text(transcript)]
    assert all(msgspec.json.encode(each) for each in told)
    for wire in WIRE_NAMES:
        writer = encoder(wire)
        assert b"".join(map(writer.encode, events)) + writer.close()
