"""The front matter of portable Markdown, both ways: the version of the format, and the transcript's metadata.

    ---
    toolcall_nb: 1              the version; a whole number
    model: mock                 the metadata, or all of it under one key ``metadata`` where its names would clash
    ---

A text without front matter has version 1. Text of a higher version is read as far as it is known here: its metadata
is read, unknown callouts in its body stay text, and a diagnostic says so. Code that writes a file calls
`read_format_version` on the existing one first: a file that a newer toolcall_nb wrote is never overwritten.

`front_matter` writes it, `split_front_matter` reads it.
"""

from __future__ import annotations

import re

from msgspec import Struct

from toolcall_nb.core.events import Diagnostic, Object
from toolcall_nb.markdown.yaml_text import BodyError, load_body, yaml_lines

FORMAT_VERSION = 1
"""The version that is written, and the highest that can be read whole."""
VERSION_KEY = "toolcall_nb"

_FENCED = re.compile(r"---[ \t]*\n((?:[^\n]*\n)*?)---[ \t]*(?:\n|\Z)\n?")
_KEY_LINE = re.compile(rf"^{VERSION_KEY}[ \t]*:[ \t]*(.*)$", re.MULTILINE)
_HIGHEST = 10**6
_KEPT = "The front matter was kept as text."


class FrontMatter(Struct, frozen=True):
    """A text split into front matter and body; ``lines`` is the number of lines before the body."""

    body: str
    metadata: Object = {}
    version: int = FORMAT_VERSION
    lines: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()


def front_matter(metadata: Object) -> str:
    """Returns the front matter: the version and the metadata. It ends with a line end."""
    plain = VERSION_KEY not in metadata and list(metadata) != ["metadata"]
    fields = {VERSION_KEY: FORMAT_VERSION, **(metadata if plain else {"metadata": metadata})}
    return "".join(f"{line}\n" for line in ("---", *yaml_lines(fields), "---"))


def split_front_matter(text: str) -> FrontMatter:
    """Splits a text into front matter and body. Another program's front matter belongs to the body. Never raises."""
    fenced = _FENCED.match(text.replace("\r\n", "\n") if text.startswith("---") else "")
    if fenced is None:
        return FrontMatter(text)
    key_line = _KEY_LINE.search(fenced[1])
    line = 2 if key_line is None else 2 + fenced[1].count("\n", 0, key_line.start())
    written = "" if key_line is None else key_line[1]
    try:
        fields = load_body(fenced[1]).fields
    except BodyError as error:
        trouble = Diagnostic(f"a front matter that cannot be read: {error}", _KEPT, error.line + 2, error.column + 1)
        return FrontMatter(text, diagnostics=(trouble,) if written else ())
    if VERSION_KEY not in fields:
        return FrontMatter(text)
    version = fields.pop(VERSION_KEY)
    if type(version) is not int or not 1 <= version <= _HIGHEST:
        trouble = Diagnostic(
            f"{written[:100]!r} is no version: '{VERSION_KEY}' is a whole number from 1", _KEPT, line, 1
        )
        return FrontMatter(text, diagnostics=(trouble,))
    if list(fields) == ["metadata"] and isinstance(fields["metadata"], dict):
        fields = fields["metadata"]
    lines = fenced[0].count("\n")
    troubles = (
        (Diagnostic(describe_newer_version(version), "It was read as far as it is known.", line, 1),)
        if version > FORMAT_VERSION
        else ()
    )
    return FrontMatter(text.split("\n", lines)[lines], fields, version, lines, troubles)


def read_format_version(text: str) -> int:
    """Returns the version in the front matter of a text; 1 if there is none. Never raises."""
    return split_front_matter(text).version


def describe_newer_version(version: int) -> str:
    """Describes, for a person, a text of a version that is not known here."""
    return (
        f"version {version} of the format, and this toolcall_nb knows version {FORMAT_VERSION}; install a newer one to "
        "read it whole"
    )
