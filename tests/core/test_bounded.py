"""Hostile sizes: bombs, deep nesting, huge keys and numbers, signs without end. Work is counted; no clock.

What regular expressions cost is counted in `tests.hostile.test_regexes`.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.support.corpora import corpus
from tests.support.dialect_texts import detect
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.dialects import DIALECTS
from toolcall_nb.errors import WireError
from toolcall_nb.incremental_markdown.incremental import IncrementalMarkdown
from toolcall_nb.markdown.yaml_text import MAX_ALIASED, MAX_YAML_DEPTH, BodyError, load_body
from toolcall_nb.models.mock.prompt_facts import facts_of
from toolcall_nb.render import to_html, to_text
from toolcall_nb.render.html_output.sanitising import sanitise
from toolcall_nb.sources.provider_errors.exception_details import ExceptionDetails, read_exception
from toolcall_nb.sources.provider_errors.retry_after import waiting_time
from toolcall_nb.wire import WIRE_NAMES, decoder
from toolcall_nb.wire.sse import SseDecoder

# What was found so, each by the function that it was found in -----------------------------------------------------


def test_many_line_ends_and_then_a_letter_are_a_paragraph() -> None:
    stream = IncrementalMarkdown()
    for piece in ("a", "\n" * 300_000, "b", " c <<<<<" + "<" * 300_000 + " d", " e"):
        stream.feed(piece)
    assert len(stream.blocks) == 2


def test_a_prompt_of_signs_has_facts() -> None:
    for text in ("(" * 5000 + "+" * 5000, "1" * 10_000, "a." * 5000, "/" * 10_000, "\u201c" * 10_000, "1+" * 5000):
        facts_of(text)
    assert facts_of("1" * 5000).numbers == ()
    assert facts_of("what is (1 + 2) * 3, and 7 and 8-?").sums == ("(1 + 2) * 3",)
    assert facts_of("mail a.b@c.de and x@y").emails == ("a.b@c.de",)


def test_a_page_of_titles_is_a_web_page() -> None:
    assert said_of("<html>" + "<title>" * 100_000).text == "a web page"
    assert said_of("<html><title>Bad Gateway</title>").text == "a web page, 'Bad Gateway'"


class Refused(Exception):
    def __init__(self, body: Any, **headers: str) -> None:
        self.body, self.headers, self.status_code = body, headers, 429


Refused.__module__ = "openai"


def said_of(body: Any, **headers: str) -> ExceptionDetails:
    return read_exception(Refused(body, **headers))


@pytest.mark.parametrize("code", ["\u00b2", "9" * 5000, "4" * 400, True, 4.04e2, None, [], "4_4"])
def test_any_code_in_an_answer_is_read(code: Any) -> None:
    refused = Refused({"error": {"code": code, "message": "No"}})
    del refused.status_code
    assert read_exception(refused).status is None


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "-1", "nan", "1e999", "1" * 400 + "s"])
def test_any_number_of_seconds_is_a_wait_or_none(number: str) -> None:
    for headers in ({"retry-after": number}, {"retry-after-ms": number}, {"x-ratelimit-reset": number}):
        assert waiting_time(said_of({"retryDelay": number}, **headers)) in (None, -1.0)
    date = f"Mon, 01 Jan {number} 00:00:00 GMT"
    assert waiting_time(said_of({}, **{"retry-after": date})) is None
    waiting_time(said_of(f"try again in {number}1ms"))


def test_an_answer_that_is_nested_very_deep_is_read() -> None:
    deep: Any = "No"
    for _ in range(300):
        deep = {"error": deep, "details": [deep]} if isinstance(deep, str) else {"error": deep}
    said = said_of(json.dumps(deep))
    assert waiting_time(said) is None


# YAML -------------------------------------------------------------------------------------------------------------

LAUGHS = "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in itertools.pairwise("abcdefghi")
)
BOMBS = {
    "billion laughs": 'a: &a ["lol","lol","lol"]\n' + LAUGHS,
    "a quadratic one": "a: &a [" + "x," * 2000 + "]\nb: [" + "*a," * 2000 + "]",
    "an alias of its own parent": "a: &a [*a]",
    "lists in lists": "a: " + "[" * 100_000,
    "mappings in mappings": "a: " + "{a: " * 100_000,
    "lists by dashes": "- " * 100_000,
    "keys of keys": "? " * 100_000,
    "tags": "a: " + "!" * 100_000,
    "anchors": "a: " + "&a " * 100_000,
    "a merge": "a: &a {b: 1}\nc:\n  <<: *a\n  " + "<<: *a\n  " * 1000,
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_yaml_bomb_is_an_error_and_is_not_expanded(bomb: str) -> None:
    with pytest.raises(BodyError):
        load_body(bomb)
    text = "> [!tool a]\n" + "".join(f"> {line}\n" for line in bomb.split("\n"))
    assert not Transcript.from_events(detect("callout", text)).calls
    assert Transcript.from_markdown(text).diagnostics


def test_the_hostile_bodies_of_the_corpus_are_bounded() -> None:
    cases = json.loads((corpus("yaml_parsing") / "yaml_hostile.json").read_text("utf-8"))
    for case in cases:
        text = case["yaml"] if "yaml" in case else eval(case["yaml_generator"], {})
        try:
            assert len(json.dumps(load_body(text).fields)) < 100 * MAX_ALIASED
        except BodyError:
            continue


@pytest.mark.parametrize("text", ["[" * 98 + "1" + "]" * 98, "{a: " * 98 + "1" + "}" * 98])
def test_a_value_of_the_greatest_depth_reads_back(text: str) -> None:
    transcript = Transcript.from_markdown(f"> [!tool a b]\n> input: {text}\n")
    assert MAX_YAML_DEPTH > 98
    assert transcript.calls["b"].input
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript
    to_html(transcript), to_text(transcript)


@pytest.mark.parametrize(
    "written", ["9" * 100_000, "-" + "9" * 100_000, "0x" + "f" * 100_000, "1e999", "." + "1" * 100_000, "1e-99999"]
)
def test_a_very_long_number_is_a_value_that_can_be_shown(written: str) -> None:
    transcript = Transcript.from_markdown(f"> [!tool a b]\n> input:\n>   n: {written}\n")
    assert set(json.loads(json.dumps(transcript.calls["b"].input))) == {"n"}
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript
    to_html(transcript), to_text(transcript)


def test_a_very_long_key_is_a_key() -> None:
    key = "k" * 1000
    assert load_body(f"{key}: 1").fields == {key: 1}
    for dialect, text in (
        ("signature", f'###: {{"toolName": "a", "parameters": {{"{key * 500}": 1}}}}'),
        ("json", f'```json\n{{"tool": "a", "params": {{"{key * 500}": 1}}}}\n```'),
    ):
        (call,) = Transcript.from_events(detect(dialect, text)).calls.values()
        assert call.input == {key * 500: 1}


# JSON, and streams ------------------------------------------------------------------------------------------------

VALUES = {
    "an integer": "9" * 100_000,
    "a float": "1e999",
    "digits behind the point": "0." + "1" * 100_000,
    "lists": "[" * 100_000 + "]" * 100_000,
    "objects": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "half of them": "[" * 100_000,
    "a string": '"' + "x" * 1_000_000 + '"',
    "a key": '{"' + "k" * 1_000_000 + '": 1}',
    "the same key": "{" + '"a": 1,' * 50_000 + '"a": 2}',
}


@pytest.mark.parametrize("name", WIRE_NAMES)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_very_long_value_in_a_stream_raises_nothing(name: str, value: str) -> None:
    chunk = f'{{"type":"tool-output-available","toolCallId":"c","output":{value}}}'
    event = f'{{"type":"provider-event","data":{{"type":"text-delta","textDelta":{value}}}}}'
    reader = decoder(name)
    events = [found for text in (chunk, event) for found in reader.feed(f"data: {text}\n\n".encode())] + reader.close()
    transcript = Transcript.from_events(events)
    to_html(transcript), to_text(transcript)
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_very_long_value_in_a_call_is_a_call_or_text(dialect: str, value: str) -> None:
    text = {
        "callout": f"> [!tool a b]\n> input: {value}\n",
        "signature": f'###: {{"toolName": "a", "parameters": {{"x": {value}}}}}',
        "json": f'```json\n{{"tool": "a", "params": {{"x": {value}}}}}\n```',
    }[dialect]
    transcript = Transcript.from_events(detect(dialect, text))
    assert transcript.calls or transcript.messages[0].text == text
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


def test_numbers_of_an_event_stream_are_bounded() -> None:
    reader = SseDecoder()
    reader.feed(b"retry: " + b"9" * 100_000 + b"\nid: " + b"9" * 100_000 + b"\ndata: x\n\n")
    assert reader.retry is not None
    assert reader.retry < 10**15
    assert len(reader.last_event_id) == 100_000  # it is sent back as it came


def test_a_chunk_with_half_a_character_for_a_name_is_a_chunk() -> None:
    for mapping in ({"\udce1": 1}, {"data": {"\udce1": 1}}):
        for kind in ("data-status", "data-tool-log", "text-delta", "data-x", "odd"):
            try:
                ev.from_dict({"type": kind, **mapping})
            except WireError:
                continue
    assert ev.from_dict({"type": "data-status", "data": {"text": "a", "\udce1": 1}}) == ev.Status("a")


def test_a_numeric_character_reference_of_html_is_shown_as_its_character() -> None:
    assert sanitise("<b>exe&#8238;gnp&#2;</b>").html == "<b>exe&lt;U+202E&gt;gnp&lt;U+0002&gt;</b>"
    assert sanitise("a\u202eb\r\nc").html == "a&lt;U+202E&gt;b\nc"
