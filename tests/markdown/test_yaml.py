"""YAML as callout bodies use it: the core schema, bounded, and lines that read back."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.corpora import corpus
from tests.support.strategies import json_values, texts
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.markdown.yaml_text import BodyError, load_body, resolve_plain, yaml_lines, yaml_scalar


def written(mapping: dict[str, Any]) -> str:
    return "".join(f"{line}\n" for line in yaml_lines(mapping))


@settings(max_examples=1000)
@given(st.dictionaries(texts(), st.one_of(json_values(), texts(8)), max_size=4))
def test_what_is_written_reads_back(mapping: dict[str, Any]) -> None:
    mapping = well_formed_json(mapping)  # with the one NaN that equals itself
    assert load_body(written(mapping)).fields == mapping


@settings(max_examples=500)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_string_reads_back_as_value_and_as_key(text: str) -> None:
    assert load_body(written({"a": text, text: [text]})).fields == {"a": text, text: [text]}


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        *(("no", "no"), ("on", "on"), ("Yes", "Yes"), ("12:30", "12:30"), ("2025-01-01", "2025-01-01")),
        *(("null", None), ("~", None), ("", None), ("True", True), ("FALSE", False), ("tRue", "tRue")),
        *(("0123", 123), ("0o17", 15), ("0xfF", 255), ("-7", -7), ("+1", 1), ("1_000", "1_000")),
        *(("1e3", 1000.0), (".5", 0.5), ("1.", 1.0), ("-.inf", float("-inf")), (".", "."), ("1.2.3", "1.2.3")),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_scalars_follow_the_core_schema(scalar: str, value: Any) -> None:
    assert resolve_plain(scalar) == value
    assert type(resolve_plain(scalar)) is type(value)


@pytest.mark.parametrize(
    "text", ["no", "12:30", "2025-01-01", "1e3", "a: b", "a #b", "-", "- x", "é", "[", "'x'", " x", "x:"]
)
def test_strings_that_other_readers_might_misread_are_quoted(text: str) -> None:
    import yaml

    assert yaml.safe_load(f"k: {yaml_scalar(text)}") == {"k": text}


def test_lines_of_a_mapping() -> None:
    mapping = {"a": {"b": ["x", {"c": "two\nlines", "d": []}]}, "e": {}, "f": "  led by blanks\n"}
    assert list(yaml_lines(mapping)) == [
        *("a:", "  b:", "    - x", "    - c: |-", "        two", "        lines", "      d: []"),
        *("e: {}", "f: |2", "    led by blanks"),
    ]


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("a: 1\na: 2\n", "given twice", 1),
        ("a: !custom 1\n", "tag", 0),
        ("a: !!python/name:os.system\n", "tag", 0),
        ("- a\n", "no mapping", 0),
        ("# a comment\n", "no mapping", 0),
        ("just text\n", "no mapping", 0),
        ("a: *nowhere\n", "anchor", 0),
        ("a: &x {b: *x}\n", "anchor", 0),
        ("{a: 1}: 2\n", "single value", 0),
        ("a: 1\n--- \nb: 2\n", "one YAML document", 1),
        ("a: b: c\n", "mapping values", 0),
        ("a: " + "[" * 200, "levels", 0),
        ("a: \x07\n", "U+0007", 0),
    ],
)
def test_the_error_of_an_unreadable_body_says_why_and_where(body: str, message: str, line: int) -> None:
    with pytest.raises(BodyError, match=message.replace("+", r"\+")) as caught:
        load_body(body)
    assert caught.value.line == line


def test_aliases_are_values_and_are_bounded() -> None:
    assert load_body("a: &x [1]\nb: *x\n").fields == {"a": [1], "b": [1]}
    with pytest.raises(BodyError, match="aliases"):
        load_body("a: &x [" + "1," * 200 + "]\nb: [" + "*x," * 200 + "]\n")


def test_scalars_are_kept_as_they_are_written() -> None:
    assert load_body("id: 007\nname: 'x'\nlist: [1]\n").written == {"id": "007", "name": "x"}


def test_hostile_yaml_is_read_or_refused() -> None:
    cases = json.loads((corpus("yaml_parsing") / "yaml_hostile.json").read_text(encoding="utf-8"))
    for text in strings_of(cases):
        with suppress(BodyError):
            load_body(text)


def test_the_yaml_test_suite_is_read_or_refused() -> None:
    for path in sorted((corpus("yaml_parsing") / "src").glob("*.yaml")):
        for text in path.read_text(encoding="utf-8").split("\n- "):
            with suppress(BodyError):
                load_body(text)


def strings_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in inner for text in strings_of(item)]
