"""Removes tracebacks and details of errors from what clients get: `public_event` and `public_transcript`.

A tool's traceback shows lines and paths of the server's code, and the details of an error may be another program's.
Both stay in the stored thread and in the server's log, for the operator.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.escaping import visible
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import ErrorPart, Part, ToolCall, Transcript
from toolcall_nb.redaction.masked_logging import logger

_log = logger("toolcall_nb.server")


def public_event(event: Event) -> Event:
    """Returns the event without a traceback or details; these are logged."""
    match event:
        case ev.ToolOutputError(traceback=str(traceback)):
            _log.warning("The call %.100r failed:\n    %s", event.tool_call_id, _quoted(traceback))
            return replace(event, traceback=None)
        case ev.Error(details=str(details)):
            _log.warning("%s", _quoted(f"{event.error_text}\n{details}"))
            return replace(event, details=None)
        case _:
            return event


def public_transcript(transcript: Transcript) -> Transcript:
    """Returns the transcript without tracebacks and details."""
    messages = (replace(message, parts=tuple(map(_public_part, message.parts))) for message in transcript.messages)
    return replace(transcript, messages=tuple(messages))


def _public_part(part: Part) -> Part:
    match part:
        case ToolCall(traceback=str()):
            return replace(part, traceback=None)
        case ErrorPart(details=str()):
            return replace(part, details=None)
        case _:
            return part


def _quoted(text: str) -> str:
    """Escapes text of others for the log, which may be read in a terminal. Indented, its lines look like no record."""
    return visible(text).replace("\n", "\n    ")
