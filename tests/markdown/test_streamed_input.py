"""What a card shows of the input of a callout while its body streams: the input's own text, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.dialect_texts import cut_everywhere
from toolcall_nb import Transcript
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.dialects import detector
from toolcall_nb.markdown.tool_events import StreamedInput
from toolcall_nb.stages import to_stages

BODIES = [
    ("state: input-available\ninput:\n  query: cats\n  limit: 3\noutput:\n  results: []\n", "query: cats\nlimit: 3"),
    ("input: {query: cats}\nstate: output-available\noutput: 5\n", "{query: cats}"),
    ("input:\n  a:\n    b: 1\n\n    c: 2\n\n\nerrorText: no\n", "a:\n  b: 1\n\n  c: 2"),
    ("input:\n- one\n- two\nstate: x\n", "- one\n- two"),
    ("input:\n    deep: 1\n  odd: 2\n", "deep: 1\nodd: 2"),
    ("input: |\n  first\n    second\noutput: x\n", "first\n  second"),
    ("input: >-\n  folded\n", "folded"),
    ("input: plain\n  goes on\n", "plain\ngoes on"),
    ('"input": 5\n', "5"),
    ("'input' : 5\n", "5"),
    ("input:\n  a: 1\n# a note\n  b: 2\n# end\n", "a: 1\n\nb: 2"),
    ("output:\n  input: 5\nstate: x\n", ""),
    ("inputs: 5\ninputText: abc\noriginalInput:\n  a: 1\n", ""),
    ("input:\noutput: 1\n", ""),
    ("input:5\n", ""),
    ("input:\n\ta: 1\n", "a: 1"),
    ("state: input-streaming\ninput:\n  query: ca", "query: ca"),
    ("", ""),
]


def fed(*pieces: str) -> str:
    streamed = StreamedInput()
    return "".join(map(streamed.feed, pieces))


@pytest.mark.parametrize(("body", "shown"), BODIES)
def test_only_the_input_of_a_body_is_extracted_wherever_it_is_cut(body: str, shown: str) -> None:
    assert fed(body) == shown
    for pieces in cut_everywhere(body):
        assert fed(*pieces) == shown


@given(st.lists(st.sampled_from(["input", ":", " ", "\n", "  ", "- ", "#", "|", "x", '"', "state: y"]), max_size=20))
def test_cuts_do_not_matter(pieces: list[str]) -> None:
    assert fed(*pieces) == fed("".join(pieces)) == fed(*"".join(pieces))


def said(body: str) -> list[Event]:
    callouts = detector("callout")
    text = "> [!tool search call_1]\n" + "".join(f"> {line}\n" for line in body.split("\n"))
    return [event for character in text for event in callouts.feed(character)] + callouts.close()


@pytest.mark.parametrize(("body", "shown"), BODIES)
def test_neither_the_card_nor_the_stages_hold_another_field_as_input(body: str, shown: str) -> None:
    events = said(body)
    deltas = [event.input_text_delta for event in events if isinstance(event, ev.ToolInputDelta)]
    assert "".join(deltas).startswith(shown)
    streaming = [update["parameters"] for update in to_stages(events) if update["stage"] == "streaming"]
    assert all(shown.startswith(parameters) or "abc" in parameters for parameters in streaming if parameters)


def test_other_fields_than_the_input_are_read_at_the_end() -> None:
    call = Transcript.from_events(said(BODIES[0][0])).calls["call_1"]
    assert (call.input, call.output) == ({"query": "cats", "limit": 3}, {"results": []})
