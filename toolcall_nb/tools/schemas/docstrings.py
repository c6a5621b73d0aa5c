"""Reads a function's docstring in Google, NumPy, Sphinx or Epydoc style: `read_docstring`.

The descriptions of parameters go into the schema. What remains is the tool's description, as it was written: summary,
text, notes, warnings and raised errors, also after the parameters. What a model does not need for a call is left out:
return values, which it will see, examples, and references.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

_Role = Literal["description", "parameters", "left out"]
_Style = Literal["google", "numpy", "field", "text"]

_ROLES: dict[str, _Role] = {
    **dict.fromkeys(("args", "arguments", "parameters", "params", "attributes"), "parameters"),
    **dict.fromkeys(("keyword args", "keyword arguments", "other parameters", "other params"), "parameters"),
    **dict.fromkeys(("param", "parameter", "arg", "argument", "key", "keyword", "type", "kwarg"), "parameters"),
    **dict.fromkeys(("returns", "return", "rtype", "yields", "yield", "ytype", "receives"), "left out"),
    **dict.fromkeys(("examples", "example", "references", "see also"), "left out"),
}
"""The role of each section and field. Those that are not in the table belong to the description."""

_SECTION = re.compile(r"([A-Z][A-Za-z ]*):[ \t]*")
_UNDERLINE = re.compile(r"[-=]{3,}[ \t]*")
_FIELD = re.compile(r"[:@](\w+)(?:[ \t]+[^:\n]+)?:(?=\s|$)")
_BLANK_LINES = re.compile(r"\n{3,}")


class Documentation(NamedTuple):
    """A function's docstring: the description of the whole, and of each documented parameter."""

    description: str
    parameters: dict[str, str]


def read_docstring(function: Callable[..., Any]) -> Documentation:
    """Parses a function's docstring. A text in no known style is all description."""
    while isinstance(function, partial):
        function = function.func
    text = inspect.getdoc(function)
    if not text:
        return Documentation("", {})
    import docstring_parser  # 20 ms, which a session without tools need not pay

    line_roles = list(_line_roles(text.splitlines()))
    sections = [line for line, role in line_roles if role == "parameters"]
    try:
        # The parser takes a section at the very beginning for a summary.
        items = docstring_parser.parse("\n".join(("Summary.", "", *sections)) if sections else text).params
    except docstring_parser.ParseError:
        return Documentation(text, {})
    parameters = {
        name.strip().lstrip("*"): " ".join(item.description.split())
        for item in items
        if item.description
        for name in item.arg_name.split(",")
    }
    description = "\n".join(line for line, role in line_roles if role == "description")
    return Documentation(_BLANK_LINES.sub("\n\n", description).strip(), parameters)


def _line_roles(lines: list[str]) -> Iterator[tuple[str, _Role]]:
    """Yields each line of a docstring with its role."""
    role: _Role = "description"
    style: _Style = "text"
    for index, line in enumerate(lines):
        if line.strip() and not line[0].isspace():
            before = lines[index - 1].strip() if index else ""
            following = lines[index + 1 :]
            start = _start(line, following)
            if start is not None:
                name, style = start
                role = _ROLES.get(name.lower(), "description")
            elif _ends_section(style, role, line, before, following):
                role, style = "description", "text"
        yield line, role


def _start(line: str, following: list[str]) -> tuple[str, _Style] | None:
    """Returns the name and the style of the section or field that begins with a line."""
    if following and _UNDERLINE.fullmatch(following[0]):
        return line.strip(), "numpy"
    if (field := _FIELD.match(line)) is not None:
        return field[1], "field"
    section = _SECTION.fullmatch(line)
    content = next((each for each in following if each.strip()), "")
    return (section[1], "google") if section is not None and content[:1].isspace() else None


def _ends_section(style: str, role: _Role, line: str, before: str, following: list[str]) -> bool:
    """Whether a line at the margin is text after a section or a field."""
    if style == "numpy":  # the names of parameters are at the margin too
        is_paragraph = not before and " " in line and ":" not in line.rstrip(".:") and "," not in line.partition(" ")[0]
        return role == "parameters" and is_paragraph and not (following and following[0][:1].isspace())
    return style == "google" or not before
