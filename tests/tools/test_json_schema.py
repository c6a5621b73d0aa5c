"""The check of a value by a JSON Schema agrees with jsonschema, and its work is bounded for every schema."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped] # comes with JupyterLab, without types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcall_nb.tools.schemas.json_schema import MAX_PROBLEMS, SchemaArguments, SchemaCheck, TooCostly
from toolcall_nb.tools.schemas.parameters import WrongArguments

SECONDS = 5.0
"""Far above what any check takes, on a machine that others use too; unbounded work takes hours."""


def problems(schema: Any, value: Any) -> list[str]:
    return SchemaCheck(schema).problems(value)


# Right --------------------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "ab"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(-3, 5), st.sampled_from([0.5, 1.0, 2.5]), names)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
leaves = st.one_of(
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(types, st.lists(types, min_size=1, max_size=2, unique=True)),
            "enum": st.lists(values, min_size=1, max_size=3),
            "const": values,
            "minimum": st.integers(-2, 3),
            "exclusiveMaximum": st.integers(-2, 3),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^a", "b$", "^(a|b)+$"]),
            "required": st.lists(names, max_size=2, unique=True),
            "minProperties": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        },
    ),
    st.just({"$ref": "#/$defs/other"}),
    st.just({"$ref": "#/$defs/tree"}),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(names, inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "minContains": st.integers(0, 2),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentSchemas": st.dictionaries(names, inner, max_size=2),
        },
    ),
    max_leaves=8,
)
DEFINITIONS = {
    "other": {"type": ["integer", "object"], "minimum": 1},
    "tree": {"type": ["object", "integer"], "additionalProperties": {"$ref": "#/$defs/tree"}},
}


@settings(max_examples=400)
@given(schemas, values)
def test_a_value_fits_where_jsonschema_says_so(schema: Any, value: Any) -> None:
    whole = {"allOf": [schema], "$defs": DEFINITIONS}
    assert (problems(whole, value) == []) is jsonschema.Draft202012Validator(whole).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"properties": {"a": {"type": "integer"}}}, {"a": "x"}, ["a: 'x' is not of type 'integer'"]),
        ({"required": ["a"]}, {}, ["a: is missing"]),
        ({"items": {"required": ["a"]}}, [{}], ["[0].a: is missing"]),
        ({"maximum": 9}, 10, ["the arguments: 10 is greater than the maximum of 9"]),
        ({"maxLength": 1}, "abc", ["the arguments: 'abc' is too long (at most 1)"]),
        ({"minItems": 2}, [1], ["the arguments: [1] is too short (at least 2)"]),
        ({"minProperties": 1}, {}, ["the arguments: {} has too few properties (at least 1)"]),
        ({"enum": ["a", "b"]}, "c", ["the arguments: 'c' is not one of ['a', 'b']"]),
        ({"items": [{"type": "null"}], "additionalItems": False}, [None, 1], ["[1]: is not allowed"]),
        (
            {"anyOf": [{"type": "integer"}, {"properties": {"a": {"type": "null"}}, "type": "object"}]},
            {"a": 1},
            [
                "the arguments: {'a': 1} is not valid under any of the given schemas "
                "(it: {'a': 1} is not of type 'integer'; it.a: 1 is not of type 'null')"
            ],
        ),
        (
            {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "null"}}},
            1,
            ["the arguments: 1 is not of type 'null'"],
        ),
        ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"const": 2}}}, 1, ["the arguments: 2 was expected"]),
    ],
)
def test_a_problem_names_the_place_and_the_limit(schema: Any, value: Any, expected: list[str]) -> None:
    assert problems(schema, value) == expected


def test_the_number_of_reported_problems_is_bounded() -> None:
    assert len(problems({"items": {"type": "null"}}, [*range(1000)])) == MAX_PROBLEMS


def test_a_long_list_is_checked_whole() -> None:
    numbers = {"type": "array", "items": {"type": "object", "required": ["a"], "properties": {"a": {"minimum": 0}}}}
    value = [{"a": n} for n in range(50_000)]
    assert problems(numbers, value) == []
    assert problems(numbers, [*value, {"a": -1}]) == ["[50000].a: -1 is less than the minimum of 0"]


# Bounded ------------------------------------------------------------------------------------------------------


def fan(key: str) -> Any:
    """Twenty-five definitions, each with the next one twice: 33 million ways through."""
    steps: dict[str, Any] = {f"s{n}": {key: [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(25)}
    return {"$ref": "#/$defs/s0", "$defs": {**steps, "s25": {"type": "null"}}}


def nested(key: str, depth: int, width: int = 2) -> Any:
    """Pairs in pairs, written out."""
    schema: Any = {"type": "null"}
    for _ in range(depth):
        schema = {key: [json.loads(json.dumps(schema)) for _ in range(width)]}
    return schema


def deep(key: str, make: Callable[[Any], Any] = lambda inner: inner, depth: int = 5_000) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(depth):
        schema = {key: make(schema)}
    return schema


def shared_fan(key: str) -> Any:
    """As `fan`, with the same object in both places, as a server in this process may have it."""
    schema: Any = {"type": "null"}
    for _ in range(40):
        schema = {key: [schema, schema]}
    return schema


HOSTILE: dict[str, tuple[Any, Any]] = {
    **{f"fanned {key}": (fan(key), 1) for key in ("anyOf", "oneOf", "allOf")},
    **{f"shared {key}": (shared_fan(key), 1) for key in ("anyOf", "oneOf", "allOf")},
    "nested anyOf": (nested("anyOf", 17), 1),
    "nested oneOf": (nested("oneOf", 17), 1),
    "deep not": (deep("not"), 1),
    "deep if": (deep("if"), 1),
    "deep anyOf": (deep("anyOf", lambda inner: [inner]), 1),
    "deep items": (deep("items"), json.loads("[" * 500 + "]" * 500)),
    "propertyNames": (deep("propertyNames"), {"a": 1}),
    "itself": ({"$ref": "#"}, 1),
    "each other": ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, 1),
    "itself in not": ({"not": {"$ref": "#"}}, 1),
    "itself twice": ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "type": "null"}, 1),
    "backtracking": ({"pattern": "^(a+)+$"}, "a" * 60 + "b"),
    "backtracking more": ({"pattern": "^(a|a|aa)*$"}, "a" * 5_000 + "b"),
    "polynomial": ({"pattern": "^.*.*.*.*=$"}, "x" * 100_000),
    "backtracking names": ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 60 + "b": 1}),
    "unevaluated names": ({"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}, {"a" * 60 + "b": 1}),
    "lookahead": ({"pattern": "^(?=(a+)+$)"}, "a" * 60 + "b"),
    "repetitions": ({"pattern": "^((a{1,1000}){1,1000}){1,1000}$"}, "a" * 50_000),
    "repetition": ({"pattern": "(a{0,900}b{0,900}){9}$"}, "ab" * 50_000),
    "many patterns": ({"patternProperties": {f"^(x{{1,{n}}}){{1,90}}$": {} for n in range(1, 3_000)}}, {"x" * 50: 1}),
    "many pairs": ({"patternProperties": {f"^a{n}": {} for n in range(20_000)}}, {f"a{n}": 1 for n in range(2_000)}),
    "long pattern": ({"pattern": "(" * 2_000_000}, "a"),
    "enum": ({"items": {"enum": [*range(100_000)]}}, [-1] * 20_000),
    "deep enum": ({"enum": [json.loads("[" * 900 + "]" * 900)] * 1_000}, json.loads("[" * 900 + "1" + "]" * 900)),
    "unique": ({"uniqueItems": True}, [{"a": [n, {}]} for n in range(50_000)] + [1, "1"]),
    "required": ({"items": {"required": [f"a{n}" for n in range(100_000)]}}, [{}] * 20_000),
    "types": ({"items": {"type": ["null"] * 100_000}}, [1] * 20_000),
    "trues": ({"items": {"oneOf": [True] * 100_000}}, [1] * 20_000),
    "quotes": ({"items": {"not": True}}, [["x" * 1_000] * 1_000] * 500),
    "anchors": (
        {"allOf": [{"$ref": f"#x{n}"} for n in range(5_000)], "$defs": {f"d{n}": {} for n in range(50_000)}},
        1,
    ),
    "long references": ({"allOf": [{"$ref": "#/" + "a/" * 500_000}] * 10_000}, 1),
    "remote": ({"$ref": "http://127.0.0.1:9/schema.json"}, 1),
    "dependent": (
        {"dependentSchemas": {"a": fan("allOf"), "b": fan("anyOf")}, **{"$defs": fan("anyOf")["$defs"]}},
        {"a": 1, "b": 1},
    ),
    "multiples": ({"multipleOf": 1e-320}, 10**4000),
    "contains": ({"contains": fan("anyOf"), "$defs": fan("anyOf")["$defs"]}, [1] * 1_000),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_of_a_check_is_bounded_for_every_schema(name: str) -> None:
    schema, value = HOSTILE[name]
    begun = time.process_time()
    try:
        found = problems(schema, value)
    except TooCostly:
        found = []
    assert time.process_time() - begun < SECONDS
    assert sum(map(len, found)) < 50_000


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (fan("anyOf"), None),
        (shared_fan("anyOf"), None),
        ({"pattern": "^(a+)+$"}, "a" * 5_000),
        ({"$ref": "#"}, 1),
        (
            {"type": "nonsense", "required": "a", "properties": 3, "pattern": 4, "enum": 5, "items": "x", "anyOf": {}},
            {},
        ),
    ],
)
def test_ordinary_large_values_pass(schema: Any, value: Any) -> None:
    assert problems(schema, value) == []


def test_a_schema_that_is_too_costly_refuses_the_call_in_one_sentence() -> None:
    costly = {"properties": {"a": {"items": {"enum": [*range(100_000)]}}}}
    with pytest.raises(WrongArguments) as refused:
        SchemaArguments("it", costly).bind({"a": [-1.5 * n for n in range(1, 10)]})
    assert refused.value.problems == [
        "the arguments: the tool's schema takes too long to check them by, so the tool was not called"
    ]


def test_only_patterns_of_trusted_schemas_may_need_backtracking() -> None:
    schema = {"properties": {"a": {"pattern": "^(?!b)"}}}
    with pytest.raises(WrongArguments, match="does not match"):
        SchemaArguments("it", schema, trusted=True).bind({"a": "b"})
    assert SchemaArguments("it", schema).bind({"a": "b"}) == ([], {"a": "b"})
