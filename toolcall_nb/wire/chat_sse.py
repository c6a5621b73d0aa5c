"""The chat contract of seed 003, both ways: ``chunk``, ``tool_usage``, then ``end`` or ``error``.

    data: {"type":"tool_usage","tools":["weather"]}
    data: {"type":"chunk","content":"…"}
    data: {"type":"end","thread_id":"…"}

It names the tools that were used and no more, so what is read of them is no tool call, which would claim an input and
a state, but one data part ``tools-used`` with their names: each once, in the order in which they were first seen,
whatever became of the stream. It stands where the first of them was named.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.wire.base import Frames, JsonEvents, broke_off

__all__ = ["NAME", "NOT_SAID", "TOOLS_USED", "ChatDecoder", "ChatEncoder"]

NAME = "chat"
TOOLS_USED = "tools-used"
"""The name, and the id, of the data part that stands for ``tool_usage``."""

NOT_SAID = (
    "Of a tool call only its tool's name, once for each tool; no input, result, failure or approval. No reasoning, "
    "sources, files, data, steps, metadata or status; a stop ends like any reply; text parts become one; only the "
    "assistant's messages."
)

_LOG = logger(__name__)
_NO_MESSAGE = "The service reported an error and said no more."


# Reading ----------------------------------------------------------------------------------------------------------


class ChatDecoder(JsonEvents):
    """Events of the contract to ours. ``content`` may be a string or, as LangChain has it, a list of content parts."""

    def __init__(self) -> None:
        self._open: str | None = None  # the block that is open
        self._blocks = 0
        self._tools: dict[str, None] = {}
        super().__init__(self._event, self._ended)

    def _event(self, event: Object) -> Iterator[Event]:
        match event.get("type"):
            case "chunk":
                yield from self._content(event.get("content"))
            case "tool_usage":
                yield from self._used(event.get("tools"))
            case "end":
                yield from self._over(ev.Finish(finish_reason="stop", message_metadata=_thread(event)))
            case "error":
                message = event.get("message")
                yield ev.Error(message if isinstance(message, str) and message else _NO_MESSAGE)
                yield from self._over(ev.Finish(finish_reason="error"))
            case other:
                yield _left_out(f"The stream has an event of the type {other!r:.80}: {event!r:.200}.")

    def _content(self, content: Any) -> Iterator[Event]:
        for part in content if isinstance(content, list) else [content]:
            match part:
                case str():
                    yield from self._text("text", part)
                case {"type": "text", "text": str(text)} | {"type": "text_delta", "text": str(text)}:
                    yield from self._text("text", text)
                case {"type": "thinking", "thinking": str(text)} | {"type": "reasoning", "reasoning": str(text)}:
                    yield from self._text("reasoning", text)
                case None:
                    pass
                case _:
                    yield _left_out(f"A chunk's content has a part that is no text: {part!r:.200}.")

    def _text(self, kind: str, text: str) -> Iterator[Event]:
        if not text:
            return
        if self._open is None or not self._open.startswith(kind):
            yield from self._end_block()
            self._blocks += 1
            self._open = f"{kind}-{self._blocks}"
            yield ev.TextStart(self._open) if kind == "text" else ev.ReasoningStart(self._open)
        yield ev.TextDelta(self._open, text) if kind == "text" else ev.ReasoningDelta(self._open, text)

    def _end_block(self) -> Iterator[Event]:
        if self._open is not None:
            yield ev.TextEnd(self._open) if self._open.startswith("text") else ev.ReasoningEnd(self._open)
            self._open = None

    def _used(self, tools: Any) -> Iterator[Event]:
        if not isinstance(tools, list):
            yield _left_out(f"The tools of a tool_usage are no list: {tools!r:.200}.")
            return
        names = [name for name in tools if isinstance(name, str) and name.strip()]
        if len(names) < len(tools):
            yield _left_out(f"A tool_usage names tools by something else than a name: {tools!r:.200}.")
        before = len(self._tools)
        self._tools.update(dict.fromkeys(names))
        if len(self._tools) > before:
            yield ev.Data(TOOLS_USED, [*self._tools], id=TOOLS_USED)

    def _over(self, finish: Event) -> Iterator[Event]:
        self.is_over = True
        yield from self._end_block()
        yield finish

    def _ended(self, is_over: bool) -> Iterator[Event]:
        if not is_over:
            yield from self._end_block()
            yield from broke_off()


def _thread(event: Object) -> Object | None:
    thread = event.get("thread_id")
    return {"threadId": thread} if isinstance(thread, str) and thread else None


def _left_out(message: str) -> Event:
    return ev.Diagnostic(message, ev.LEFT_OUT)


# Writing ----------------------------------------------------------------------------------------------------------


class ChatEncoder:
    """Events to those of the contract.

    ``tool_usage`` is cumulative, and comes as soon as a call begins. A name that ``known`` does not hold is logged and
    left out. Text parts are parted by a blank line. Front ends stop reading at an ``error``, so what went wrong is told
    when nothing more comes, in place of the ``end``.
    """

    def __init__(self, thread_id: str = "", known: Container[str] | None = None, numbered: bool | str = False) -> None:
        self._thread_id = thread_id
        self._known = known
        self._frames = Frames(numbered)
        self._tools: dict[str, None] = {}
        self._refused: set[str] = set()
        self._calls: set[str] = set()  # of the message
        self._errors: list[str] = []
        self._is_ours = True  # the message is the assistant's
        self._seams: set[str] = set()  # blocks that are only the blank line before a call
        self._block: str | None = None
        self._has_text = False

    def encode(self, event: Event) -> bytes:
        """The event's ``chunk`` or ``tool_usage``, or nothing."""
        match event:
            case ev.Start():
                self._is_ours, self._block = event.role in (None, "assistant"), None
                self._calls.clear()
            case ev.TextStart():
                self._block = None
                (self._seams.add if event.seam else self._seams.discard)(event.id)
            case ev.TextDelta() if self._is_ours and event.id not in self._seams:
                return self._text(event.id, event.delta)
            case ev.ToolInputStart() | ev.ToolInputAvailable() | ev.ToolInputError():
                if event.tool_call_id not in self._calls:
                    self._calls.add(event.tool_call_id)
                    self._block = None  # text that follows is another part
                return self._used([event.tool_name])
            case ev.Data(name="tools-used", data=list(names)):
                return self._used([name for name in names if isinstance(name, str)])
            case ev.Error():
                self._errors.append(event.error_text)
        return b""

    def close(self) -> bytes:
        """The ``error``, if there was one, or the ``end``."""
        if self._errors:
            return self._frames.frame({"type": "error", "message": "\n".join(self._errors)})
        return self._frames.frame({"type": "end", "thread_id": self._thread_id})

    def _text(self, block: str, delta: str) -> bytes:
        if not delta:
            return b""
        seam = "\n\n" if self._has_text and self._block != block else ""
        self._block, self._has_text = block, True
        return self._frames.frame({"type": "chunk", "content": seam + delta})

    def _used(self, names: list[str]) -> bytes:
        before = len(self._tools)
        for name in names:
            if self._known is not None and name not in self._known:
                self._refuse(name)
            elif name.strip():
                self._tools[name] = None
        return self._frames.frame({"type": "tool_usage", "tools": [*self._tools]}) if len(self._tools) > before else b""

    def _refuse(self, name: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            _LOG.warning("tool_usage leaves out %.200r, which is none of the tools that are offered", name)
