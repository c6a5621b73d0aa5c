"""Transcripts as plain text: `to_text`. It has all words, and nothing that a terminal would obey."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from toolcall_nb.core.call_nesting import CallNesting
from toolcall_nb.core.escaping import visible, visible_line
from toolcall_nb.core.events import NOTICE
from toolcall_nb.core.transcript import (
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCall,
    Transcript,
)
from toolcall_nb.render.card_sections import Section, error_sections, sections
from toolcall_nb.render.shown_states import shown_state
from toolcall_nb.render.value_lines import Entry, Token, draw_value, format_hidden
from toolcall_nb.render.value_summary import Table
from toolcall_nb.render.wording import EMPTY, ending, file_words, inside_words, origin, shown_name, speaker

INDENT = "  "
BLANK = " \t\r\n"
"""The characters that are left out at the end of a text."""
_ADDRESS = 200
_TRACEBACK = 40  # lines
_DETAILS = 20  # lines
_FOLDED = 3  # lines


def to_text(transcript: Transcript) -> str:
    """Returns the transcript as text, without a newline at its end: each speaker, and indented below it the message."""
    nesting = CallNesting(transcript.calls.values(), transcript.messages)
    return "\n\n".join(_message_text(message, nesting) for message in transcript.messages) or EMPTY


def _message_text(message: Message, nesting: CallNesting) -> str:
    blocks = [text for part in message.parts if (text := part_text(part, nesting))]
    if message.injected is not None:
        blocks = [folded("\n\n".join(blocks))]
    if (end := ending(message)) is not None:
        blocks.append(visible(f"({end})"))
    return "\n".join([heading(message), indented("\n\n".join(blocks))]).rstrip("\n")


def heading(message: Message) -> str:
    """Returns the line above a message: who speaks, and whether it was said in an earlier run."""
    note = origin(message)
    return visible_line(f"{speaker(message)} ({note.lower()})" if note else speaker(message))


def folded(text: str) -> str:
    """Returns the beginning of a text of which only that is shown, and how much more there is."""
    lines = text.split("\n")
    hidden = len(lines) - _FOLDED
    return text if hidden <= 0 else "\n".join([*lines[:_FOLDED], format_hidden(hidden, "lines")])


def part_text(part: Part, nesting: CallNesting) -> str:
    """Returns a part as a block of lines; empty if there is nothing to show.

    What is inside a call is indented; other parts than calls are below the name of who speaks there.
    """
    depth = nesting.depth_inside(part.parent)
    if isinstance(part, ToolCall):
        lines = call_lines(part, inside=inside_words(nesting.inside(part.id), part.name))
        return indented("\n".join("".join(text for _, text in line) for line in lines), INDENT * depth)
    text = _own_text(part)
    if depth and text and part.parent is not None:
        text = indented(f"{visible_line(nesting.speaker(part.parent))}\n{indented(text)}", INDENT * depth)
    return text


def _own_text(part: Part) -> str:
    match part:
        case TextPart():
            return one_text(part.text)
        case ReasoningPart():
            text = one_text(part.text)
            return f"Reasoning\n{indented(text)}" if text else ""
        case _:
            return visible(_other_text(part)).rstrip(BLANK)


def _other_text(part: Part) -> str:
    match part:
        case SourceUrlPart():
            return f"Source: {part.title} ({part.url[:_ADDRESS]})" if part.title else f"Source: {part.url[:_ADDRESS]}"
        case SourceDocumentPart():
            details = ", ".join(word for word in (part.filename, part.media_type) if word)
            return f"Source: {part.title} ({details})" if details else f"Source: {part.title}"
        case FilePart():
            words = file_words(part)
            name = words.name if words.kind else part.url[:_ADDRESS]
            return f"{words.label}: {name} ({words.about})" if name else f"{words.label}: {words.about}"
        case DataPart(name, str(text)) if name == NOTICE:
            return f"Note: {text}"
        case DataPart():
            lines = "\n".join(entry.text for entry in draw_value(part.data))
            return f"Data {part.name}\n{indented(lines)}"
        case CustomPart():
            return part.kind
        case ErrorPart():
            return f"Error: {part.text}" + (f"\n{indented(_beginning(part.details))}" if part.details else "")
        case TextPart() | ReasoningPart() | ToolCall():
            return ""
        case _:
            assert_never(part)


def _beginning(details: str) -> str:
    """Returns the first lines of an error's details, each bounded, and the number of the others."""
    lines = visible(details).strip("\n").split("\n")
    hidden = len(lines) - _DETAILS
    first_lines = [line if len(line) <= _ADDRESS else f"{line[:_ADDRESS]}…" for line in lines[:_DETAILS]]
    return "\n".join([*first_lines, *([f"… {hidden:,} more lines"] if hidden > 0 else [])])


