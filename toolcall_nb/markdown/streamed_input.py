"""The text of the field ``input`` in the body of a callout while the body streams: what a card shows of it so far.

It is found line by line, as YAML's block style has it: from the key ``input`` at the margin to the next key there.
The body as a whole is read by `toolcall_nb.markdown.yaml_body` when it is complete.
"""

from __future__ import annotations

import re

__all__ = ["StreamedInput"]

_KEY = re.compile(r"""(["']?)input\1[ \t]*:(?:[ \t]+|$)""")
_MAY_BE_KEY = re.compile(r"""["']?(?:i|in|inp|inpu|input["']?[ \t]*(?::[ \t]*)?)?""")
_BLANKS = " \t"


class StreamedInput:
    """`feed` it the body, cut anywhere. Of the text it leaves out the indentation and the line ends after it."""

    def __init__(self) -> None:
        self._is_input = False  # the field that the body stands in
        self._is_shown = False  # whether the rest of this line is text of the input
        self._start: str | None = ""  # of this line, while it is not certain whose it is
        self._indent: int | None = None
        self._ends = 0  # line ends that are text if more follows
        self._has_text = False

    def feed(self, body: str) -> str:
        """What is new of the input's text."""
        first, *others = body.split("\n")
        found = [self._more(first)]
        for line in others:
            found += [self._end_line(), self._more(line)]
        return "".join(found)

    def _more(self, text: str) -> str:
        if self._start is None:
            return self._text(text) if self._is_shown else ""
        self._start += text
        return self._decide(self._start, is_whole=False)

    def _end_line(self) -> str:
        found = self._decide(self._start, is_whole=True) if self._start is not None else ""
        self._start = ""
        self._ends += 1
        return found

    def _decide(self, line: str, *, is_whole: bool) -> str:
        """Whose the line is, as far as it has come; what it says of the input."""
        text = line.lstrip(_BLANKS)
        blanks = len(line) - len(text)
        if not text or (not blanks and not is_whole and _MAY_BE_KEY.fullmatch(text)):
            return ""
        self._start = None
        if not blanks and text[0] not in "-#":
            return self._begin_field(_KEY.match(line), line)
        self._is_shown = self._is_input and (bool(blanks) or text[0] == "-")
        if not self._is_shown:
            return ""
        self._indent = blanks if self._indent is None else self._indent
        return self._text(line[min(blanks, self._indent) :])

    def _begin_field(self, key: re.Match[str] | None, line: str) -> str:
        self._is_input = key is not None
        self._indent = None
        value = line[key.end() :] if key is not None else ""
        self._is_shown = self._is_input and value[:1] not in ("|", ">")  # these say how the lines below are read
        return self._text(value) if self._is_shown else ""

    def _text(self, text: str) -> str:
        if not text:
            return ""
        ends, self._ends = (self._ends if self._has_text else 0), 0
        self._has_text = True
        return "\n" * ends + text
