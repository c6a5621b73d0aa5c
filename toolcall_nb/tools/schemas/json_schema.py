"""Checks arguments by a JSON Schema that was given as data: `SchemaArguments`; and any value: `SchemaCheck`.

A stranger may have written the schema, as an MCP server does, and can make it arbitrarily expensive: references that
fan out, patterns that backtrack, long enumerations. So each pair of a schema and a value is checked once, each step is
counted, and patterns are run by an engine that never backtracks. The keywords are those of draft 2020-12, and those of
older drafts that still mean the same. Ignored are ``format``, ``unevaluated…``, keywords with a malformed value, and
references out of the document; nothing is ever fetched.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from toolcall_nb.core.events import Json, Object
from toolcall_nb.tools.schemas.bounded_values import (
    QUOTED_LENGTH,
    count_values,
    first_names,
    pattern_searcher,
    pattern_size,
    quote,
    with_whole_numbers,
)
from toolcall_nb.tools.schemas.parameters import WrongArguments, arguments_object

_STEPS = 100_000
"""Keywords that are checked for one value; a value of many items may have more, in proportion."""

_STEPS_PER_ITEM = 50
_MAX_DEPTH = 120
"""Schemas inside each other that are followed, references included."""

MAX_PROBLEMS = 20
"""Problems of one value that are reported."""

_STEPS_PER_PROBLEM = 20

_MAX_SEARCH_WORK = 20_000_000
"""The size of a pattern, its repetitions written out, times the text's length; beyond that it is not searched for."""

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": lambda value: _is_number(value),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


class TooCostly(Exception):
    """Checking a value by a schema would take too many steps."""


class _Problem(NamedTuple):
    """One thing that is wrong: the keys and indexes that lead to it, and a text."""

    path: tuple[str | int, ...]
    text: str

    def below(self, step: str | int) -> _Problem:
        """Returns the problem as seen from the value that contains this one."""
        return _Problem((step, *self.path), self.text)

    def __str__(self) -> str:
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"{text.removeprefix('.') or 'the arguments'}: {self.text}"


_Problems = tuple[_Problem, ...]


class SchemaArguments:
    """Binds the arguments of a tool whose function takes all of them by keyword.

    An invalid schema checks nothing, since the server checks too. A schema that is too expensive refuses the call.
    ``trusted`` says that the schema is the user's own.
    """

    def __init__(self, name: str, schema: Object, *, trusted: bool = False) -> None:
        self.name = name
        self._check = SchemaCheck(schema, trusted=trusted)

    def bind(self, arguments: Json) -> tuple[list[Any], dict[str, Any]]:
        """Returns no positional arguments, and the keyword arguments. Raises `WrongArguments`."""
        values = dict(arguments_object(arguments, self.name))
        try:
            problems = self._check.problems(values)
        except TooCostly:
            problems = ["the arguments: the tool's schema takes too long to check them by, so the tool was not called"]
        if problems:
            raise WrongArguments(self.name, problems)
        return [], copy.deepcopy(values)


class SchemaCheck:
    """Checks values by a schema. ``trusted``: Python's own engine runs patterns that need backtracking."""

    def __init__(self, schema: Any, *, trusted: bool = False) -> None:
        self._schema = schema
        self._trusted = trusted

    def problems(self, value: Json) -> list[str]:
        """Returns one line for each thing that is wrong, up to `MAX_PROBLEMS`. Raises `TooCostly`."""
        try:
            return list(dict.fromkeys(map(str, _Check(self._schema, self._trusted, value).check(self._schema, value))))
        except RecursionError:
            raise TooCostly from None


