"""Checks a value by a JSON Schema that a stranger may have written, with bounded work: `SchemaCheck`.

The schema of an MCP server can be made to cost without end: references that fan out, patterns that backtrack, long
enumerations. So each pair of a schema and a value is judged once, each judgement is counted, and patterns are run by an
engine that never backtracks. The keywords are those of draft 2020-12, and those of older drafts that still mean the
same. A keyword whose value is not of its form, a reference that leads out of the document, ``format`` and
``unevaluated…`` say nothing here; nothing is ever fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from toolcall_nb.core.events import Json

__all__ = ["SchemaCheck", "TooCostly"]

STEPS = 100_000
"""Keywords that are looked at for one value; a value of many items has more, in proportion."""

STEPS_PER_ITEM = 50
DEPTH = 120
"""Schemas inside each other that are followed, references included."""

PROBLEMS = 20
"""Problems of one value that are told."""

_STEPS_PER_PROBLEM = 20

_QUOTED = 200
"""Characters of a value that a problem quotes."""

_QUOTED_DEPTH = 2
"""Arrays and objects inside each other that are quoted."""

_AUTOMATON = 20_000_000
"""The size of a pattern, its repetitions written out, times the characters it is run on; beyond that it is not run."""

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
    """A schema takes more steps to check a value than it may."""


class _Problem(NamedTuple):
    """What is wrong: the steps that lead to the place, and the text. ``text`` is None where a key is missing."""

    place: tuple[str | int, ...]
    text: str

    def below(self, step: str | int) -> _Problem:
        """The problem as seen from the value that holds this one."""
        return _Problem((step, *self.place), self.text)

    def __str__(self) -> str:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.place)
        return f"{path.removeprefix('.') or 'the arguments'}: {self.text}"


Problems = tuple[_Problem, ...]


class SchemaCheck:
    """A schema to check values by. ``trusted``: a pattern that needs backtracking is run with Python's own engine."""

    def __init__(self, schema: Any, *, trusted: bool = False) -> None:
        self._schema = schema
        self._trusted = trusted

    def problems(self, value: Json) -> list[str]:
        """Returns one line for each thing that is wrong, up to `PROBLEMS`. Raises `TooCostly`."""
        try:
            return list(dict.fromkeys(map(str, _Run(self._schema, self._trusted, value).judge(self._schema, value))))
        except RecursionError:
            raise TooCostly from None


