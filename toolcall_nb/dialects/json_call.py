"""The JSON dialect (seed 004): a model writes a call as an object with a string ``tool`` and an object ``params``.

Every code fence marked ``json`` is tried, in order; if none holds a call, every object in the text, in order. The
content of a fence in another language is code and never a call.

`JSON_DIALECT` is the dialect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Sequence

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Diagnostic, Event, Json
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall
from toolcall_nb.dialects.base import (
    TextDialect,
    ToolDescription,
    describe_tools,
    input_of,
    is_unknown,
    path_rule,
    written_parts,
)
from toolcall_nb.dialects.call_detection import AFTER_LINE, Fence, JsonCallDetector, StreamedCall
from toolcall_nb.dialects.json_object import JsonObject, Member, parse_lenient_json
from toolcall_nb.markdown.block_context import NEWLINE

_INSTRUCTIONS = """\
To use a tool, respond with a JSON object in the following format:
```json
{
  "tool": "tool_name",
  "params": {
    "param1": "value1"
  }
}
```"""

_JSON = "json"
_INFO = r"(?:(?P<word>[jJ][sS][oO][nN])(?:[ \t][^`\r\n]{0,99})?)?"
_OPENING = re.compile(rf"[ \t]{{0,99}}(?P<mark>`{{3,99}}|~{{3,99}})[ \t]{{0,9}}{_INFO}(?:\r\n?|\n)")
_PARTS = r"[jJ](?:[sS](?:[oO](?:[nN](?:[ \t][^`\r\n]{0,99})?)?)?)?"
_MAY_OPEN = re.compile(rf"[ \t]{{0,99}}(?:`{{0,99}}|~{{0,99}}|(?:`{{3,99}}|~{{3,99}})[ \t]{{0,9}}(?:{_PARTS})?)")
_CLOSING = re.compile(r"(`{1,99}|~{1,99})[ \t]{0,99}(?P<after>.?)", re.DOTALL)
_BLANKS = re.compile(r"[ \t\r\n]*")
# The pattern begins with a set of characters, which `re` searches for fast.
_STOP = re.compile(rf"[{{\r\n](?:(?<=\{{)(?=[ \t\r\n]*(?:\"|\Z))|(?<!\{{){AFTER_LINE})")


class JsonDialect(TextDialect):
    """The JSON dialect. Instructions and results are in the words of seed 004."""

    def detector(self) -> JsonDetector:
        """Returns a new detector for the text of one message."""
        return JsonDetector()

    def instructions(self, tools: Sequence[ToolDescription]) -> str:
        """Describes the tools and the form of a call."""
        return f"{describe_tools(tools)}\n\n{_INSTRUCTIONS}{path_rule(tools)}"

    def write(self, message: Message) -> str:
        """Returns text and calls, each call in a fence, separated by blank lines."""
        return "\n\n".join(
            part.text
            if isinstance(part, TextPart)
            else f"```json\n{_indented({'tool': part.name, 'params': input_of(part)})}\n```"
            for part in written_parts(message)
        )

    def write_result(self, call: ToolCall, tool_names: Container[str] | None = None, arguments: Json = MISSING) -> str:
        """Returns the result of a call, with ``Data`` and ``Input`` as indented JSON.

        An object with a string ``message`` is that message, and its ``data`` or else its other keys are the data; with
        ``"success": false`` it is a failure, and its data follow the input. A string is a message without data;
        anything else is data without a message. An output that the model was sent in part is a message.

        ``arguments`` is the input that the tool was called with, where that differs from the model's.
        """
        called_with = input_of(call) if arguments is MISSING else arguments
        if call.state is not State.OUTPUT_AVAILABLE:
            error = f"Tool not found: {call.name}" if is_unknown(call, tool_names) else format_result(call)
            return f"Tool execution failed: {error}\n\nInput: {_indented(called_with)}"
        message, data = _message_and_data(call)
        line = f"\n{message}" if message is not None else ""
        if isinstance(call.output, dict) and call.output.get("success") is False:
            failed = f"Tool '{call.name}' failed:{line}\n\nInput: {_indented(called_with)}"
            return failed if data is None else f"{failed}\n\nData: {_indented(data)}"
        written = "None" if data is None else _indented(data)
        return f"Tool '{call.name}' executed successfully:{line}\n\nData: {written}"


JSON_DIALECT = JsonDialect()


def _message_and_data(call: ToolCall) -> tuple[str | None, Json]:
    output = call.output
    if call.model_text is not None:
        return call.model_text, None
    if isinstance(output, str):
        return output, None
    if not isinstance(output, dict):
        return None, output
    message = output.get("message")
    others = {key: value for key, value in output.items() if key not in ("success", "message")}
    if not isinstance(message, str):
        failed = output.get("success") is False
        return (_indented(others) if others else None, None) if failed else (None, output)
    return message, output.get("data", others or None)


def _indented(value: Json) -> str:
    return json.dumps(to_strict_json(value), ensure_ascii=False, indent=2)


# Detection ----------------------------------------------------------------------------------------------------


class _FenceAttempt:
    """A fence that may contain nothing but calls, and its content so far."""

    def __init__(self, fence: Fence, opening: str, begin: int) -> None:
        self.begin: int | None = begin  # in the text that is being fed; None: in an earlier one
        self.fence = fence
        self.opening = len(opening)
        self.chunks = [opening]
        self.calls: list[StreamedCall] = []

    @property
    def source(self) -> str:
        return "".join(self.chunks)


class _ObjectAttempt:
    """An object that may be a call. ``position`` is that in the whole text."""

    def __init__(self, begin: int, position: int) -> None:
        self.begin: int | None = begin  # in the text that is being fed; None: in an earlier one
        self.json = JsonObject()
        self.position = position
        self.call: StreamedCall | None = None
        self.is_hopeless = False

    @property
    def source(self) -> str:
        return self.json.source

    @property
    def tool(self) -> Member | None:
        return self.json.members.get("tool")

    @property
    def params(self) -> Member | None:
        return self.json.members.get("params")

    def cannot_be_a_call(self) -> bool:
        """Whether the object's text so far rules out a call."""
        tool, params = self.tool, self.params
        if params is not None and params.begins not in ("", "{"):
            return True
        if tool is None or tool.begins in ("", '"'):
            return tool is not None and tool.is_whole and not (tool.string() or "").strip()
        return True

    def tool_name(self) -> str | None:
        """Returns the tool's name, once it is known and the parameters have begun."""
        if self.tool is None or self.params is None or self.params.begins != "{":
            return None
        return self.tool.string()


