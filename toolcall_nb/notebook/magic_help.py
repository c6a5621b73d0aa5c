"""The help of the magics as plain text: `help_text`. `help_as_line` is for a cell that only asks for it."""

from __future__ import annotations

import re
from textwrap import dedent

__all__ = ["HELP", "help_as_line", "help_text"]

HELP = ("help", "--help", "-h")
"""The words that ask for the help."""
_ASKS = re.compile(rf"%(%toolchat\s+(?:{'|'.join(HELP)})\s*)")


def help_text(docstring: str) -> str:
    """Returns the help without its usage line and its marks for documentation, given the docstring of the magic."""
    description, _, options = docstring.split("\n\n", 2)[2].partition("positional arguments:")
    return f"{dedent(description).strip()}\n\nOptions:\n\n{options.partition('options:')[2].strip(chr(10))}".rstrip()


def help_as_line(lines: list[str]) -> list[str]:
    """Turns a cell that is only ``%%toolchat --help`` into the line magic: IPython refuses a cell without a body."""
    match = _ASKS.fullmatch("".join(lines).strip())
    return lines if match is None else [f"{match[1]}\n"]
