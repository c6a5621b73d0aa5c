"""Reads the input of commands: the text of a file or of standard input, and the numbers of options."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from toolcall_nb.core.escaping import visible_line
from toolcall_nb.core.events import Diagnostic
from toolcall_nb.core.files import open_regular
from toolcall_nb.redaction.registered_secrets import saved_text


def at_least(least: int) -> Callable[[str], int]:
    """Returns the type of an option that is a whole number from ``least`` on."""

    def whole(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
        return number

    return whole


def is_markdown(name: str) -> bool:
    """Whether the input is Markdown: standard input, or a file whose suffix says so."""
    return name == "-" or Path(name).suffix.lower() == ".md"


def read_input(name: str) -> tuple[str, list[Diagnostic]]:
    """Returns the text of a file or of standard input, and a diagnostic if its bytes are not UTF-8."""
    if name == "-":
        data = sys.stdin.buffer.read()
    else:
        with open_regular(name) as file:
            data = file.read()
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        broken = Diagnostic(
            f"the byte 0x{data[error.start]:02x} is not UTF-8", "Such bytes were replaced by U+FFFD.", line, column
        )
        return data.decode("utf-8", "replace"), [broken]


def warn(name: str, diagnostics: Sequence[Diagnostic]) -> None:
    """Prints the diagnostics on standard error."""
    for diagnostic in diagnostics:
        print(format_diagnostic(name, diagnostic), file=sys.stderr)


def format_diagnostic(name: str, diagnostic: Diagnostic) -> str:
    """Returns a line with the place, the problem and what was done, without secrets."""
    text = saved_text(f"{diagnostic.message} — {diagnostic.action}")  # such lines end up in logs
    return visible_line(f"{name}:{diagnostic.line}:{diagnostic.column}: {text}")
