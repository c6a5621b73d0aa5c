"""One JSON object in a stream: JSON's grammar, at every cut, each character looked at once."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.corpora import corpus
from tests.support.documents import cuts, in_pieces
from tests.support.strategies import json_values
from toolcall_nb.dialects.json_object import MAX_JSON_DEPTH, JsonObject, parse_lenient_json

OBJECTS = st.dictionaries(st.text(max_size=5), json_values(finite=True), max_size=4)
MANGLED = st.lists(st.sampled_from([*'{}[]:,"\\ \n-+.0123eEuabtrufalsn\t\0é', '{"a":', "null"]), max_size=30).map(
    "".join
)


def fed(*pieces: str) -> tuple[JsonObject, int]:
    """The object, and how much of the text it took in."""
    found, taken = JsonObject(), 0
    for piece in pieces:
        taken += found.feed(piece)
    return found, taken


@given(st.data())
def test_an_object_is_whole_at_its_closing_brace(data: st.DataObject) -> None:
    value = data.draw(OBJECTS)
    source = json.dumps(value, ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.sampled_from([None, 2])))
    text = source + data.draw(st.sampled_from(["", "}", " x", "\n```"]))
    found, taken = fed(*in_pieces(text, data.draw(cuts(text))))
    assert (found.is_whole, found.is_broken, taken) == (True, False, len(source))
    assert found.source == source
    assert parse_lenient_json(found.source) == value
    members = {key: parse_lenient_json("".join(member.chunks)) for key, member in found.members.items()}
    assert members == value
    assert all(member.is_whole for member in found.members.values())


@settings(max_examples=500)
@given(MANGLED.map(lambda text: "{" + text))
def test_an_object_breaks_where_it_cannot_be_json(text: str) -> None:
    """Python's own parser agrees: it reads what is whole, and nothing that begins with what is broken."""
    found, taken = fed(text)
    for pieces in (list(text), [text[:2], text[2:]]):
        again, taken_again = fed(*pieces)
        assert (again.is_whole, again.is_broken, taken_again) == (found.is_whole, found.is_broken, taken)
        assert {key: member.chunks for key, member in again.members.items()}.keys() == found.members.keys()
    try:
        _, end = json.JSONDecoder(strict=False, parse_constant=pytest.fail).raw_decode(text)
    except (ValueError, pytest.fail.Exception):
        assert not found.is_whole
    else:
        assert (found.is_whole, taken) == (True, end)


@given(st.data())
def test_a_beginning_of_an_object_is_never_broken(data: st.DataObject) -> None:
    source = json.dumps(data.draw(OBJECTS))
    for place in range(len(source)):
        found, _ = fed(source[:place])
        assert (found.is_broken, found.is_whole) == (False, False)


def suite() -> list[tuple[str, bool, bytes]]:
    rows = json.loads((corpus("json_parsing") / "json_test_suite.json").read_text("utf-8"))
    expectations = {"accept": True, "reject": False}
    return [
        (row["name"], expectations[row["expect"]], base64.b64decode(row["bytes_base64"]))
        for row in rows
        if row["expect"] in expectations and "bytes_base64" in row
    ]


def test_the_json_test_suite_is_accepted_and_rejected() -> None:
    """Each value stands in an object. A raw control character in a string is taken in on purpose."""
    wrong = []
    for name, is_json, written in suite():
        try:
            text = written.decode("utf-8")
        except UnicodeDecodeError:
            continue
        inner = '{"a":' + text + "}"
        found, taken = fed(inner)
        is_lenient = not is_json and _reads(inner)
        if (found.is_whole and taken == len(inner)) is not (is_json or is_lenient):
            wrong.append(name)
    assert wrong == []


def _reads(text: str) -> bool:
    try:
        parse_lenient_json(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "member", "begins", "value"),
    [
        ('{"a": "x', "a", '"', None),
        ('{"a": "x\\u00e9"', "a", '"', "xé"),
        ('{"a": "\\ud83d\\ude00"', "a", '"', "😀"),
        ('{"a": "\\ud83d"', "a", '"', "\ufffd"),
        ('{"a": {"b": 1}', "a", "{", None),
        ('{"a": 12', "a", "1", None),
        ('{"a":', "a", "", None),
        ('{"a": 1, "a": "later"', "a", "1", None),
    ],
)
def test_a_member_holds_its_value_so_far(text: str, member: str, begins: str, value: Any) -> None:
    for pieces in ([text], list(text)):
        found, _ = fed(*pieces)
        assert (found.members[member].begins, found.members[member].string()) == (begins, value)


def test_nesting_is_bounded() -> None:
    deep = '{"a":' * (MAX_JSON_DEPTH - 1) + "{}" + "}" * (MAX_JSON_DEPTH - 1)
    assert fed(deep)[0].is_whole
    found, taken = fed('{"a":' * MAX_JSON_DEPTH + "{}")
    assert found.is_broken
    assert taken == len('{"a":') * MAX_JSON_DEPTH
    assert len(found.open_braces) == MAX_JSON_DEPTH
    assert all(b - a == len('{"a":') for a, b in pairwise(found.open_braces))


@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"a": -1e999}', '{"a": NaN}', '{"a": ' + "9" * 5000 + "}"])
def test_values_that_json_does_not_have_are_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|no JSON|limit"):
        parse_lenient_json(text)
