"""YAML both ways: `load_body` reads the bodies of callouts, `yaml_lines` writes JSON values that read back equal.

It is version 1.2's core schema, JSON values only, limited in size. PyYAML's C parser scans it, eight times as fast as
the Python one. The values are built here, because PyYAML's own schema is YAML 1.1, in which ``no``, ``on``, ``12:30``
and ``2025-01-01`` are not strings.

These are errors, reported with their position: more than one document, a custom tag, a key that is given twice or is
not a scalar, an alias of its own parent, more than `MAX_YAML_DEPTH` levels, and more than `MAX_ALIASED` nodes by
aliases (against the "billion laughs" attack). Source: YAML 1.2.2, chapter 10.3.

What is written makes small, stable diffs: keys keep their order, nothing is wrapped, strings of several lines are block
scalars, and each level is indented by two blanks. Strings that YAML 1.1 readers take for something else (``no``,
``12:30``) are quoted, so that other readers agree.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from msgspec import Struct

MAX_YAML_DEPTH = 100
MAX_ALIASED = 10_000

_LOADER: Any = getattr(yaml, "CLoader", yaml.Loader)
_CORE = "tag:yaml.org,2002:"
_KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER_BEGINS = frozenset("-+.0123456789")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class BodyError(Exception):
    """A body that cannot be read. ``line`` and ``column`` count from 0 within the body."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


class Body(Struct, frozen=True):
    """A mapping, and its own scalar values as they were written (``id: 007`` is the string ``007``)."""

    fields: dict[str, Any]
    written: dict[str, str]


def load_body(text: str) -> Body:
    """Reads a body. Blank text is an empty mapping. Raises `BodyError` for any other text that is not a mapping."""
    if not text.strip():
        return Body({}, {})
    builder = _Builder()
    try:
        _parse(text, builder)
    except UnicodeEncodeError:
        raise BodyError("a lone surrogate is not allowed in YAML") from None
    except yaml.MarkedYAMLError as error:
        raise BodyError(error.problem or "not YAML", *_error_position(error, text)) from None
    except yaml.reader.ReaderError as error:  # the C parser names the character's code
        code = error.character if isinstance(error.character, int) else ord(str(error.character)[:1])
        raise BodyError(f"the character U+{code:04X} is not allowed in YAML") from None
    if not isinstance(builder.root, dict):
        raise BodyError("the body is no mapping of names to values")
    return Body(builder.root, builder.written)


def resolve_plain(text: str) -> Any:
    """Returns the value of a plain scalar in the core schema."""
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    if text[0] not in _NUMBER_BEGINS:
        return text
    if _INT.fullmatch(text):
        try:
            number = int(text, 0) if text[:2] in ("0o", "0x") else int(text)
            str(number)  # Python reads octal and hexadecimal numbers of any length, but does not write them
        except ValueError:  # longer than Python converts; the digits are kept
            return text
        return number
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _parse(text: str, builder: _Builder) -> None:
    parser = _LOADER(text)
    try:
        while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
            builder.apply(event)
    finally:
        parser.dispose()


def _error_position(error: Any, text: str) -> tuple[int, int]:
    """Returns the position of the error. If something is missing at the end of the text, that is its beginning."""
    last = text.rstrip("\n").count("\n")
    marks = [mark for mark in (error.problem_mark, error.context_mark) if mark is not None and mark.line <= last]
    return (marks[0].line, marks[0].column) if marks else (last, 0)


