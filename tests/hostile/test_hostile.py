"""The hostile texts are put into every text field of a transcript; a new field without a place fails here."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec
import pytest

from tests.fixtures.render.samples import body
from tests.support.hostile_transcripts import END, PLACES, everywhere, one_of, own_fields, own_payloads, payloads, share
from tests.support.hostile_variants import variants
from tests.support.html_reader import Reader
from tests.support.profile import IS_SEARCH
from toolcall_nb.core import events as events_module
from toolcall_nb.core import parts as parts_module
from toolcall_nb.core import transcript as transcript_module
from toolcall_nb.core.events import Diagnostic
from toolcall_nb.core.transcript import ToolCall, Transcript
from toolcall_nb.render import mime_bundle

MARK = "the mark of a place"


def classes() -> list[type[msgspec.Struct]]:
    """Returns every class that a transcript is made of."""
    found = [
        value
        for value in vars(transcript_module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value is not msgspec.Struct
    ]
    return [*found, Diagnostic]


def holds_text(kind: Any) -> bool:
    """Whether a field of this type can hold any text; values of a fixed list don't count."""
    if kind is Any or kind is str:
        return True
    if isinstance(kind, type) and issubclass(kind, Enum):
        return False
    if typing.get_origin(kind) is typing.Literal:
        return False
    return any(holds_text(argument) for argument in typing.get_args(kind))


def text_fields() -> set[tuple[str, str]]:
    names = {**vars(events_module), **vars(parts_module), **vars(transcript_module)}
    return {
        (each.__name__, name)
        for each in classes()
        for name, kind in typing.get_type_hints(each, names).items()
        if name in each.__struct_fields__ and holds_text(kind)
    }


def marked(value: Any, where: tuple[str, str] = ("", "")) -> Iterator[tuple[str, str]]:
    """Yields the fields whose value contains the mark, at any depth."""
    if isinstance(value, str):
        if MARK in value:
            yield where
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from marked(getattr(value, name), (type(value).__name__, name))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from marked(key, where)
            yield from marked(item, where)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from marked(item, where)


def test_every_field_that_can_hold_text_has_a_place() -> None:
    reached = {field for make in PLACES.values() for field in marked(make(MARK))}
    assert text_fields() - reached == set()
    assert ("ToolCall", "input_text") in text_fields()  # the search for fields works


@pytest.mark.parametrize("name", PLACES)
def test_each_place_holds_the_text_and_everywhere_has_all_places(name: str) -> None:
    alone = set(marked(PLACES[name](MARK)))
    assert alone
    assert alone <= set(marked(everywhere(MARK)))


def test_everywhere_leaves_nothing_out_although_one_card_covers_several_places() -> None:
    drawn = [part for message in everywhere("x").messages for part in message.parts]
    cards = [part for part in drawn if isinstance(part, ToolCall)]
    for make in PLACES.values():
        for part in (part for message in make("x").messages for part in message.parts):
            if isinstance(part, ToolCall):
                assert any(
                    all(getattr(card, name) == value for name, value in own_fields(part).items()) for card in cards
                )
            else:
                assert part in drawn


def test_there_are_many_payloads_and_more_variants_of_each() -> None:
    assert len(own_payloads()) > 200
    assert set(own_payloads()) <= set(payloads())
    assert len(set(variants("<b>"))) > 50


def test_a_sample_is_evenly_spaced() -> None:
    assert one_of("abcdefgh", 4) == ["a", "c", "e", "g"]
    assert one_of("abcdefgh", 4, 1) == ["b", "d", "f", "h"]
    assert one_of("ab", 4) == ["a", "b"]


def check(transcript: Transcript) -> None:
    html = body(transcript)
    Reader(html)
    assert END in html


@pytest.mark.parametrize("number", range(8))
def test_payloads_in_every_place_render_only_allowed_elements(number: int) -> None:
    some = share(56, 5)
    for payload in some[number::8]:
        check(everywhere(payload))


def test_variants_in_every_place_render_only_allowed_elements() -> None:
    for number, payload in enumerate(own_payloads() if IS_SEARCH else one_of(own_payloads(), 24)):
        every = list(dict.fromkeys(variants(payload)))
        for variant in every if IS_SEARCH else [every[number % len(every)]]:
            check(everywhere(variant))


def test_a_lone_surrogate_is_shown_as_the_replacement_character() -> None:
    bundle = mime_bundle(everywhere("a\ud800b"))
    assert all("a\ufffdb" in form for form in bundle.values())
    for form in bundle.values():
        form.encode()  # as it is sent to a notebook
