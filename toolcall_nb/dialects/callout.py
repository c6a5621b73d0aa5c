"""The callout dialect (seed 000): a model writes a call as a ``> [!tool …]`` callout in its Markdown.

`CALLOUT_DIALECT` is the dialect; `create_stream_chunks` converts a whole document in the exact form of the seed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.result_text import RESULT_LIMIT, format_output, format_result, truncate_text
from toolcall_nb.core.text import well_formed
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall
from toolcall_nb.dialects.base import (
    TextDialect,
    ToolDescription,
    describe_tools,
    input_of,
    path_rule,
    written_parts,
)
from toolcall_nb.markdown.characters import CharacterReader
from toolcall_nb.markdown.scanner import CalloutClosed, Scanner, Segment, Text, scan
from toolcall_nb.markdown.tool_callout import SEED_CALLOUT_FIELDS, CalloutIds, ToolCallout, read_tool_callout
from toolcall_nb.markdown.tool_events import UNKNOWN_ERROR, TextBlocks, ToolEvents
from toolcall_nb.markdown.writing import write_message_body
from toolcall_nb.markdown.yaml_text import BodyError

_WORDS = re.compile(r"\s+|\S+")


class CalloutDetector:
    """Finds callouts in the text of one message. See `toolcall_nb.dialects.Detector`."""

    def __init__(self) -> None:
        self._characters = CharacterReader()
        self._scanner = Scanner()
        self._blocks = TextBlocks()
        self._tools = ToolEvents(self._blocks)

    @property
    def held(self) -> int:
        """The number of characters that are withheld because they may still become a call."""
        return self._scanner.held + self._characters.held

    def feed(self, text: str) -> list[Event]:
        """Takes more text and returns the events that are certain now."""
        text = self._characters.feed(text)
        if text and self._scanner.pass_within_line(text):
            return self._blocks.text(text)
        return self._events(self._scanner.feed(text))

    def close(self) -> list[Event]:
        """Ends the text and returns the remaining events."""
        segments = self._scanner.feed(self._characters.close()) + self._scanner.close()
        return [*self._events(segments), *self._blocks.close(), *self._characters.diagnostics]

    def _events(self, segments: list[Segment]) -> list[Event]:
        return [event for segment in segments for event in self._tools.read(segment)]


class CalloutDialect(TextDialect):
    """The callout dialect."""

    def detector(self) -> CalloutDetector:
        """Returns a new detector for the text of one message."""
        return CalloutDetector()

    def instructions(self, tools: Sequence[ToolDescription]) -> str:
        """Describes the tools and the form of a callout."""
        return (
            f"{describe_tools(tools)}\n\n"
            "To use a tool, write a callout that begins on a line of its own and ends at the first line without '>':"
            "\n\n"
            "> [!tool tool_name call_1]\n> input:\n>   param1: value1\n\n"
            "The lines after the first are YAML. Give each call an id of its own. Write nothing after your calls: the "
            f"results come in the next message, as the same callouts with their output.{path_rule(tools)}"
        )

    def write(self, message: Message) -> str:
        """Returns text and calls as portable Markdown."""
        parts = (_without_result(part) if isinstance(part, ToolCall) else part for part in written_parts(message))
        return _body(*parts)

    def write_result(self, call: ToolCall, tool_names: Container[str] | None = None) -> str:
        """Returns the callout that the model wrote, with the call's state and its output or error."""
        ended = replace(_without_result(call), state=call.state if call.is_final else State.INTERRUPTED)
        match call.state:
            case State.OUTPUT_AVAILABLE:
                return _body(replace(ended, output=call.output if call.model_text is None else call.model_text))
            case State.OUTPUT_ERROR:
                return _body(replace(ended, error=format_result(call)))
            case State.OUTPUT_DENIED:
                return _body(replace(ended, approval=call.approval))
            case _ if call.output is not MISSING:
                return _body(replace(ended, output=truncate_text(format_output(call.output), RESULT_LIMIT)))
            case _:
                return _body(ended)


CALLOUT_DIALECT = CalloutDialect()


def _without_result(call: ToolCall) -> ToolCall:
    return ToolCall(id=call.id, name=call.name, state=State.INPUT_AVAILABLE, input=input_of(call))


def _body(*parts: TextPart | ToolCall) -> str:
    return write_message_body(Message("assistant", parts)).rstrip("\n") if parts else ""


def create_stream_chunks(markdown: str) -> list[Object]:
    """Converts a whole document into the chunks that seed 000 specifies: AI SDK chunks as dicts.

    All text is one text block, ``text-1``, in words and blanks, line ends around callouts included. Each callout
    becomes ``tool-input-available`` and, where it has one, an error or an output. The last chunk is ``finish``, with
    lengths in characters. Fields of a callout that the seed does not name are kept on each of its chunks; those with
    the name of one of the chunk's own fields are kept under ``extra``.

    Any text gives chunks: a callout that cannot be read stays text, and blank text gives an empty text block.
    """
    text = well_formed(markdown)
    chunks: list[Object] = [{"type": "text-start", "id": "text-1"}]
    ids = CalloutIds()
    pending = ""  # the text since the last call
    for segment in scan(text):
        if isinstance(segment, Text):
            pending += segment.text
        elif isinstance(segment, CalloutClosed):
            try:
                callout = read_tool_callout(segment.header, segment.body, ids)
            except BodyError:
                pending += segment.source
                continue
            chunks += [*_text_chunks(pending), *_callout_chunks(callout)]
            pending = ""
    usage = {"inputTokens": 0, "outputTokens": len(text), "totalTokens": len(text)}
    finish: Object = {"type": "finish", "finishReason": "stop", "usage": usage}
    return [*chunks, *_text_chunks(pending), {"type": "text-end", "id": "text-1"}, finish]


def _text_chunks(text: str) -> Iterator[Object]:
    return ({"type": "text-delta", "id": "text-1", "delta": word} for word in _WORDS.findall(text))


def _callout_chunks(callout: ToolCallout) -> list[Object]:
    arguments = {} if callout.input is MISSING or callout.input is None else callout.input
    events: list[Event] = [ev.ToolInputAvailable(callout.id, callout.name, arguments), *_end_events(callout)]
    extra = {key: value for key, value in callout.fields.items() if key not in SEED_CALLOUT_FIELDS} | callout.extra
    return [ev.with_extra(chunk, extra, chunk) for chunk in map(ev.to_dict, events)]


def _end_events(callout: ToolCallout) -> list[Event]:
    error = callout.error if callout.error and callout.error.strip() else None
    if error is not None or callout.state is State.OUTPUT_ERROR:
        return [ev.ToolOutputError(callout.id, error or UNKNOWN_ERROR)]
    if callout.output is not MISSING or callout.state is State.OUTPUT_AVAILABLE:
        output: Any = None if callout.output is MISSING else callout.output
        return [ev.ToolOutputAvailable(callout.id, output)]
    return []
