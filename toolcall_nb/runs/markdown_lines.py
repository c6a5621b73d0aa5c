"""Finds the line of a Markdown file where a text of its transcript is: `MarkdownLines`.

A transcript keeps no positions. So the parts are looked for in the file one after the other, each behind the one
before, and a text only between the beginnings of its part and of the next one.
"""

from __future__ import annotations

from toolcall_nb.core.transcript import Part, ReasoningPart, TextPart, ToolCall, Transcript

_NEAR = 50
"""The next line of a text is looked for in so many lines."""
_KEYS = {
    **{"arguments": ("input:", "inputText:"), "result": ("output:", "display:", "modelText:"), "log": ("log:",)},
    **{"error": ("error:", "errorText:", "error_text:"), "traceback": ("traceback:",), "approval": ("approval:",)},
}
"""The keys of a tool callout by the field of a search."""


class MarkdownLines:
    """The lines of a file that holds this transcript as Markdown."""

    def __init__(self, text: str, transcript: Transcript) -> None:
        self._lines = text.split("\n")
        self._starts: dict[int, int] = {}
        position = 0
        parts = [part for message in transcript.messages for part in message.parts]
        for part in parts:
            self._starts[id(part)] = position = self._start_of(part, position)
            position = self._end_of(part, position)
        ends = [*self._starts.values(), len(self._lines)][1:]
        self._ends = dict(zip(self._starts, ends, strict=True))

    def find(self, part: Part, field: str, text: str, start: int, end: int) -> int | None:
        """Returns the number of the line, from 1, that has ``text[start:end]``, a text of the part; None if unknown."""
        whole = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0].strip()
        first, last = self._starts[id(part)], self._ends[id(part)]
        if isinstance(part, ToolCall):
            first = next((i for i in range(first, last) if self._is_key(i, _KEYS.get(field, ()))), first)
        for wanted in (whole, text[start:end].partition("\n")[0].strip()):
            if wanted and (index := self._index(wanted, first, last)) is not None:
                return index + 1
        return None

    def _start_of(self, part: Part, position: int) -> int:
        beginning = next(iter(_text_lines(part)), "")
        if isinstance(part, ToolCall):
            beginning = "[!tool"
        index = self._index(beginning, position, len(self._lines)) if beginning else None
        return position if index is None else index

    def _end_of(self, part: Part, position: int) -> int:
        """Returns the index of the line behind what is certain to be of the part."""
        for line in _text_lines(part):
            index = self._index(line, position, min(position + _NEAR, len(self._lines)))
            position = position if index is None else index + 1
        return position + isinstance(part, ToolCall)

    def _index(self, text: str, start: int, end: int) -> int | None:
        return next((i for i in range(start, end) if text in self._lines[i]), None)

    def _is_key(self, index: int, keys: tuple[str, ...]) -> bool:
        return bool(keys) and self._lines[index].lstrip("> ").startswith(keys)


def _text_lines(part: Part) -> list[str]:
    """Returns the lines of a text that are not blank."""
    text = part.text if isinstance(part, TextPart | ReasoningPart) else ""
    return [stripped for line in text.split("\n") if (stripped := line.strip())]
