"""Writes a transcript as portable Markdown: `write_transcript`. It reads back equal (`toolcall_nb.markdown.reading`).

Text is written as plain Markdown where that reads back. To find out, it is read back; where the reader finds something
else (an open fence that would include the next call, text that looks like a callout), the part is written as a callout
with its text as a YAML string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.replay import part_events
from toolcall_nb.core.transcript import (
    ErrorPart,
    Message,
    Part,
    ReasoningPart,
    State,
    TextPart,
    ToolCall,
    Transcript,
)
from toolcall_nb.markdown.callout import HeaderGrammar, quote_value
from toolcall_nb.markdown.front_matter import front_matter
from toolcall_nb.markdown.reading import CALLOUT_KINDS
from toolcall_nb.markdown.scanner import CalloutOpened, Text, UnreadableHeader, scan
from toolcall_nb.markdown.tool_callout import APPROVAL_FIELDS, CALLOUT_FIELDS
from toolcall_nb.markdown.yaml_text import yaml_lines

_HEADERS = HeaderGrammar(CALLOUT_KINDS)
_TEXT_KINDS: dict[type, str] = {TextPart: "text", ReasoningPart: "reasoning", ErrorPart: "stream-error"}
_PROVIDER_FIELDS = ("providerExecuted", "dynamic", "providerMetadata", "toolMetadata")


def write_transcript(transcript: Transcript, *, versioned: bool = False, timings: bool = False) -> str:
    """Writes the whole transcript, with ``timings`` also the times of its calls. It ends with a line end unless empty.

    With ``versioned``, it begins with front matter that gives the format's version, as a file does. Otherwise there is
    front matter only for metadata, or where the text would be mistaken for front matter.
    """
    blocks: list[str] = []
    implied = True  # whether the reader begins a message of the assistant by itself here
    for number, message in enumerate(transcript.messages):
        last = number == len(transcript.messages) - 1
        written, implied = _message(message, implied, last, timings)
        blocks += written
    text = "\n\n".join(blocks)
    has_front = versioned or bool(transcript.metadata) or text.startswith("---")
    front = front_matter(transcript.metadata) if has_front else ""
    return "".join((front, "\n" if front and text else "", text, "\n" if text else ""))


def write_message_body(message: Message) -> str:
    """Writes the parts of one message, without its role."""
    return "\n\n".join(_parts(message.parts, last=True, timings=False)) + "\n"


def _message(message: Message, implied: bool, last: bool, timings: bool) -> tuple[list[str], bool]:
    """Returns the blocks of a message, and whether the reader then begins a message of the assistant by itself."""
    fields: Object = {
        "id": message.id,
        "metadata": message.metadata or None,
        "finishReason": message.finish_reason,
        "aborted": message.aborted,
    }
    fields = {key: value for key, value in fields.items() if value is not None}
    only = message.parts[0] if len(message.parts) == 1 else None
    if message.role != "assistant" and isinstance(only, TextPart):
        return [_quoted(message.role, only, fields)], True
    parts = _parts(message.parts, last, timings)
    if implied and message.role == "assistant" and not fields and parts:
        return parts, False
    return [_callout(message.role, "as=yaml" if fields else "", yaml_lines(fields)), *parts], False


def _parts(parts: tuple[Part, ...], last: bool, timings: bool) -> list[str]:
    written: list[str] = []
    after_text = False  # two neighbouring texts would be read as one
    for number, part in enumerate(parts):
        is_final = last and number == len(parts) - 1
        plain = isinstance(part, TextPart) and _stands_plain(part, first=not written, last=is_final)
        if plain and after_text:
            written.append(_callout("text", "", ()))
        written.append(part.text if plain and isinstance(part, TextPart) else _part(part, timings))
        after_text = plain
    return written


def _part(part: Part, timings: bool) -> str:
    if isinstance(part, ToolCall):
        return _tool(part, timings)
    if isinstance(part, (TextPart, ReasoningPart, ErrorPart)):
        return _quoted(_TEXT_KINDS[type(part)], part, {})
    fields = ev.to_dict(next(iter(part_events(part, ""))))
    kind = fields.pop("type")
    if kind.startswith("data-"):
        kind, fields = "data", {"name": kind.removeprefix("data-"), **fields}
    return _callout(kind, "", yaml_lines(fields))


def _stands_plain(part: TextPart, first: bool, last: bool) -> bool:
    """Whether the text, written as plain Markdown, is read back as it is."""
    text = part.text
    if part.provider_metadata or not text.strip(" \t\r\n"):
        return False
    before = "" if first else "> [!assistant]\n\n"
    after = "" if last else "\n\n> [!assistant]"
    segments = scan(before + text + after, CALLOUT_KINDS)
    read = "".join(segment.text for segment in segments if isinstance(segment, Text) and not segment.seam)
    opened = sum(isinstance(segment, CalloutOpened) for segment in segments)
    clean = not any(isinstance(segment, UnreadableHeader) for segment in segments)
    return read == text and opened == (not first) + (not last) and clean and not (last and text.endswith("\r"))


def _quoted(kind: str, part: TextPart | ReasoningPart | ErrorPart, message_fields: Object) -> str:
    """Returns a callout that quotes a text; if quoting would change it, one with the text as a YAML string."""
    fields: Object = {**message_fields, "text": part.text}
    if isinstance(part, ErrorPart):
        fields |= {} if part.details is None else {"details": part.details}
    elif part.provider_metadata is not None:
        fields["providerMetadata"] = part.provider_metadata
    lines = part.text.split("\n")
    can_quote = "\r" not in part.text and not any(_HEADERS.starts(f"> {line}") for line in lines)
    if part.text and len(fields) == 1 and can_quote:
        return _callout(kind, "", lines)
    return _callout(kind, "as=yaml", yaml_lines(fields))


def _callout(kind: str, values: str, body: Iterable[str], after: str = "") -> str:
    head = f"> [!{kind}{' ' if values else ''}{values}]{after}"
    return "\n".join((head, *(f"> {line}" if line else ">" for line in body)))


def _tool(call: ToolCall, timings: bool) -> str:
    """Returns a tool callout, with name and id in the header if it can hold them, and all else in the body."""
    name, call_id = quote_value(call.name), quote_value(call.id)
    fields: Object = {}
    if name is None:
        fields["toolName"], name = call.name, ""
    if call_id is None:
        fields["toolCallId"], call_id = call.id, ""
    elif not name:
        call_id = f"id={call_id}"
    values = " ".join(value for value in (name, call_id) if value)
    fold = {None: "", True: "+", False: "-"}[call.open]
    title = call.title or ""
    title = f" {title}" if title and title.isprintable() and title == title.strip() and len(title) <= 500 else ""
    fields["state"] = call.state.value
    if call.title is not None and not title:
        fields["title"] = call.title
    fields.update(_tool_fields(call))
    if timings and call.record.is_known:
        times = {"started": call.started, "seconds": call.seconds, "tokens": call.tokens}
        fields["times"] = {name: value for name, value in times.items() if value is not None}
    return _callout("tool", values, yaml_lines(fields), fold + title)


def _tool_fields(call: ToolCall) -> Iterator[tuple[str, object]]:
    if call.input is MISSING:
        yield "inputText", call.input_text
    else:
        yield "input", call.input
    if call.original_input is not MISSING:
        yield "originalInput", call.original_input
    if call.approval is not None:
        approval = {name: getattr(call.approval, attribute) for name, (attribute, _) in APPROVAL_FIELDS.items()}
        yield "approval", {name: value for name, value in approval.items() if value is not None}
    if call.log:
        yield "log", call.log
    if call.output is not MISSING:
        yield ("output" if call.state is State.OUTPUT_AVAILABLE else "preliminaryOutput"), call.output
    for key, value in (("modelText", call.model_text), ("errorText", call.error), ("traceback", call.traceback)):
        if value is not None:
            yield key, value
    provider_values = (call.provider_executed, call.dynamic, call.provider_metadata, call.tool_metadata)
    yield from ((key, value) for key, value in zip(_PROVIDER_FIELDS, provider_values, strict=True) if value is not None)
    if CALLOUT_FIELDS.isdisjoint(call.extra):
        yield from call.extra.items()
    else:
        yield "extra", call.extra
    if call.display is not None:
        yield "display", call.display  # last, because a picture is long and not for reading
