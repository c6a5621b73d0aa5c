"""Finds the text of the field ``input`` in the body of a callout while the body streams: `StreamedInput`.

It works line by line, by the rules of YAML's block style: the input goes from the key ``input`` at the margin to the
next key there. When the body is complete, `toolcall_nb.markdown.yaml_body` reads it as a whole.
"""

from __future__ import annotations

import re

_KEY = re.compile(r"""(["']?)input\1[ \t]*:(?:[ \t]+|$)""")
_MAY_BE_KEY = re.compile(r"""["']?(?:i|in|inp|inpu|input["']?[ \t]*(?::[ \t]*)?)?""")
_BLANKS = " \t"


class StreamedInput:
    """Extracts the input's text from a body, fed in pieces, without its indentation and the line ends after it."""

    def __init__(self) -> None:
        self._is_input = False  # whether the current field is the input
        self._is_shown = False  # whether the rest of this line belongs to the input
        self._start: str | None = ""  # of this line, until it is certain which field it belongs to
        self._indent: int | None = None
        self._ends = 0  # line ends that belong to the text if more text follows
        self._has_text = False

    def feed(self, body: str) -> str:
        """Takes more of the body and returns the new text of the input."""
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
        """Decides which field the line so far belongs to, and returns its text of the input."""
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
        self._is_shown = self._is_input and value[:1] not in ("|", ">")  # these only say how the lines below are read
        return self._text(value) if self._is_shown else ""

    def _text(self, text: str) -> str:
        if not text:
            return ""
        ends, self._ends = (self._ends if self._has_text else 0), 0
        self._has_text = True
        return "\n" * ends + text
