"""Writes JSON values as YAML lines that make small, stable diffs: `yaml_lines`.

Keys keep their order, nothing is wrapped, strings of several lines are block scalars, and each level is indented by two
blanks. `toolcall_nb.markdown.yaml_body` reads it back equal. Strings that YAML 1.1 readers take for something else
(``no``, ``12:30``) are quoted, so that other readers agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from toolcall_nb.markdown.yaml_body import resolve_plain

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
    if isinstance(value, float):
        return _float(value)
    return json.dumps(value)


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
        yield f"{indent}{lead} {_block_marker(value)}"
        yield from (inner + line if line else "" for line in _block_lines(value))
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
    if text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    escaped = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: match[0] if match[0].isprintable() else _escape(match[0]), escaped)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_block(text: str) -> bool:
    """Whether a block scalar can hold ``text``: several lines of printable characters."""
    if "\n" not in text or not text.strip(" \n"):
        return False
    return all(line.replace("\t", "").isprintable() for line in text.split("\n"))


def _block_marker(text: str) -> str:
    indicator = "2" if text[0] in " \n\t" else ""
    ends = len(text) - len(text.rstrip("\n"))
    return f"|{indicator}{('-', '', '+')[min(ends, 2)]}"


def _block_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if text.endswith("\n") else lines


def _float(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    return repr(value)
