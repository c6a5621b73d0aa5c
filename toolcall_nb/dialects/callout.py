"""The callout dialect (seed 000): a model writes a call as a ``> [!tool …]`` callout in its Markdown."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.result_text import RESULT_LIMIT, format_output, format_result, truncate_text
from toolcall_nb.core.text import well_formed
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall
from toolcall_nb.dialects.prompt import describe_tools, path_rule
from toolcall_nb.dialects.request import input_of, written_parts
from toolcall_nb.markdown.characters import CharacterReader
from toolcall_nb.markdown.scanner import CalloutClosed, Scanner, Segment, Text, scan
from toolcall_nb.markdown.tool_callout import SEED_CALLOUT_FIELDS, CalloutIds, ToolCallout, read_tool_callout
from toolcall_nb.markdown.tool_events import UNKNOWN_ERROR, TextBlocks, ToolEvents
from toolcall_nb.markdown.writing import write_message_body
from toolcall_nb.markdown.yaml_body import BodyError

if TYPE_CHECKING:
    from toolcall_nb.dialects import ToolDescription

__all__ = ["Detector", "create_stream_chunks", "instructions", "write", "write_result"]

_WORDS = re.compile(r"\s+|\S+")


class Detector:
    """Text of one message in, cut anywhere; events out. See `toolcall_nb.dialects.Detector`."""

    def __init__(self) -> None:
        self._characters = CharacterReader()
        self._scanner = Scanner()
        self._blocks = TextBlocks()
        self._tools = ToolEvents(self._blocks)

    @property
    def held(self) -> int:
        """How many characters are withheld, because they may still become a call."""
        return self._scanner.held + self._characters.held

    def feed(self, text: str) -> list[Event]:
        """Take in more text; return the events that are certain now."""
        return self._events(self._scanner.feed(self._characters.feed(text)))

    def close(self) -> list[Event]:
        """The text is complete; return the rest."""
        segments = self._scanner.feed(self._characters.close()) + self._scanner.close()
        return [*self._events(segments), *self._blocks.close(), *self._characters.troubles]

    def _events(self, segments: list[Segment]) -> list[Event]:
        take = self._tools.take
        return [event for segment in segments for event in take(segment)]


def instructions(tools: Sequence[ToolDescription]) -> str:
    """The part of a system prompt that describes ``tools`` and how to call them in this dialect."""
    return (
        f"{describe_tools(tools)}\n\n"
        "To use a tool, write a callout that begins on a line of its own and ends at the first line without '>':\n\n"
        "> [!tool tool_name call_1]\n> input:\n>   param1: value1\n\n"
        "The lines after the first are YAML. Give each call an id of its own. Write nothing after your calls: the "
        f"results come in the next message, as the same callouts with their output.{path_rule(tools)}"
    )


def write(message: Message) -> str:
    """The text and the calls of a message as a model writes them; results and other parts are left out."""
    parts = tuple(_asked(part) if isinstance(part, ToolCall) else part for part in written_parts(message))
    return _body(*parts) if parts else ""


def write_result(call: ToolCall, known: Container[str] | None = None) -> str:
    """What became of a call, for the model: the callout that it wrote, with the state and what it gave."""
    asked = replace(_asked(call), state=call.state if call.is_final else State.INTERRUPTED)
    match call.state:
        case State.OUTPUT_AVAILABLE:
            return _body(replace(asked, output=call.output if call.seen is None else call.seen))
        case State.OUTPUT_ERROR:
            return _body(replace(asked, error=format_result(call)))
        case State.OUTPUT_DENIED:
            return _body(replace(asked, approval=call.approval))
        case _ if call.output is not MISSING:
            return _body(replace(asked, output=truncate_text(format_output(call.output), RESULT_LIMIT)))
        case _:
            return _body(asked)


def _asked(call: ToolCall) -> ToolCall:
    return ToolCall(id=call.id, name=call.name, state=State.INPUT_AVAILABLE, input=input_of(call))


def _body(*parts: TextPart | ToolCall) -> str:
    return write_message_body(Message("assistant", parts)).rstrip("\n")


def create_stream_chunks(markdown: str) -> list[Object]:
    """The chunks of a whole document, to the letter of seed 000: AI SDK chunks as dicts.

    One text block, ``text-1``, in words and blanks, line ends around callouts included; for each callout
    ``tool-input-available`` and then an error or an output, if there is one; ``finish`` with lengths in characters.
    Fields of a callout that the seed does not name are kept on each of its chunks, under ``extra`` those that have the
    name of one of the chunk's own. Any text gives chunks: what is not a valid callout stays text. Blank text gives an
    empty text block.
    """
    text = well_formed(markdown)
    chunks: list[Object] = [{"type": "text-start", "id": "text-1"}]
    ids = CalloutIds()
    pending = ""  # the text since the last call
    for segment in scan(text):
        if isinstance(segment, Text):
            pending += segment.text
        elif isinstance(segment, CalloutClosed):
            call = _callout_chunks(segment, ids)
            if call is None:
                pending += segment.source
                continue
            chunks += [*_text_chunks(pending), *call]
            pending = ""
    usage = {"inputTokens": 0, "outputTokens": len(text), "totalTokens": len(text)}
    finish: Object = {"type": "finish", "finishReason": "stop", "usage": usage}
    return [*chunks, *_text_chunks(pending), {"type": "text-end", "id": "text-1"}, finish]


def _text_chunks(text: str) -> Iterator[Object]:
    return ({"type": "text-delta", "id": "text-1", "delta": word} for word in _WORDS.findall(text))


def _callout_chunks(closed: CalloutClosed, ids: CalloutIds) -> list[Object] | None:
    """The chunks of a callout, or None for one that cannot be read."""
    try:
        callout = read_tool_callout(closed.header, closed.body, ids)
    except BodyError:
        return None
    given = {} if callout.input is MISSING or callout.input is None else callout.input
    events: list[Event] = [ev.ToolInputAvailable(callout.id, callout.name, given), *_outcome(callout)]
    extra = {key: value for key, value in callout.fields.items() if key not in SEED_CALLOUT_FIELDS} | callout.extra
    return [ev.with_extra(chunk, extra, chunk) for chunk in map(ev.to_dict, events)]


def _outcome(callout: ToolCallout) -> list[Event]:
    error = callout.error if callout.error and callout.error.strip() else None
    if error is not None or callout.state is State.OUTPUT_ERROR:
        return [ev.ToolOutputError(callout.id, error or UNKNOWN_ERROR)]
    if callout.output is not MISSING or callout.state is State.OUTPUT_AVAILABLE:
        output: Any = None if callout.output is MISSING else callout.output
        return [ev.ToolOutputAvailable(callout.id, output)]
    return []
