"""Step marks: the lines of portable Markdown at which a step of a message begins; `step_mark` and `split_marks`.

    [//]: # (step)
    [//]: # (step {"agent":"writer","parent":"call_1","usage":{"inputTokens":12}})

In CommonMark this is a link definition that nothing refers to: no reader of Markdown shows it. The JSON object has the
fields of `toolcall_nb.core.events.FinishStep`, as far as they are known. Brackets in it are written as ``\\u0028`` and
``\\u0029``, since the title of a link definition may not contain them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from msgspec import Struct

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.json_text import json_text, read_json
from toolcall_nb.core.parts import StepStart
from toolcall_nb.core.replay import step_end
from toolcall_nb.errors import WireError
from toolcall_nb.markdown.scanner import Text

_START = "[//]: # (step"
_MARK = re.compile(r"^ {0,3}\[//\]: # \(step(?: (\{[^\r\n]*\}))?\)[ \t]*\r?$", re.MULTILINE)
_LINE_ENDS_BEFORE = re.compile(r"(?:\r?\n){0,2}\Z")
_LINE_ENDS_AFTER = re.compile(r"\A(?:\r?\n){0,2}")
_BLOCKS = MarkdownIt("commonmark")


class StepMark(Struct, frozen=True):
    """A step begins. ``events`` are its beginning, and what is known of it."""

    events: tuple[Event, ...]


def step_mark(start: StepStart, *, timings: bool = False) -> str:
    """Returns the line at which the step begins; with ``timings`` also with its times."""
    fields: Object = {"agent": start.agent, **ev.to_dict(step_end(start, timings=timings))}
    del fields["type"]
    facts = {name: value for name, value in fields.items() if value is not None}
    if not facts:
        return f"{_START})"
    fields_text = json_text(facts).replace("(", r"\u0028").replace(")", r"\u0029")
    return f"{_START} {fields_text})"


def split_marks(text: Text) -> Iterator[Text | StepMark]:
    """Splits a text at its step marks; the line ends between the marks and their neighbours are left out.

    A line inside of a paragraph or a block of code is no mark, and neither is one that cannot be read.
    """
    marks = [*_MARK.finditer(text.text)] if _START in text.text else []
    if marks:
        blocks = [token.map for token in _BLOCKS.parse(text.text) if token.level == 0 and token.map is not None]
        marks = [mark for mark in marks if not _is_inside(blocks, text.text.count("\n", 0, mark.start()))]
    position = 0
    for mark in marks:
        events = _events(mark[1])
        if events is not None:
            yield from _between(text.text[position : mark.start()], position > 0, True)
            yield StepMark(events)
            position = mark.end()
    yield from _between(text.text[position:], position > 0, False) if position else (text,)


def _is_inside(blocks: list[list[int]], line: int) -> bool:
    return any(first <= line < end for first, end in blocks)


def _between(text: str, is_after: bool, is_before: bool) -> Iterator[Text]:
    if is_after:
        text = _LINE_ENDS_AFTER.sub("", text)
    if is_before:
        text = _LINE_ENDS_BEFORE.sub("", text)
    if text:
        yield Text(text)


def _events(written: str | None) -> tuple[Event, ...] | None:
    """Returns the events of a mark; None if its fields cannot be read."""
    try:
        fields = read_json(written) if written else {}
        end = ev.from_dict({**fields, "type": ev.FinishStep.type})
    except (ValueError, RecursionError, WireError):
        return None
    assert isinstance(end, ev.FinishStep)
    start = ev.StartStep(parent=end.parent, agent=end.agent)
    return start, end
