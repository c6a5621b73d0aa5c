"""The signature dialect (seed 001): a model writes a call as ``###:`` and a JSON object, on a line of its own.

    ###: {
      "signature": "CLIENT_TOOL_CALL",
      "toolName": "add_random_item_to_shop",
      "parameters": {}
    }

``toolName`` is needed; ``parameters``, also ``params`` or ``arguments``, are an empty object where there are none.
A result is written the same way, with the signature ``CLIENT_TOOL_RESULT``. In a code fence all of this is text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from toolcall_nb.core.events import Diagnostic, Object
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall
from toolcall_nb.dialects.prompt import describe_tools, path_rule
from toolcall_nb.dialects.request import input_of, is_unknown, written_parts
from toolcall_nb.dialects.signature_detector import FAILED, INVALID, SIGNATURE, Detector
from toolcall_nb.markdown.block_context import NEWLINE
from toolcall_nb.markdown.tool_events import UNKNOWN_ERROR
from toolcall_nb.redaction.masked_logging import logger

if TYPE_CHECKING:
    from toolcall_nb.dialects import ToolDescription

__all__ = ["Detector", "executing", "instructions", "is_report", "remark", "report", "write", "write_result"]

_RESULT_SIGNATURE = "CLIENT_TOOL_RESULT"
_REPORT = re.compile(rf"\*(?:🔧 Executed [^\n]+|❌ Tool [^\n]+|{INVALID}|{FAILED})\*")

_log = logger("toolcall_nb.dialects.signature")


# What a model is told, and what it has said -----------------------------------------------------------------


def instructions(tools: Sequence[ToolDescription]) -> str:
    """The part of a system prompt that describes ``tools`` and how to call them in this dialect."""
    example = _object({"signature": SIGNATURE, "toolName": "tool_name", "parameters": {"param1": "value1"}})
    return (
        f"{describe_tools(tools)}\n\n"
        "To use a tool, write ### and a colon at the start of a line, and a JSON object after them:\n\n"
        f"{example}\n\n"
        "Write nothing after your calls: the results come in the next message, in the same form, with the signature "
        f"{_RESULT_SIGNATURE}.{path_rule(tools)}"
    )


def write(message: Message) -> str:
    """The text and the calls of a message as a model writes them; results and other parts are left out."""
    parts = (part.text if isinstance(part, TextPart) else _call(part) for part in written_parts(message))
    return "\n\n".join(parts)


def _call(call: ToolCall) -> str:
    return _object({"signature": SIGNATURE, "toolName": call.name, "parameters": input_of(call)})


def write_result(call: ToolCall, known: Container[str] | None = None) -> str:
    """Formats the end of a call for the model: its output (`toolcall_nb.core.result_text`), or why there is none."""
    about: Object = {"signature": _RESULT_SIGNATURE, "toolName": call.name}
    if call.state is not State.OUTPUT_AVAILABLE:
        about["error"] = f"Tool {call.name} not available" if is_unknown(call, known) else format_result(call)
    else:
        about["result"] = call.output if call.seen is None else call.seen
    return _object(about)


def _object(fields: Object) -> str:
    return f"###: {json.dumps(to_strict_json(fields), ensure_ascii=False, indent=2)}"


# What a person is told --------------------------------------------------------------------------------------


def report(call: ToolCall, known: Container[str] | None = None) -> str | None:
    """What is added to the message when a call has ended, in the words of seed 001; None while it has not.

    ``known`` are the names of the tools that there are; None: not known.
    """
    match call.state:
        case State.OUTPUT_AVAILABLE:
            _log.info("✅ Tool %s executed: %s", call.name, format_result(call))
            message = _message(call.output)
            return f"*🔧 Executed {call.name}: {message}*" if message else f"*🔧 Executed {call.name}*"
        case State.OUTPUT_ERROR if is_unknown(call, known):
            return f"*❌ Tool {call.name} not available*"
        case State.OUTPUT_ERROR:
            return f"*❌ Tool {call.name} failed: {_first_line(call.error or UNKNOWN_ERROR)}*"
        case State.OUTPUT_DENIED:
            return f"*❌ Tool {call.name} was not allowed to run*"
        case State.INTERRUPTED:
            return f"*❌ Tool {call.name} was interrupted*"
        case _:
            return None


def executing(name: str) -> str | None:
    """The status while a tool runs."""
    return f"🔧 Executing tool: {name}..."


def remark(diagnostic: Diagnostic) -> str | None:
    """What is added to the message for a call that could not be read; None for any other diagnostic."""
    return f"*{diagnostic.message}*" if diagnostic.message in (INVALID, FAILED) else None


def is_report(text: str) -> bool:
    """Whether a text is nothing but reports and remarks of this dialect."""
    lines = [line for line in NEWLINE.split(text) if line.strip()]
    return bool(lines) and all(_REPORT.fullmatch(line.strip()) for line in lines)


def _message(output: Any) -> str:
    """An object's own message, in one line."""
    message = output.get("message") if isinstance(output, dict) else None
    return _one_line(message) if isinstance(message, str) else ""


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in NEWLINE.split(text) if line.strip())


def _first_line(text: str) -> str:
    return next((line.strip() for line in NEWLINE.split(text) if line.strip()), "")