class _Check:
    """The check of one value: the problems found so far, and the steps that are left."""

    def __init__(self, schema: Any, trusted: bool, value: Json) -> None:
        self._root = schema
        self._trusted = trusted
        self._results: dict[tuple[int, int], _Problems] = {}
        self._depth = 0
        self._remaining_steps = _STEPS + _STEPS_PER_ITEM * count_values(value)

    def check(self, schema: Any, value: Json) -> _Problems:
        """Returns the problems of a value. A pair that is being checked already has none, which ends a recursion."""
        self._spend(1)
        if schema is False:
            return (_Problem((), "is not allowed"),)
        if not isinstance(schema, dict):
            return ()
        pair = (id(schema), id(value))
        if (earlier := self._results.get(pair)) is not None:
            return earlier
        self._results[pair] = ()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TooCostly
        problems: list[_Problem] = []
        for key, rule in schema.items():
            self._spend(1)
            if (keyword := _KEYWORDS.get(key)) is not None:
                more = [*islice(keyword(self, rule, value, schema), MAX_PROBLEMS)]
                self._spend(_STEPS_PER_PROBLEM * len(more))
                problems += more
        self._depth -= 1
        self._results[pair] = tuple(problems[:MAX_PROBLEMS])
        return self._results[pair]

    def fits(self, schema: Any, value: Json) -> bool:
        """Whether a value fits a schema."""
        return not self.check(schema, value)

    def _spend(self, steps: int) -> None:
        self._remaining_steps -= steps
        if self._remaining_steps < 0:
            raise TooCostly

    # Any value

    def _reference(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        yield from self.check(self._resolved(rule), value)

    def _resolved(self, reference: Any) -> Any:
        """Returns the schema that a reference points to; True, which allows everything, for one out of the document."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        self._spend(len(reference) // 100)
        target = self._root
        for step in reference[1:].split("/")[1:]:
            self._spend(1)
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdecimal() and len(name) < 7 and int(name) < len(target):
                target = target[int(name)]
            elif isinstance(target, dict) and name in target:
                target = target[name]
            else:
                return True
        return target if reference == "#" or reference.startswith("#/") else self._anchored(reference[1:])

    def _anchored(self, name: str) -> Any:
        waiting = [self._root]
        while waiting:
            self._spend(1)
            item = waiting.pop()
            if isinstance(item, dict):
                if item.get("$anchor") == name:
                    return item
                waiting += item.values()
            elif isinstance(item, list):
                waiting += item
        return True

    def _type(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        names = rule if isinstance(rule, list) else [rule]
        self._spend(len(names))
        types = [name for name in names if isinstance(name, str) and name in _TYPES]
        if types == names and not any(_TYPES[name](value) for name in types):
            yield _wrong(f"{quote(value)} is not of type {', '.join(map(repr, dict.fromkeys(types)))}")

    def _enum(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(rule, list) and not any(self._equal(item, value) for item in rule):
            yield _wrong(f"{quote(value)} is not one of {quote(rule)}")

    def _const(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if not self._equal(rule, value):
            yield _wrong(f"{quote(rule)} was expected")

    def _equal(self, one: Any, other: Any) -> bool:
        self._spend(1)
        if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
            return one is other
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(self._equal, one, other))
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(self._equal(one[key], other[key]) for key in one)
        return bool(one == other)

    def _all_of(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        for schema in _list(rule):
            yield from self.check(schema, value)

    def _any_of(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        first_problems = []
        for schema in _list(rule):
            problems = self.check(schema, value)
            if not problems:
                return
            first_problems.append(problems[0])
        if first_problems:
            reasons = "; ".join(str(_Problem(("it", *problem.path), problem.text)) for problem in first_problems[:3])
            yield _wrong(f"{quote(value)} is not valid under any of the given schemas ({reasons:.{QUOTED_LENGTH}})")

    def _one_of(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        if sum(self.fits(item, value) for item in _list(rule)) > 1:
            yield _wrong(f"{quote(value)} is valid under more than one of the given schemas")
        else:
            yield from self._any_of(rule, value, schema)

    def _not(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if rule is True or (isinstance(rule, dict) and self.fits(rule, value)):
            yield _wrong(f"{quote(value)} should not be valid under {quote(rule)}")

    def _if(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        yield from self.check(schema.get("then" if self.fits(rule, value) else "else", True), value)

    # Numbers

    def _limit(self, rule: Any, value: Json, schema: Any, *, least: bool, exclusive: bool) -> Iterator[_Problem]:
        if not _are_numbers(rule, value):
            return
        # Before draft 6, the exclusive keywords were booleans.
        exclusive = exclusive or schema.get("exclusiveMinimum" if least else "exclusiveMaximum") is True
        if (value < rule if least else value > rule) or (exclusive and value == rule):
            than = f"{'less' if least else 'greater'} than{' or equal to' if exclusive else ''}"
            yield _wrong(f"{quote(value)} is {than} the {'minimum' if least else 'maximum'} of {quote(rule)}")

    def _multiple_of(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if not _are_numbers(rule, value) or rule <= 0:
            return
        quotient = value / rule if abs(value) < 1e300 and rule > 1e-300 else 0.0
        is_multiple = value % rule == 0 if isinstance(value, int) and isinstance(rule, int) else quotient.is_integer()
        if not is_multiple:
            yield _wrong(f"{quote(value)} is not a multiple of {quote(rule)}")

    # Texts

    def _length(self, rule: Any, value: Json, _: Any, *, least: bool, kind: type) -> Iterator[_Problem]:
        if not isinstance(value, kind) or not _is_number(rule):
            return
        assert isinstance(value, str | list | dict)
        if len(value) < rule if least else len(value) > rule:
            what = "is too short" if least else "is too long"
            if kind is dict:
                what = f"has too {'few' if least else 'many'} properties"
            yield _wrong(f"{quote(value)} {what} ({'at least' if least else 'at most'} {quote(rule)})")

    def _pattern(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(rule, str) and isinstance(value, str) and not self._matches(rule, value):
            yield _wrong(f"{quote(value)} does not match {quote(rule)}")

    def _matches(self, pattern: str, text: str) -> bool:
        """Whether a pattern is found in a text; True for one that cannot be searched for, or not in bounded time."""
        size = pattern_size(pattern, _MAX_SEARCH_WORK)
        self._spend(1 + len(text) // 100 + size // 1000)
        if not self._trusted and size * (len(text) + 1) > _MAX_SEARCH_WORK:
            return True
        search = pattern_searcher(pattern, self._trusted)
        return search is None or search(text)

    # Arrays

    def _items(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        if isinstance(rule, list):  # as it was before draft 2020-12
            yield from self._prefix_items(rule, value, schema)
            yield from self._rest(schema.get("additionalItems", True), value, len(rule))
        else:
            yield from self._rest(rule, value, len(_list(schema.get("prefixItems"))))

    def _rest(self, rule: Any, value: Json, start: int) -> Iterator[_Problem]:
        if isinstance(value, list):
            for number in range(start, len(value)):
                yield from self._below(rule, value[number], number)

    def _prefix_items(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(value, list):
            for number, (schema, item) in enumerate(zip(_list(rule), value, strict=False)):
                yield from self._below(schema, item, number)

    def _contains(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        if not isinstance(value, list):
            return
        number = sum(self.fits(rule, item) for item in value)
        least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
        if _is_number(least) and number < least:
            yield _wrong(f"{quote(value)} does not contain items matching the given schema (at least {quote(least)})")
        if _is_number(most) and number > most:
            yield _wrong(f"{quote(value)} has too many items matching the given schema (at most {quote(most)})")

    def _unique_items(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if rule is not True or not isinstance(value, list):
            return
        self._spend(count_values(value))
        texts = {json.dumps(with_whole_numbers(item), sort_keys=True) for item in value}
        if len(texts) < len(value):
            yield _wrong(f"{quote(value)} has non-unique elements")

    # Objects

    def _properties(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(rule, dict) and isinstance(value, dict):
            for name, item in value.items():
                if name in rule:
                    yield from self._below(rule[name], item, name)

    def _pattern_properties(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(rule, dict) and isinstance(value, dict):
            for pattern, schema in rule.items():
                for name, item in value.items():
                    if self._matches(pattern, name):
                        yield from self._below(schema, item, name)

    def _additional_properties(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        if not isinstance(value, dict):
            return
        patterns = schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, dict) else {}
        declared = schema.get("properties")
        declared = declared if isinstance(declared, dict) else {}
        for name, item in value.items():
            self._spend(1)
            if name in declared or any(self._matches(pattern, name) for pattern in patterns):
                continue
            if rule is False and patterns:
                yield _wrong(f"{quote(name)} does not match any of the regexes: {quote([*patterns])}")
            elif rule is False:
                yield _Problem((name,), f"is not a parameter; there are: {first_names(declared)}")
            else:
                yield from self._below(rule, item, name)

    def _property_names(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(value, dict):
            for name in value:
                yield from (_wrong(problem.text) for problem in self.check(rule, name))

    def _required(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(value, dict):
            for name in _list(rule):
                self._spend(1)
                if isinstance(name, str) and name not in value:
                    yield _Problem((name,), "is missing")

    def _dependencies(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if not isinstance(rule, dict) or not isinstance(value, dict):
            return
        for name, needed in rule.items():
            self._spend(1)
            if name in value and isinstance(needed, list):
                yield from self._required(needed, value, None)
            elif name in value:
                yield from self.check(needed, value)

    def _below(self, schema: Any, value: Json, step: str | int) -> Iterator[_Problem]:
        yield from (problem.below(step) for problem in self.check(schema, value))


def _wrong(text: str) -> _Problem:
    return _Problem((), text)


def _list(rule: Any) -> list[Any]:
    return rule if isinstance(rule, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_numbers(*values: Any) -> bool:
    return all(map(_is_number, values))


def _limit_rule(least: bool, exclusive: bool) -> Callable[..., Iterator[_Problem]]:
    return lambda run, rule, value, schema: run._limit(rule, value, schema, least=least, exclusive=exclusive)


def _size_rule(least: bool, kind: type) -> Callable[..., Iterator[_Problem]]:
    return lambda run, rule, value, schema: run._length(rule, value, schema, least=least, kind=kind)


_KEYWORDS: Mapping[str, Callable[..., Iterator[_Problem]]] = {
    "$ref": _Check._reference,
    "additionalProperties": _Check._additional_properties,
    "allOf": _Check._all_of,
    "anyOf": _Check._any_of,
    "const": _Check._const,
    "contains": _Check._contains,
    "dependencies": _Check._dependencies,
    "dependentRequired": _Check._dependencies,
    "dependentSchemas": _Check._dependencies,
    "enum": _Check._enum,
    "exclusiveMaximum": _limit_rule(False, True),
    "exclusiveMinimum": _limit_rule(True, True),
    "if": _Check._if,
    "items": _Check._items,
    "maxItems": _size_rule(False, list),
    "maxLength": _size_rule(False, str),
    "maxProperties": _size_rule(False, dict),
    "maximum": _limit_rule(False, False),
    "minItems": _size_rule(True, list),
    "minLength": _size_rule(True, str),
    "minProperties": _size_rule(True, dict),
    "minimum": _limit_rule(True, False),
    "multipleOf": _Check._multiple_of,
    "not": _Check._not,
    "oneOf": _Check._one_of,
    "pattern": _Check._pattern,
    "patternProperties": _Check._pattern_properties,
    "prefixItems": _Check._prefix_items,
    "properties": _Check._properties,
    "propertyNames": _Check._property_names,
    "required": _Check._required,
    "type": _Check._type,
    "uniqueItems": _Check._unique_items,
}
"""The check of each keyword."""
