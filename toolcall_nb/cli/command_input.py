"""Reads what a user gives to commands: `CommandParser` parses a command line, `read_input` reads a file's text."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from toolcall_nb.core.escaping import visible_line
from toolcall_nb.core.events import Diagnostic
from toolcall_nb.core.files import open_regular
from toolcall_nb.core.similar_names import did_you_mean
from toolcall_nb.redaction.registered_secrets import saved_text


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors say which name was probably meant."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parses the arguments. An option that is not known is an error of the command that it stands behind."""
        options, others = super().parse_known_args(args, namespace)
        if others:
            name = others[0].partition("=")[0]
            self.error(f"there is no option {name!r:.100}.{did_you_mean(name, self._option_string_actions)}")
        return options, others

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [*map(str, action.choices)]
            hint = did_you_mean(f"{value}", names)
            raise argparse.ArgumentError(action, f"there is no {value!r:.100}.{hint} There are: {', '.join(names)}.")


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
    """Returns a line with file, line, column, problem and what was done, without secrets."""
    text = saved_text(f"{diagnostic.message} — {diagnostic.action}")  # such lines end up in logs
    return visible_line(f"{name}:{diagnostic.line}:{diagnostic.column}: {text}")