def one_text(text: str) -> str:
    """Returns Markdown as it was written, without blank lines around it."""
    return visible(text).lstrip("\n").rstrip(BLANK)


def indented(text: str, by: str = INDENT) -> str:
    """Returns the text with each line indented that is not empty."""
    return "\n".join(by + line if line else line for line in text.split("\n"))


# Tool calls ---------------------------------------------------------------------------------------------------


def call_lines(call: ToolCall, activity: str | None = None, inside: str = "") -> Iterator[Sequence[Token]]:
    """Yields the card's lines, as pieces with a kind: that of a value's `Token`, or ``name dim label state e``.

    ``activity`` is that of `toolcall_nb.render.shown_states`, if the call is shown live; ``inside`` are the words for
    what ran inside the call.
    """
    title, name = shown_name(call)
    yield [
        *(("", "▸ "), ("name", visible_line(title))),
        *([("dim", f" ({visible_line(name)})")] if name else []),
        *(("dim", " · "), ("state", shown_state(call, activity).word)),
        *([("dim", f" · {visible_line(inside)}")] if inside else []),
    ]
    drawn = [*sections(call), *error_sections(call)]
    earlier = next((section.label for section in drawn if section.fold == "log"), "")
    for section in drawn:
        yield from _section_lines(section, earlier)


def _section_lines(section: Section, earlier: str) -> Iterator[Sequence[Token]]:
    """Yields as much of a section as is in plain text. ``earlier`` is the label of the log lines that are folded."""
    if section.in_text == "count":
        yield [("", INDENT * 2), ("c", f"… {section.label}")]
        return
    if section.in_text:
        yield _label(section)
    match section.in_text, section.layout:
        case "end", _:
            yield from _last(list(_body(_tokens(section))))
        case "all", "log":
            if earlier:
                yield [("", INDENT * 2), ("c", f"… {earlier}")]
            yield from _body((("dim", text) for _, text in _tokens(section)), "│ ")
        case "all", "table" if section.table is not None:
            yield from _body(_table_tokens(section.table))
        case "all", "error":
            yield from _body(("e", text) for _, text in _tokens(section))
        case "all", _:
            yield from _body(_tokens(section))


def _label(section: Section) -> Sequence[Token]:
    note = [("dim", f" ({visible_line(section.note)})")] if section.note else []
    return [("", INDENT), ("label", visible_line(section.label)), *note]


def _body(tokens: Iterable[Token], mark: str = "") -> Iterator[Sequence[Token]]:
    margin = [("", INDENT * 2), *([("dim", mark)] if mark else [])]
    for line in _lines(tokens):
        yield [*margin, *line] if line or mark else []


def _last(lines: list[Sequence[Token]]) -> list[Sequence[Token]]:
    """Returns the last of the lines, which tell most of a traceback."""
    hidden = len(lines) - _TRACEBACK
    if hidden <= 0:
        return lines
    return [[("", INDENT * 2), ("c", f"… {hidden:,} earlier lines")], *lines[hidden:]]


def _tokens(section: Section) -> Iterator[Token]:
    return (
        (token for entry in section.entries for token in entry.tokens) if section.has_ends else _joined(section.entries)
    )


def _joined(entries: Iterable[Entry]) -> Iterator[Token]:
    for number, entry in enumerate(entries):
        if number:
            yield "", "\n"
        yield from entry.tokens


def _lines(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """Yields the pieces line by line, without blank lines at the end."""
    blank = 0
    line: list[Token] = []
    for kind, text in (*tokens, ("", "\n")):
        first, *others = text.split("\n")
        if first:
            line.append((kind, first))
        for piece in others:
            if line:
                yield from ([] for _ in range(blank))
                yield line
            blank = 0 if line else blank + 1
            line = [(kind, piece)] if piece else []


def table_text(table: Table) -> str:
    """Returns the table in columns."""
    return visible("".join(text for _, text in _table_tokens(table)).rstrip("\n"))


def _table_tokens(table: Table) -> Iterator[Token]:
    rows = [[visible_line(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield "k" if number == 0 else "", text + "\n"
    if table.hidden:
        yield "c", format_hidden(table.hidden, "rows")