class _Run:
    """The check of one value: what was judged before, and the steps that are left."""

    def __init__(self, schema: Any, trusted: bool, value: Json) -> None:
        self._root = schema
        self._trusted = trusted
        self._known: dict[tuple[int, int], Problems] = {}
        self._depth = 0
        self._left = STEPS + STEPS_PER_ITEM * _size(value)

    def judge(self, schema: Any, value: Json) -> Problems:
        """What a schema finds wrong with a value. While a pair is being judged, it finds nothing in itself."""
        self._spend(1)
        if schema is False:
            return (_Problem((), "is not allowed"),)
        if not isinstance(schema, dict):
            return ()
        pair = (id(schema), id(value))
        if (known := self._known.get(pair)) is not None:
            return known
        self._known[pair] = ()
        self._depth += 1
        if self._depth > DEPTH:
            raise TooCostly
        found: list[_Problem] = []
        for key, rule in schema.items():
            self._spend(1)
            if (judge := _KEYWORDS.get(key)) is not None:
                problems = [*islice(judge(self, rule, value, schema), PROBLEMS)]
                self._spend(_STEPS_PER_PROBLEM * len(problems))
                found += problems
        self._depth -= 1
        self._known[pair] = tuple(found[:PROBLEMS])
        return self._known[pair]

    def fits(self, schema: Any, value: Json) -> bool:
        """Whether a schema finds nothing wrong with a value."""
        return not self.judge(schema, value)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooCostly

    # Any value

    def _reference(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        yield from self.judge(self._resolved(rule), value)

    def _resolved(self, reference: Any) -> Any:
        """The schema that a reference means; True, which allows everything, where it leads out of the document."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        self._spend(len(reference) // 100)
        found = self._root
        for name in map(_unescaped, reference[1:].split("/")[1:]):
            self._spend(1)
            if isinstance(found, list) and name.isdecimal() and len(name) < 7 and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, dict) and name in found:
                found = found[name]
            else:
                return True
        return found if reference == "#" or reference.startswith("#/") else self._anchored(reference[1:])

    def _anchored(self, name: str) -> Any:
        left = [self._root]
        while left:
            self._spend(1)
            item = left.pop()
            if isinstance(item, dict):
                if item.get("$anchor") == name:
                    return item
                left += item.values()
            elif isinstance(item, list):
                left += item
        return True

    def _type(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        names = rule if isinstance(rule, list) else [rule]
        self._spend(len(names))
        known = [name for name in names if isinstance(name, str) and name in _TYPES]
        if known == names and not any(_TYPES[name](value) for name in known):
            yield _wrong(f"{_quoted(value)} is not of type {', '.join(map(repr, dict.fromkeys(known)))}")

    def _enum(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(rule, list) and not any(self._equal(item, value) for item in rule):
            yield _wrong(f"{_quoted(value)} is not one of {_quoted(rule)}")

    def _const(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if not self._equal(rule, value):
            yield _wrong(f"{_quoted(rule)} was expected")

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
            yield from self.judge(schema, value)

    def _any_of(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        found = []
        for schema in _list(rule):
            problems = self.judge(schema, value)
            if not problems:
                return
            found.append(problems[0])
        if found:
            reasons = "; ".join(str(_Problem(("it", *problem.place), problem.text)) for problem in found[:3])
            yield _wrong(f"{_quoted(value)} is not valid under any of the given schemas ({reasons:.{_QUOTED}})")

    def _one_of(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        if sum(self.fits(item, value) for item in _list(rule)) > 1:
            yield _wrong(f"{_quoted(value)} is valid under more than one of the given schemas")
        else:
            yield from self._any_of(rule, value, schema)

    def _not(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if rule is True or (isinstance(rule, dict) and self.fits(rule, value)):
            yield _wrong(f"{_quoted(value)} should not be valid under {_quoted(rule)}")

    def _if(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        yield from self.judge(schema.get("then" if self.fits(rule, value) else "else", True), value)

    # Numbers

    def _minimum(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        if schema.get("exclusiveMinimum") is True:
            yield from self._exclusive_minimum(rule, value, schema)
        elif _are_numbers(rule, value) and value < rule:
            yield _wrong(f"{_quoted(value)} is less than the minimum of {_quoted(rule)}")

    def _maximum(self, rule: Any, value: Json, schema: Any) -> Iterator[_Problem]:
        if schema.get("exclusiveMaximum") is True:
            yield from self._exclusive_maximum(rule, value, schema)
        elif _are_numbers(rule, value) and value > rule:
            yield _wrong(f"{_quoted(value)} is greater than the maximum of {_quoted(rule)}")

    def _exclusive_minimum(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if _are_numbers(rule, value) and value <= rule:
            yield _wrong(f"{_quoted(value)} is less than or equal to the minimum of {_quoted(rule)}")

    def _exclusive_maximum(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if _are_numbers(rule, value) and value >= rule:
            yield _wrong(f"{_quoted(value)} is greater than or equal to the maximum of {_quoted(rule)}")

    def _multiple_of(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if not _are_numbers(rule, value) or rule <= 0:
            return
        quotient = value / rule if abs(value) < 1e300 and rule > 1e-300 else 0.0
        is_multiple = value % rule == 0 if isinstance(value, int) and isinstance(rule, int) else quotient.is_integer()
        if not is_multiple:
            yield _wrong(f"{_quoted(value)} is not a multiple of {_quoted(rule)}")

    # Texts

    def _length(self, rule: Any, value: Json, _: Any, *, least: bool, kind: type) -> Iterator[_Problem]:
        if not isinstance(value, kind) or not _is_number(rule):
            return
        assert isinstance(value, str | list | dict)
        if len(value) < rule if least else len(value) > rule:
            what = "is too short" if least else "is too long"
            if kind is dict:
                what = f"has too {'few' if least else 'many'} properties"
            yield _wrong(f"{_quoted(value)} {what} ({'at least' if least else 'at most'} {_quoted(rule)})")

    def _pattern(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(rule, str) and isinstance(value, str) and not self._matches(rule, value):
            yield _wrong(f"{_quoted(value)} does not match {_quoted(rule)}")

    def _matches(self, pattern: str, text: str) -> bool:
        """Whether a pattern is found in a text; True for one that cannot be run, or would take too long."""
        size = _automaton_size(pattern)
        self._spend(1 + len(text) // 100 + size // 1000)
        if not self._trusted and size * (len(text) + 1) > _AUTOMATON:
            return True
        search = _searcher(pattern, self._trusted)
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
            yield _wrong(
                f"{_quoted(value)} does not contain items matching the given schema (at least {_quoted(least)})"
            )
        if _is_number(most) and number > most:
            yield _wrong(f"{_quoted(value)} has too many items matching the given schema (at most {_quoted(most)})")

    def _unique_items(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if rule is not True or not isinstance(value, list):
            return
        self._spend(_size(value))
        texts = {json.dumps(_canonical(item), sort_keys=True) for item in value}
        if len(texts) < len(value):
            yield _wrong(f"{_quoted(value)} has non-unique elements")

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
        known = schema.get("properties")
        known = known if isinstance(known, dict) else {}
        for name, item in value.items():
            self._spend(1)
            if name in known or any(self._matches(pattern, name) for pattern in patterns):
                continue
            if rule is False and patterns:
                yield _wrong(f"{_quoted(name)} does not match any of the regexes: {_quoted([*patterns])}")
            elif rule is False:
                yield _Problem((name,), f"is not a parameter; there are: {_some(known)}")
            else:
                yield from self._below(rule, item, name)

    def _property_names(self, rule: Any, value: Json, _: Any) -> Iterator[_Problem]:
        if isinstance(value, dict):
            for name in value:
                yield from (_wrong(problem.text) for problem in self.judge(rule, name))

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
                yield from self.judge(needed, value)

    def _below(self, schema: Any, value: Json, step: str | int) -> Iterator[_Problem]:
        yield from (problem.below(step) for problem in self.judge(schema, value))


def _size_rule(least: bool, kind: type) -> Callable[..., Iterator[_Problem]]:
    return lambda run, rule, value, schema: run._length(rule, value, schema, least=least, kind=kind)


_KEYWORDS: Mapping[str, Callable[..., Iterator[_Problem]]] = {
    "$ref": _Run._reference,
    "additionalProperties": _Run._additional_properties,
    "allOf": _Run._all_of,
    "anyOf": _Run._any_of,
    "const": _Run._const,
    "contains": _Run._contains,
    "dependencies": _Run._dependencies,
    "dependentRequired": _Run._dependencies,
    "dependentSchemas": _Run._dependencies,
    "enum": _Run._enum,
    "exclusiveMaximum": _Run._exclusive_maximum,
    "exclusiveMinimum": _Run._exclusive_minimum,
    "if": _Run._if,
    "items": _Run._items,
    "maxItems": _size_rule(False, list),
    "maxLength": _size_rule(False, str),
    "maxProperties": _size_rule(False, dict),
    "maximum": _Run._maximum,
    "minItems": _size_rule(True, list),
    "minLength": _size_rule(True, str),
    "minProperties": _size_rule(True, dict),
    "minimum": _Run._minimum,
    "multipleOf": _Run._multiple_of,
    "not": _Run._not,
    "oneOf": _Run._one_of,
    "pattern": _Run._pattern,
    "patternProperties": _Run._pattern_properties,
    "prefixItems": _Run._prefix_items,
    "properties": _Run._properties,
    "propertyNames": _Run._property_names,
    "required": _Run._required,
    "type": _Run._type,
    "uniqueItems": _Run._unique_items,
}
"""What judges a value by each keyword."""


# Patterns -----------------------------------------------------------------------------------------------------


_REPEATED = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")


@lru_cache(maxsize=256)
def _automaton_size(pattern: str) -> int:
    """How long a pattern is with its repetitions written out, at most."""
    size = len(pattern) + 1
    for repeated in _REPEATED.finditer(pattern):
        size = min(size * (1 + int(repeated[2] or repeated[1])), _AUTOMATON + 1)
    return size


@lru_cache(maxsize=256)
def _searcher(pattern: str, trusted: bool) -> Callable[[str], bool] | None:
    """Runs a pattern in time that grows with the text alone; None for a pattern that this cannot be done for.

    The engine is that of ``pydantic_core``, which comes with MCP's own package. Without it there is no schema of a
    stranger's, and Python's engine serves, as it does for what only that knows in a schema of the user's own.
    """
    try:
        from pydantic_core import SchemaError, SchemaValidator, core_schema
    except ImportError:
        return _python_searcher(pattern)
    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except (SchemaError, ValueError):
        return _python_searcher(pattern) if trusted else None
    return lambda text: validator.isinstance_python(text.encode("utf-8", "replace").decode())


def _python_searcher(pattern: str) -> Callable[[str], bool] | None:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
    return lambda text: compiled.search(text) is not None


# Values -------------------------------------------------------------------------------------------------------


def _wrong(text: str) -> _Problem:
    return _Problem((), text)


def _quoted(value: Any, depth: int = 0) -> str:
    """The beginning of a value's text, without writing out all of a long or deep one."""
    if isinstance(value, str):
        text = repr(value[: _QUOTED + 1])
    elif isinstance(value, list | dict) and (depth == _QUOTED_DEPTH or not value):
        text = ("[…]" if isinstance(value, list) else "{…}") if value else repr(value)
    elif isinstance(value, list):
        text = f"[{', '.join(_quoted(item, depth + 1) for item in value[:10])}{', …' if len(value) > 10 else ''}]"
    elif isinstance(value, dict):
        pairs = [f"{_quoted(key)}: {_quoted(item, depth + 1)}" for key, item in islice(value.items(), 10)]
        text = f"{{{', '.join(pairs)}{', …' if len(value) > 10 else ''}}}"
    elif isinstance(value, int) and abs(value) > 10**_QUOTED:
        text = "a very long number"
    else:
        text = repr(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def _some(names: Mapping[str, Any]) -> str:
    shown = ", ".join(islice(names, 20))
    return f"{shown[:_QUOTED]}{', …' if len(names) > 20 or len(shown) > _QUOTED else ''}" or "none"


def _list(rule: Any) -> list[Any]:
    return rule if isinstance(rule, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_numbers(*values: Any) -> bool:
    return all(map(_is_number, values))


def _size(value: Any) -> int:
    """How many values there are in one, texts by their length."""
    size, left = 0, [value]
    while left:
        item = left.pop()
        size += 1 + (len(item) // 100 if isinstance(item, str) else 0)
        if isinstance(item, dict):
            left += item.values()
        elif isinstance(item, list):
            left += item
    return size


def _canonical(value: Any) -> Any:
    """The value with whole floats as integers, which JSON Schema takes for the same."""
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unescaped(step: str) -> str:
    """A step of a JSON pointer in a URI."""
    return unquote(step).replace("~1", "/").replace("~0", "~")
