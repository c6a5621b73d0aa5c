"""Makes arguments for a tool from its JSON schema and a prompt. `arguments_for` is the entry point.

Values from the prompt come first, chosen by the parameter's name; then the schema's default or example; then a plain
value. The arguments are valid, except that a ``pattern`` is met only if one of these values happens to match it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolcall_nb.core.events import MISSING, Json, Object
from toolcall_nb.models.mock.prompt_facts import Facts, facts_of, words

_MAX_DEPTH = 8
_MAX_VALUE_DEPTH = 4 * _MAX_DEPTH
_MAX_VALUES = 1_000  # a schema whose objects each hold two of the next kind has millions

_SOURCES: Mapping[str, str] = {  # word in a parameter's name: field of the facts
    **dict.fromkeys(("expression", "formula", "calculation", "sum"), "sums"),
    **dict.fromkeys(("url", "uri", "link", "href"), "urls"),
    **dict.fromkeys(("email", "mail", "recipient"), "emails"),
    **dict.fromkeys(("path", "file", "filename", "directory", "folder"), "paths"),
    **dict.fromkeys(("date", "day", "when", "since", "until"), "dates"),
}
_PROSE = frozenset(("query", "question", "text", "prompt", "message", "search", "content", "body", "q"))
_EXAMPLES: Mapping[str, str] = {
    **dict.fromkeys(("city", "location", "place", "town"), "Paris"),
    "country": "France",
    "name": "Ada",
    "language": "English",
    "expression": "1 + 1",
    "currency": "EUR",
}
_FORMATS: Mapping[str, str] = {
    "date": "2025-01-01",
    "date-time": "2025-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "email": "ada@example.com",
    "uri": "https://example.com/",
    "path": "example.txt",
}


def arguments_for(schema: Object, prompt: str, *, tool: str = "", subject: str | None = None) -> Object:
    """Returns arguments for a tool whose schema has the type object.

    ``tool`` is the tool's name and description; ``subject`` becomes its first text.
    """
    return _Maker(schema, facts_of(prompt, tool), subject).object(schema, 0)


def subject_values(schema: Object, prompt: str, tool: str = "") -> list[str]:
    """Returns the possible values of the first text parameter in this prompt; each is worth a call."""
    facts = facts_of(prompt, tool)
    maker = _Maker(schema, facts, None)
    for name, item in schema.get("properties", {}).items():
        item = maker.resolved(item)
        if item.get("type") == "string" and name in schema.get("required", ()):
            if "enum" in item or "format" in item or _PROSE & set(words(name)):
                return []
            return list(facts.quoted or facts.names)
    return []


class _Maker:
    """Makes one set of arguments and keeps the facts that are still unused."""

    def __init__(self, root: Object, facts: Facts, subject: str | None) -> None:
        self._definitions: Mapping[str, Object] = root.get("$defs", {})
        self._facts = facts
        self._unused: dict[str, list[Any]] = {
            name: list(getattr(facts, name))
            for name in ("numbers", "quoted", "names", "sums", "dates", "urls", "emails", "paths")
        }
        self._subject = subject
        self._remaining_values = _MAX_VALUES

    def resolved(self, schema: Json) -> Object:
        """The schema behind a reference, merged with the keys beside the reference."""
        seen = 0
        while isinstance(schema, dict) and "$ref" in schema and seen < _MAX_DEPTH:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**self._definitions.get(str(schema["$ref"]).rpartition("/")[2], {}), **beside}
            seen += 1
        return schema if isinstance(schema, dict) else {}

    def object(self, schema: Object, depth: int) -> Object:
        properties: Mapping[str, Json] = schema.get("properties", {})
        made: Object = {}
        required = schema.get("required", ())
        for name in sorted(properties, key=lambda key: key not in required):
            if name in required:
                made[name] = self.value(self.resolved(properties[name]), name, depth)
            elif (value := self._mentioned(self.resolved(properties[name]), name)) is not MISSING:
                made[name] = value
        return {name: made[name] for name in properties if name in made}

    def value(self, schema: Object, name: str, depth: int) -> Json:
        """A value for a required parameter; None if the schema asks for too many or too deeply nested values."""
        self._remaining_values -= 1
        if self._remaining_values < 0 or depth > _MAX_VALUE_DEPTH:
            return None
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            choice = self._named(schema["enum"])
            return schema["enum"][0] if choice is MISSING else choice
        for key in ("anyOf", "oneOf", "allOf"):
            if schema.get(key):
                return self._alternative(schema[key], name, depth)
        kind = schema.get("type", "any")
        if isinstance(kind, list):
            kind = next((item for item in kind if item != "null"), "null")
        makers: Mapping[str, Callable[[], Json]] = {
            "string": lambda: self._text(schema, name),
            "integer": lambda: _bounded_integer(round(self._next_number(schema)), schema),
            "number": lambda: _bounded(self._next_number(schema), schema),
            "boolean": lambda: bool(schema.get("default", True)),
            "array": lambda: self._array(schema, name, depth),
            "object": lambda: self.object(schema, depth + 1),
            "null": lambda: None,
        }
        if kind in makers:
            return makers[kind]()
        if "properties" in schema:
            return self.object(schema, 1)
        return next(iter(self._pop("numbers")), None) or self._text(schema, name)

    def _alternative(self, schemas: list[Json], name: str, depth: int) -> Json:
        options = [self.resolved(schema) for schema in schemas]
        wanted = [option for option in options if option.get("type") != "null"] if depth < _MAX_DEPTH else options[::-1]
        if self._unused["numbers"]:
            wanted.sort(key=lambda option: option.get("type") not in ("integer", "number"))
        return self.value((wanted or options)[0], name, depth + 1)

    def _mentioned(self, schema: Object, name: str) -> Json:
        """A value for an optional parameter if the prompt has one that suits it, else `MISSING`."""
        options = [self.resolved(item) for item in schema.get("anyOf", ())] or [schema]
        for option in options:
            kind = option.get("type")
            if "enum" in option and (choice := self._named(option["enum"])) is not MISSING:
                return choice
            if kind in ("integer", "number") and self._unused["numbers"] and self._facts.words & set(words(name)):
                return self.value(option, name, 0)
            if kind == "boolean" and set(words(name)) <= self._facts.words:
                return True
            source = self._source(option, name)
            if kind == "string" and "enum" not in option and source and self._unused[source]:
                return self._text(option, name)
        return MISSING

    def _named(self, choices: Iterable[Json]) -> Json:
        return next((item for item in choices if set(words(str(item))) <= self._facts.words), MISSING)

    def _source(self, schema: Object, name: str) -> str | None:
        by_format = {"date": "dates", "uri": "urls", "email": "emails", "path": "paths"}
        if "format" in schema:
            return by_format.get(str(schema["format"]))
        return next((_SOURCES[word] for word in words(name) if word in _SOURCES), None)

    def _text(self, schema: Object, name: str) -> str:
        for candidate in self._texts(schema, name):
            if isinstance(candidate, str) and (fitted := _fitted(candidate, schema)) is not None:
                return fitted
        return "x" * max(1, int(schema.get("minLength", 0)))

    def _texts(self, schema: Object, name: str) -> Iterable[Json]:
        if self._subject is not None and "format" not in schema:
            subject, self._subject = self._subject, None
            self._take(subject)
            yield subject
        source = self._source(schema, name)
        if source:
            yield from self._pop(source)
        if "format" not in schema:
            if _PROSE & set(words(name)):
                yield from self._pop("quoted")
                yield self._facts.prompt.strip()
            yield from self._pop("quoted")
            yield from self._pop("names")
        yield schema.get("default")
        yield from schema.get("examples", ())
        if "format" in schema:
            yield _FORMATS.get(schema["format"])
        yield from (_EXAMPLES[word] for word in words(name) if word in _EXAMPLES)
        yield "example"

    def _pop(self, source: str) -> Iterable[Any]:
        if self._unused[source]:
            yield self._unused[source].pop(0)

    def _take(self, value: str) -> None:
        for values in self._unused.values():
            if value in values:
                values.remove(value)

    def _next_number(self, schema: Object) -> float | int:
        candidates = (*self._pop("numbers"), schema.get("default"), 1)
        return next(each for each in candidates if isinstance(each, int | float) and not isinstance(each, bool))

    def _array(self, schema: Object, name: str, depth: int) -> list[Json]:
        fixed = [self.value(self.resolved(item), name, depth + 1) for item in schema.get("prefixItems", ())]
        items = schema.get("items", {})
        if items is False or depth >= _MAX_DEPTH:
            return fixed
        items = self.resolved(items)
        most = schema.get("maxItems", 100)
        least = max(schema.get("minItems", 0), 0 if fixed else min(1, most))
        source = {"integer": "numbers", "number": "numbers", "string": "quoted"}.get(str(items.get("type")), "")
        if source == "quoted" and not self._unused["quoted"]:
            source = "names"
        wanted = max(least, min(most, len(self._unused.get(source, ()))))
        made = fixed + [self.value(items, name, depth + 1) for _ in range(wanted - len(fixed))]
        return _distinct(made, least) if schema.get("uniqueItems") else made


def _fitted(text: str, schema: Object) -> str | None:
    """The text adjusted to the lengths; None if it does not match the pattern or the format."""
    least, most = schema.get("minLength", 0), schema.get("maxLength", 200)
    text = text[:most].ljust(least, "x")
    if "pattern" in schema and not re.search(schema["pattern"], text):
        return None
    if schema.get("format") == "date" and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])", text):
        return None
    return text


def _bounded(number: float | int, schema: Object) -> float | int:
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    above, below = schema.get("exclusiveMinimum", -math.inf), schema.get("exclusiveMaximum", math.inf)
    number = min(max(number, low), high)
    if number <= above:
        number = (above + min(below, high)) / 2 if math.isfinite(min(below, high)) else above + 1
    if number >= below:
        number = (below + max(above, low)) / 2 if math.isfinite(max(above, low)) else below - 1
    step = schema.get("multipleOf")
    return math.ceil(number / step) * step if step and number % step else number


def _bounded_integer(number: int, schema: Object) -> int:
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf) + 1)
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf) - 1)
    number = int(min(max(number, low), high))
    step = schema.get("multipleOf", 1)
    rounded = math.ceil(number / step) * step
    return int(rounded if rounded <= high else rounded - step)


def _distinct(items: list[Json], least: int) -> list[Json]:
    """Makes equal items different, for a set: a second text or number gets a count."""
    seen: list[Json] = []
    for item in items:
        count = 2
        original = item
        while item in seen and isinstance(original, str | int | float) and not isinstance(original, bool):
            item = f"{original} {count}" if isinstance(original, str) else original + count - 1
            count += 1
        if item not in seen:
            seen.append(item)
    return seen if len(seen) >= least else items