class JsonDetector(JsonCallDetector):
    """Finds calls of the JSON dialect in the text of one message.

    Three things may be open at a time. Text passes by line by line. A fence that may contain nothing but calls is
    tried; if something else turns up in it, its text is scanned again like any other. An object is tried from its brace
    on; if it breaks off, the text after that brace is scanned again, except for the braces that broke off with it. So a
    stray brace or an unclosed string hides no call, and each character is scanned a few times at most.

    Objects outside ``json`` fences count only until such a fence has held a call. They are shown as they come, and
    retracted when that happens.
    """

    _stop = _STOP

    def __init__(self) -> None:
        super().__init__()
        self._fence: _FenceAttempt | None = None
        self._object: _ObjectAttempt | None = None
        self._broken: set[int] = set()  # braces that broke off together with an object around them
        self._last_broken = -1
        self._bare: list[tuple[str, str]] = []  # calls outside json fences, and the text of each
        self._fenced = False  # whether a json fence has held a call

    def _attempts(self) -> tuple[_ObjectAttempt | _FenceAttempt, ...]:
        return tuple(attempt for attempt in (self._object, self._fence) if attempt is not None)

    def _held_by_attempts(self) -> int:
        size = 0
        if self._fence is not None and not self._fence.calls:
            size += sum(map(len, self._fence.chunks))
        if self._object is not None and self._object.call is None and not self._object.is_hopeless:
            size += self._object.json.length
        return size

    def _step(self, final: bool) -> Iterable[Event]:
        if self._object is not None:
            return self._object_step(self._object, final)
        return self._text_step(final) if self._fence is None else self._fence_step(self._fence, final)

    # Text

    def _text_step(self, final: bool) -> list[Event]:
        """Reads text up to the next object, or the next line that may be a fence."""
        if self._lines.at_start and self._lines.fence is None:
            opening = _OPENING.match(self._text, self._at)
            if opening is not None and not (self._fenced and not opening["word"]):
                self._fence = _FenceAttempt(
                    Fence(opening["mark"], (opening["word"] or "").lower()), opening[0], self._at
                )
                self._at = opening.end()
                return []
            if opening is None and not final and _MAY_OPEN.fullmatch(self._text, self._at):
                return []
        end = self._next_stop()
        if end > self._at:
            return self._pass(end)
        self._object = _ObjectAttempt(self._at, self._base + self._at)
        return []

    def _next_stop(self) -> int:
        """Returns the position of the next object to try, or of the next line that may be a fence."""
        end = len(self._text)
        if self._lines.may_be_mark(self._text, self._at):
            line = NEWLINE.search(self._text, self._at)
            end = line.end() if line else end
        objects = not self._fenced and (self._lines.fence is None or self._lines.fence.word in ("", _JSON))
        for stop in _STOP.finditer(self._text, self._at, end):
            if stop[0] != "{":
                return stop.end()
            if objects and self._base + stop.start() not in self._broken:
                return stop.start()
        return end

    def _pass(self, end: int) -> list[Event]:
        if self._broken and self._base + end > self._last_broken:
            self._broken.clear()
        return super()._pass(end)

    # A fence that may contain nothing but calls

    def _fence_step(self, fence: _FenceAttempt, final: bool) -> Iterator[Event]:
        """Reads the text between the objects of a fence."""
        blanks = _BLANKS.match(self._text, self._at)
        assert blanks is not None
        fence.chunks.append(blanks[0])
        self._at = blanks.end()
        if self._at == len(self._text):
            if final:
                yield from self._fence_ended(fence)
            return
        if self._text[self._at] == "{" and self._base + self._at not in self._broken:
            self._object = _ObjectAttempt(self._at, self._base + self._at)
            return
        closing = _CLOSING.match(self._text, self._at)
        if closing is not None and not closing["after"] and not final:
            return  # the mark may go on
        if closing is None or closing["after"] not in ("", "\r", "\n") or not fence.fence.is_closed_by(closing[1]):
            yield from self._no_fence(fence)
            return
        fence.chunks.append(self._text[self._at : closing.start("after")])
        self._at = closing.start("after")
        yield from self._fence_ended(fence)

    def _fence_ended(self, fence: _FenceAttempt) -> Iterator[Event]:
        if not fence.calls:
            yield from self._no_fence(fence)
            return
        self._fence = None
        source = fence.source
        if fence.fence.word:  # a json fence holds calls, so those outside such fences are none
            self._fenced = True
            for call_id, text in self._bare:
                self._ids.free(call_id)
                yield ev.ToolRetracted(call_id, text=text or None)
            self._bare.clear()
        else:
            self._bare += [(call.id, "" if number else source) for number, call in enumerate(fence.calls)]
        self._flow.end_call()
        self._lines.skip(source)

    def _no_fence(self, fence: _FenceAttempt, tried: _ObjectAttempt | None = None) -> Iterator[Event]:
        """Turns a fence into text: it contains something else, perhaps in its object ``tried``."""
        self._fence = self._object = None
        if tried is not None:
            fence.chunks.append(tried.source)
        for call in reversed(fence.calls):
            yield from call.retract(self._ids)
        yield from self._rewind(fence, fence.opening)

    # An object

    def _object_step(self, tried: _ObjectAttempt, final: bool) -> Iterator[Event]:
        end = tried.json.feed(self._text, self._at)
        is_over = tried.json.is_whole or tried.json.is_broken
        if tried.is_hopeless:
            yield from self._pass(end)
            self._object = None if is_over or final else tried
            return
        self._at = end
        if tried.cannot_be_a_call():  # passes on as text: it may be JSON
            if self._fence is not None:
                yield from self._no_fence(self._fence, tried)
                return
            tried.is_hopeless = True
            self._object = None if is_over else tried
            yield from self._rewind(tried, tried.json.length)
            return
        name = tried.tool_name()
        if tried.call is None and name is not None:
            tried.call = StreamedCall(name, self._ids.take())
            yield from tried.call.start(self._flow)
        if tried.call is not None and tried.params is not None:
            yield from tried.call.grow(tried.params)
        if tried.json.is_whole:
            self._object = None
            yield from self._whole(tried)
        elif is_over or final:
            self._object = None
            yield from self._broke_off(tried)

    def _whole(self, tried: _ObjectAttempt) -> Iterator[Event]:
        try:
            read = parse_lenient_json(tried.source)
        except (ValueError, RecursionError):
            read = {}
        is_call = isinstance(read.get("tool"), str) and isinstance(read.get("params"), dict)
        if tried.call is None or not is_call:
            yield from self._retract(tried, "a tool call that cannot be read")
            if self._fence is not None:
                yield from self._no_fence(self._fence, tried)
            else:
                yield from self._rewind(tried, tried.json.length)
            return
        yield from tried.call.rename(read, self._ids)
        yield ev.ToolInputAvailable(tried.call.id, tried.call.name, read["params"])
        if self._fence is not None:
            self._fence.chunks.append(tried.source)
            self._fence.calls.append(tried.call)
            return
        self._bare.append((tried.call.id, tried.source))
        self._flow.end_call()
        self._lines.skip(tried.source)

    def _broke_off(self, tried: _ObjectAttempt) -> Iterator[Event]:
        yield from self._retract(tried, "a tool call whose JSON breaks off")
        self._broken.update(tried.position + brace for brace in tried.json.open_braces)
        self._last_broken = max(self._last_broken, tried.position + tried.json.open_braces[-1])
        if self._fence is not None:
            yield from self._no_fence(self._fence, tried)
        else:
            yield from self._rewind(tried, 1)

    def _retract(self, tried: _ObjectAttempt, problem: str) -> Iterator[Event]:
        if tried.call is not None:
            yield from tried.call.retract(self._ids)
            position = self._lines.position
            yield Diagnostic(problem, "It was kept as text.", position.line, position.column)
