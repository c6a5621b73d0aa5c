"""No wire or file of lines has a raw character at which a reader splits that knows more line ends than the format."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb import wire
from toolcall_nb.core import events as ev
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.recording import Recording
from toolcall_nb.wire import WIRE_NAMES

LINE_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
TEXT = "".join(f"{number}{character}" for number, character in enumerate(LINE_ENDS))


def events(text: str) -> list[ev.Event]:
    return [
        *(ev.Start(), ev.TextStart("t"), ev.TextDelta("t", text), ev.TextEnd("t")),
        ev.ToolInputAvailable("c", "look", {text: [text]}),
        *(ev.ToolOutputAvailable("c", {"found": text}), ev.ToolInputAvailable("d", "look", {})),
        *(ev.ToolOutputError("d", text), ev.Finish()),
    ]


@pytest.mark.parametrize("name", WIRE_NAMES)
@pytest.mark.parametrize("text", [TEXT, *LINE_ENDS])
def test_every_wire_is_split_into_the_same_lines_by_any_reader(name: str, text: str) -> None:
    encoder, decoder = wire.encoder(name), wire.decoder(name)
    data = b"".join([*map(encoder.encode, events(text)), encoder.close()])
    assert data.decode().splitlines() == data.decode().split("\n")[:-1]
    read = [event.delta for event in [*decoder.feed(data), *decoder.close()] if isinstance(event, ev.TextDelta)]
    assert "".join(read) == text


def test_every_line_of_a_recording_is_one_line_for_any_reader() -> None:
    recording = Recording()
    for event in events(TEXT):
        recording.add(0.0, event)
    lines = "".join(recording.lines())
    assert lines.splitlines() == lines.split("\n")[:-1]


@given(st.text(st.characters(codec="utf-8")) | st.text(st.sampled_from(f"a\\ü{LINE_ENDS}")))
def test_json_text_is_one_line_and_reads_back(text: str) -> None:
    written = json_text({text: text})
    assert len(written.splitlines()) == 1
    assert json.loads(written) == {text: text}
