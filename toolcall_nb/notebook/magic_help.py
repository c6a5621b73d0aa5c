"""The help of the magics as plain text: `help_text`."""

from __future__ import annotations

from textwrap import dedent


def help_text(docstring: str) -> str:
    """Returns the help without its usage line and its marks for documentation, given the docstring of the magic."""
    description, _, options = docstring.split("\n\n", 2)[2].partition("positional arguments:")
    return f"{dedent(description).strip()}\n\nOptions:\n\n{options.partition('options:')[2].strip(chr(10))}".rstrip()
