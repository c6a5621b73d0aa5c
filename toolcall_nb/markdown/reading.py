"""Reads portable Markdown as a transcript: `read_transcript`. Any text is one; problems become diagnostics.

    ---
    toolcall_nb: 1              the format's version, and the transcript's metadata: front_matter.py
    ---

    > [!user]                   a whole message of one text
    > Which city is warmest?

    I'll look.                  text of the assistant, as it stands

    > [!tool forecast call_1]   a tool call (seed 000)
    > input:
    >   city: Porto

Besides ``tool`` there are these kinds. ``user``, ``system`` and ``assistant`` begin a message; without a body, the
parts that follow are its parts. ``text``, ``reasoning`` and ``stream-error`` quote text. ``source-url``,
``source-document``, ``file``, ``reasoning-file``, ``data`` and ``custom`` hold the fields of the chunk of that name as
YAML. With ``as=yaml`` in its header, a message or a text has a YAML body of fields instead of quoted text. A ``text``
without a body separates two neighbouring texts. ``parent=ID`` in the header of a text says that it was written inside
the call with this id. Step marks (`toolcall_nb.markdown.step_marks`) say where steps begin that are not evident.

A live stream reads ``tool`` only. A document without callouts is one message of the assistant. The rules, each with an
example, are in docs/format.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.parts import ErrorPart, Part, ReasoningPart, TextPart
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.replay import part_events
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import WireError
from toolcall_nb.markdown.characters import CharacterReader
from toolcall_nb.markdown.front_matter import split_front_matter
from toolcall_nb.markdown.scanner import CalloutClosed, CalloutGrew, CalloutOpened, Segment, Text, scan
from toolcall_nb.markdown.step_marks import StepMark, split_marks
from toolcall_nb.markdown.tool_events import TextBlocks, ToolEvents
from toolcall_nb.markdown.yaml_text import BodyError, load_body

MESSAGE_KINDS = ("user", "system", "assistant")
TEXT_KINDS = ("text", "reasoning", "stream-error")
CHUNK_KINDS = ("source-url", "source-document", "file", "reasoning-file", "data", "custom")
CALLOUT_KINDS = ("tool", *MESSAGE_KINDS, *TEXT_KINDS, *CHUNK_KINDS)

HEADER_FIELDS = ("parent", "injected", "repeated")
"""The fields of a text or a message that its header may have beside quoted text."""

_FINAL_LINE_END = re.compile(r"(?:\r\n?|\n)\Z")


def read_transcript(text: str) -> Transcript:
    """Reads ``text`` as a transcript. Never raises on a string."""
    reader = _Reader()
    builder = TranscriptBuilder(is_saved=True)
    characters = CharacterReader()
    document = split_front_matter(characters.feed(text) + characters.close())
    events = reader.read(_FINAL_LINE_END.sub("", document.body), document.lines)
    for event in (*document.diagnostics, *events, *characters.diagnostics):
        builder.apply(event)
    read = builder.transcript
    return Transcript(read.messages, document.metadata, read.diagnostics)


def segments_of(text: str) -> Iterator[Segment | StepMark]:
    """Yields the segments of a whole document, and the step marks between them."""
    for segment in scan(text, CALLOUT_KINDS):
        yield from split_marks(segment) if isinstance(segment, Text) else (segment,)


class _Reader:
    """Turns the segments of a document into the events of its messages."""

    def __init__(self) -> None:
        self._is_open = False
        self._begin_blocks(0)

    def read(self, text: str, skipped_lines: int) -> Iterator[Event]:
        """Yields the events of the whole document; line numbers count from the document's first line."""
        for segment in segments_of(text):
            for event in self._read(segment):
                if isinstance(event, ev.Diagnostic) and event.line:
                    yield ev.Diagnostic(event.message, event.action, event.line + skipped_lines, event.column)
                else:
                    yield event
        yield from self._finish()

    def _begin_blocks(self, count: int) -> None:
        self._blocks = TextBlocks()
        self._tools = ToolEvents(self._blocks, count)

    def _read(self, segment: Segment | StepMark) -> Iterator[Event]:
        match segment:
            case StepMark():
                yield from self._part([*segment.events])
            case Text():
                if segment.text.strip(" \t\r\n"):
                    yield from self._open()
                    yield from self._tools.read(segment)
                elif self._is_open:
                    yield from self._tools.read(Text(segment.text, seam=True))
            case CalloutOpened() | CalloutGrew():
                if isinstance(segment, CalloutOpened):
                    self._in_tool = segment.header.kind == "tool"
                if self._in_tool:
                    yield from self._open()
                    yield from self._tools.read(segment)
            case CalloutClosed(header=header) if header.kind == "tool":
                yield from self._tools.read(segment)
            case CalloutClosed():
                yield from self._callout(segment)
            case problem:
                yield from self._tools.read(problem)

    def _callout(self, closed: CalloutClosed) -> Iterator[Event]:
        kind = closed.header.kind
        try:
            if kind in MESSAGE_KINDS:
                yield from self._message(kind, *_text_and_fields(closed))
            elif kind in TEXT_KINDS:
                text, fields = _text_and_fields(closed)
                is_separator = kind == "text" and text is None and not fields
                yield from self._part([] if is_separator else _text_part(kind, text or "", fields))
            else:
                yield from self._part([_chunk(kind, load_body(closed.body).fields)])
        except (BodyError, WireError) as error:
            at = closed.line + 1 + getattr(error, "line", -1)
            yield ev.Diagnostic(f"a {kind!r} callout that cannot be read: {error}", "It was kept as text.", at, 1)
            yield from self._open()
            yield from self._blocks.text(closed.source)

    def _message(self, role: str, text: str | None, fields: Object) -> Iterator[Event]:
        yield from self._finish()
        self._is_open = True
        wire_role = None if role == "assistant" else role
        yield ev.Start(
            message_id=fields.get("id"),
            message_metadata=fields.get("metadata"),
            role=wire_role,
            repeated=fields.get("repeated"),
            injected=fields.get("injected"),
            extra=fields.get("extra") or {},
        )
        is_aborted = fields.get("aborted") is not None
        finish = ev.Finish(finish_reason=fields.get("finishReason") or "stop")
        self._end: Event = ev.Abort(reason=fields["aborted"]) if is_aborted else finish
        if text is not None:
            yield from self._part(_text_part("text", text, {"providerMetadata": fields.get("providerMetadata")}))
            yield from self._finish()

    def _part(self, events: list[Event]) -> Iterator[Event]:
        yield from self._open()
        yield from self._blocks.close()
        yield from events

    def _open(self) -> Iterator[Event]:
        if not self._is_open:
            self._is_open = True
            self._end = ev.Finish(finish_reason="stop")
            yield ev.Start()

    def _finish(self) -> Iterator[Event]:
        if self._is_open:
            self._is_open = False
            yield from self._blocks.close()
            yield self._end
        self._begin_blocks(self._tools.count)


