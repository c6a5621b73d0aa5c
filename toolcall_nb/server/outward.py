"""What leaves the server of a turn: all that was said, and nothing of the insides of its own code.

A tool's traceback shows lines and paths of the server's code, and the details of an error may be those of a program
that runs here. Both stay in the stored thread and in the server's log, for whoever runs it.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import ErrorPart, Message, Part, ToolCall, Transcript
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.render.escaping import visible

__all__ = ["outward", "outward_transcript"]

log = logger("toolcall_nb.server")


def outward(event: Event) -> Event:
    """The event as others are told of it; what they are not told is logged."""
    match event:
        case ev.ToolOutputError(traceback=str(traceback)):
            log.warning("The call %.100r failed:\n    %s", event.tool_call_id, _quoted(traceback))
            return replace(event, traceback=None)
        case ev.Error(details=str(details)):
            log.warning("%s", _quoted(f"{event.error_text}\n{details}"))
            return replace(event, details=None)
        case _:
            return event


def outward_transcript(transcript: Transcript) -> Transcript:
    """The same of what is told at once."""
    return replace(transcript, messages=tuple(map(_message, transcript.messages)))


def _message(message: Message) -> Message:
    return replace(message, parts=tuple(map(_part, message.parts)))


def _part(part: Part) -> Part:
    match part:
        case ToolCall(traceback=str()):
            return replace(part, traceback=None)
        case ErrorPart(details=str()):
            return replace(part, details=None)
        case _:
            return part


def _quoted(text: str) -> str:
    """Text of others in a log that may be read in a terminal: no sequence of it is obeyed, no line of it a record."""
    return visible(text).replace("\n", "\n    ")