class _Frame:
    """A list or mapping that is being built."""

    __slots__ = ("anchor", "key", "size_before", "value")

    def __init__(self, value: Any, anchor: str | None, size_before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.size_before = size_before
        self.key: str | None = None


class _Builder:
    """Builds one value from parser events, without recursion."""

    def __init__(self) -> None:
        self.root: Any = None
        self.written: dict[str, str] = {}
        self._documents = 0
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0
        self._aliased = 0

    def apply(self, event: Any) -> None:
        """Applies one parser event."""
        step = _STEPS.get(type(event))
        if step is not None:
            step(self, event)

    def _begin(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _error("a body is one YAML document", event)

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        self._anchor(frame.anchor, frame.value, self._size - frame.size_before)
        self._add(frame.value, None, event)

    def _open(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag is not None and event.tag not in ("!", _CORE + ("map" if mapping else "seq")):
            raise _error(f"the tag {event.tag!r} is not allowed", event)
        if len(self._stack) >= MAX_YAML_DEPTH:
            raise _error(f"more than {MAX_YAML_DEPTH} levels deep", event)
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            raise _error("a key must be a single value", event)
        self._stack.append(_Frame({} if mapping else [], event.anchor, self._size))
        self._size += 1

    def _scalar(self, event: Any) -> None:
        self._size += 1
        value = _scalar_value(event)
        self._anchor(event.anchor, value, 1)
        self._add(value, event.value, event)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise _error(f"the alias *{event.anchor} has no anchor before it", event)
        value, size = self._anchors[event.anchor]
        self._size += size
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise _error(f"aliases stand for more than {MAX_ALIASED} values", event)
        self._add(value, None, event)

    def _anchor(self, name: str | None, value: Any, size: int) -> None:
        if name is not None:
            self._anchors[name] = (value, size)

    def _add(self, value: Any, written: str | None, event: Any) -> None:
        if not self._stack:
            self.root = value
            return
        frame = self._stack[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.key is None:
            if written is None:
                raise _error("a key must be a single value", event)
            if written in frame.value:
                raise _error(f"the key {written!r:.80} is given twice", event)
            frame.key = written
        else:
            frame.value[frame.key] = value
            if len(self._stack) == 1 and written is not None:
                self.written[frame.key] = written
            frame.key = None


_STEPS: dict[type, Callable[[_Builder, Any], None]] = {
    yaml.ScalarEvent: _Builder._scalar,
    yaml.MappingStartEvent: _Builder._open,
    yaml.SequenceStartEvent: _Builder._open,
    yaml.MappingEndEvent: _Builder._close,
    yaml.SequenceEndEvent: _Builder._close,
    yaml.AliasEvent: _Builder._alias,
    yaml.DocumentStartEvent: _Builder._begin,
}


def _scalar_value(event: Any) -> Any:
    plain, _ = event.implicit
    if event.tag is None or event.tag == "!":
        return resolve_plain(event.value) if plain and event.tag is None else event.value
    kind = event.tag.removeprefix(_CORE)
    if kind == "str":
        return event.value
    value = resolve_plain(event.value)
    wanted: dict[str, tuple[type, ...]] = {"null": (type(None),), "bool": (bool,), "int": (int,), "float": (float, int)}
    if kind not in wanted or not isinstance(value, wanted[kind]):
        raise _error(f"the tag {event.tag!r} is not allowed here", event)
    return value


def _error(message: str, event: Any) -> BodyError:
    mark = event.start_mark
    return BodyError(message, mark.line, mark.column)


_PLAIN = re.compile(r"[^\W\d][^\n]*|[/(_$][^\n]*")
_BREAKS_PLAIN = re.compile(r": |:$| #|\s$")
_YAML_1_1 = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
_MAX_KEY = 1000  # a longer one is written after "?": YAML 1.2.2, 7.4.2, allows 1024 characters before ":"
_ESCAPED = re.compile(r"[^\x20-\x7e]")


def yaml_lines(mapping: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of a mapping, without line ends."""
    for key, value in mapping.items():
        yield from _field(key, value, "")


def yaml_scalar(value: Any) -> str:
    """Writes a JSON scalar or an empty collection on one line."""
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    return repr(value) if isinstance(value, float) else json.dumps(value)


def _field(key: str, value: Any, indent: str) -> Iterator[str]:
    """Yields the lines of a key with its value."""
    written = yaml_scalar(key)
    if len(written) > _MAX_KEY:
        yield f"{indent}? {written}"
        yield from _entry(":", value, indent)
    else:
        yield from _entry(f"{written}:", value, indent)


def _entry(lead: str, value: Any, indent: str) -> Iterator[str]:
    """Yields the lines of ``lead`` (a key with its colon, or a dash) with its value."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        yield from _nested(lead, indent, [_field(key, item, inner) for key, item in value.items()])
    elif isinstance(value, list) and value:
        yield from _nested(lead, indent, [_entry("-", item, inner) for item in value])
    elif isinstance(value, str) and _is_block(value):
        indentation = "2" if value[0] in " \n\t" else ""
        chomping = "-" if not value.endswith("\n") else "+" if value.endswith("\n\n") else ""
        yield f"{indent}{lead} |{indentation}{chomping}"
        yield from (inner + line if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{indent}{lead} {yaml_scalar(value)}"


def _nested(lead: str, indent: str, entries: list[Iterator[str]]) -> Iterator[str]:
    """Yields a collection under its lead. Within a list, it begins on the line of the dash."""
    if lead != "-":
        yield indent + lead
    for number, lines in enumerate(entries):
        if lead == "-" and number == 0:
            yield f"{indent}- {next(lines)[len(indent) + 2 :]}"
        yield from lines


def _is_plain(text: str) -> bool:
    return (
        _PLAIN.fullmatch(text) is not None
        and text.isprintable()
        and not _BREAKS_PLAIN.search(text)
        and text.lower() not in _YAML_1_1
        and isinstance(resolve_plain(text), str)
    )


def _quoted(text: str) -> str:
    """Returns a double-quoted scalar: JSON's, with characters that are not printable escaped as in YAML."""
    quoted = json.dumps(text, ensure_ascii=False)
    if text.isprintable():
        return quoted
    return _ESCAPED.sub(lambda match: match[0] if match[0].isprintable() else _escape(match[0]), quoted)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_block(text: str) -> bool:
    """Whether a block scalar can hold ``text``: several lines of printable characters."""
    if "\n" not in text or not text.strip(" \n"):
        return False
    return all(line.replace("\t", "").isprintable() for line in text.split("\n"))