def _text_and_fields(closed: CalloutClosed) -> tuple[str | None, Object]:
    """Returns the text that a callout quotes (None: it has no body), and its fields."""
    assigned = closed.header.assigned
    if assigned.get("as") == "yaml":
        fields = load_body(closed.body).fields
        for key, kind in _FIELD_TYPES.items():
            if not isinstance(fields.get(key), (kind, type(None))):
                raise BodyError(f"{key!r} should be a {kind.__name__}")
        return fields.get("text"), fields
    named: Object = {name: assigned[name] for name in HEADER_FIELDS if name in assigned}
    if "repeated" in named:
        named["repeated"] = named["repeated"] != "false"
    return (closed.body.removesuffix("\n") if closed.body else None), named


_FIELD_TYPES: dict[str, type] = {
    "text": str,
    "id": str,
    "metadata": dict,
    "finishReason": str,
    "aborted": str,
    "providerMetadata": dict,
    "details": str,
    "parent": str,
    "repeated": bool,
    "injected": str,
    "extra": dict,
}


def _text_part(kind: str, text: str, fields: Object) -> list[Event]:
    metadata, parent, extra = fields.get("providerMetadata"), fields.get("parent"), fields.get("extra") or {}
    part: Part
    match kind:
        case "stream-error":
            part = ErrorPart(text, fields.get("details"), parent=parent, extra=extra)
        case "reasoning":
            part = ReasoningPart(text, metadata, parent=parent, extra=extra)
        case _:
            part = TextPart(text, metadata, parent=parent, extra=extra)
    return [*part_events(part, "quoted")]


def _chunk(kind: str, fields: Object) -> Event:
    if kind == "data":
        name = fields.pop("name", None)
        if not isinstance(name, str):
            raise BodyError("a data callout needs a 'name'")
        return ev.from_dict({"type": f"data-{name}", "data": None, **fields})
    return ev.from_dict({**fields, "type": kind})
