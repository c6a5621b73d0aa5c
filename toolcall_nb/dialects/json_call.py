"""The JSON dialect (seed 004): a model writes a call as an object with a string ``tool`` and an object ``params``.

Every code fence marked ``json`` is tried, in order; where none holds a call, every object in the text, in order. What
stands in a fence of another language is code, and no call.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall
from toolcall_nb.dialects.json_detector import Detector
from toolcall_nb.dialects.prompt import describe_tools, path_rule
from toolcall_nb.dialects.request import input_of, is_unknown, written_parts

if TYPE_CHECKING:
    from toolcall_nb.dialects import ToolDescription

__all__ = ["Detector", "instructions", "result_text", "write", "write_result"]

_HOW = """\
To use a tool, respond with a JSON object in the following format:
```json
{
  "tool": "tool_name",
  "params": {
    "param1": "value1"
  }
}
```"""


def instructions(tools: Sequence[ToolDescription]) -> str:
    """The part of a system prompt that describes ``tools`` and how to call them, in the words of seed 004."""
    return f"{describe_tools(tools)}\n\n{_HOW}{path_rule(tools)}"


def write(message: Message) -> str:
    """The text and the calls of a message as a model writes them; results and other parts are left out."""
    parts = (part.text if isinstance(part, TextPart) else _call(part) for part in written_parts(message))
    return "\n\n".join(parts)


def _call(call: ToolCall) -> str:
    return f"```json\n{_indented({'tool': call.name, 'params': input_of(call)})}\n```"


def write_result(call: ToolCall, known: Container[str] | None = None) -> str:
    """What became of a call, for the model: `result_text`."""
    return result_text(call, known)


def result_text(call: ToolCall, known: Container[str] | None = None, arguments: Json = MISSING) -> str:
    """How a call ended, in the words of seed 004, with ``Data`` and ``Input`` as indented JSON.

    ``known`` are the names of the tools that there are (None: not known), ``arguments`` the input as the tool got it,
    where that is another than the model's. An object with a string ``message`` is that message, and its ``data`` or
    else its other keys are the data; with ``"success": false`` it is a failure, whose data follow the input. A string
    is a message without data; anything else, data without a message. An output that the model was told in part is a
    message.
    """
    given = input_of(call) if arguments is MISSING else arguments
    if call.state is not State.OUTPUT_AVAILABLE:
        error = f"Tool not found: {call.name}" if is_unknown(call, known) else format_result(call)
        return f"Tool execution failed: {error}\n\nInput: {_indented(given)}"
    message, data = _message_and_data(call)
    said = f"\n{message}" if message is not None else ""
    if isinstance(call.output, dict) and call.output.get("success") is False:
        failed = f"Tool '{call.name}' failed:{said}\n\nInput: {_indented(given)}"
        return failed if data is None else f"{failed}\n\nData: {_indented(data)}"
    return f"Tool '{call.name}' executed successfully:{said}\n\nData: {'None' if data is None else _indented(data)}"


def _message_and_data(call: ToolCall) -> tuple[str | None, Json]:
    output = call.output
    if call.seen is not None:
        return call.seen, None
    if isinstance(output, str):
        return output, None
    if not isinstance(output, dict):
        return None, output
    message = output.get("message")
    rest = {key: value for key, value in output.items() if key not in ("success", "message")}
    if not isinstance(message, str):
        failed = output.get("success") is False
        return (_indented(rest) if rest else None, None) if failed else (None, output)
    return message, output.get("data", rest or None)


def _indented(value: Json) -> str:
    return json.dumps(to_strict_json(value), ensure_ascii=False, indent=2)
