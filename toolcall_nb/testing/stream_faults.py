"""Faults of a model's stream and of its connection. `toolcall_nb.testing.faults` has these and all others.

Each fault is a small frozen value that turns events into faulty events. Faults of ids and of written calls work on
events, and on the text dialects as the mock model writes them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.wire import decoder, encoder

# Cuts -------------------------------------------------------------------------------------------------------


class cut(Struct, frozen=True):
    """Cuts text and inputs into pieces of ``size`` UTF-16 units; 1 also separates the halves of a surrogate pair."""

    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"A piece has at least 1 unit, not {self.size}.")

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream in such pieces."""
        return _recut(events, lambda: self.size)


class random_cuts(Struct, frozen=True):
    """Cuts text and inputs into pieces of 1 to ``most`` UTF-16 units, chosen by ``seed``."""

    seed: int = 0
    most: int = 12

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream in such pieces."""
        random = Random(self.seed)
        return _recut(events, lambda: random.randint(1, self.most))


def _recut(events: Iterator[Event], size: Callable[[], int]) -> Iterator[Event]:
    for event in events:
        if isinstance(event, ev.TextDelta | ev.ReasoningDelta):
            for piece in _units(event.delta, size):
                yield replace(event, delta=piece)
        elif isinstance(event, ev.ToolInputDelta):
            for piece in _units(event.input_text_delta, size):
                yield replace(event, input_text_delta=piece)
        else:
            yield event


def _units(text: str, size: Callable[[], int]) -> Iterator[str]:
    units = text.encode("utf-16-le", "surrogatepass")
    start = 0
    while start < len(units):
        end = start + 2 * size()
        yield units[start:end].decode("utf-16-le", "surrogatepass")
        start = end


# Faulty calls -----------------------------------------------------------------------------------------------

_HEADER = re.compile(r"(> *\[!tool +)(\S+)( +\S+)?\](.*)", re.DOTALL)
_JSON_NAME = re.compile(r'\A( +"(?:toolName|tool)": .*,)')
_INPUT = re.compile(r'\A(> *input:|  "(?:parameters|params)":).*')


class duplicate_id(Struct, frozen=True):
    """Gives every call the same id, in every reply."""

    id: str = "call_1"

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream with that id."""
        return _with_lines(_with_id(events, self.id), self._line)

    def _line(self, line: str) -> str:
        line = _HEADER.sub(lambda m: f"{m[1]}{m[2]} {self.id}]{m[4]}", line)
        return _JSON_NAME.sub(lambda m: f'{m[1]}\n  "id": {json.dumps(self.id)},', line)


class missing_id(Struct, frozen=True):
    """Removes the ids of all calls: an id is the empty string, or is not written at all."""

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream without ids."""
        return _with_lines(_with_id(events, ""), lambda line: _HEADER.sub(r"\1\2]\4", line))


class malformed_call(Struct, frozen=True):
    """Breaks the arguments of every call: an input error with broken JSON, or broken YAML or JSON in the text."""

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream with broken calls."""
        return _with_lines(self._broken(events), self._line)

    @staticmethod
    def _broken(events: Iterator[Event]) -> Iterator[Event]:
        written: dict[str, list[str]] = {}
        for event in events:
            if isinstance(event, ev.ToolInputDelta):
                parts = written.setdefault(event.tool_call_id, [])
                if parts:  # one piece behind, so that the last is never sent
                    yield replace(event, input_text_delta=parts[-1])
                parts.append(event.input_text_delta)
            elif isinstance(event, ev.ToolInputAvailable):
                text = "".join(written.get(event.tool_call_id, ["{"])[:-1]) or "{"
                yield ev.ToolInputError(event.tool_call_id, event.tool_name, text, "The arguments are no valid JSON.")
            else:
                yield event

    @staticmethod
    def _line(line: str) -> str:
        return _INPUT.sub(r"\1 {unclosed: [", line)


def _with_id(events: Iterator[Event], call_id: str) -> Iterator[Event]:
    for event in events:
        if hasattr(event, "tool_call_id"):
            changed: Any = replace(event, tool_call_id=call_id)
            yield changed
        else:
            yield event


def _with_lines(events: Iterator[Event], change: Callable[[str], str]) -> Iterator[Event]:
    """Changes whole lines of text. Only lines that may belong to a call are withheld until they are complete."""
    held = ""
    for event in events:
        if isinstance(event, ev.TextDelta):
            held += event.delta
            head, newline, held = held.rpartition("\n") if _may_continue(held) else (held, "", "")
            text = "".join(map(change, (head + newline).splitlines(keepends=True)))
            if text:
                yield replace(event, delta=text)
            continue
        if isinstance(event, ev.TextEnd) and held:
            yield ev.TextDelta(event.id, change(held))
            held = ""
        yield event


def _may_continue(text: str) -> bool:
    """Whether the last line may belong to a callout or a JSON object, and may continue."""
    last = text.rpartition("\n")[2]
    return not last.strip() or last.lstrip().startswith((">", '"'))


# Faulty ends ------------------------------------------------------------------------------------------------


class stall(Struct, frozen=True):
    """Waits for some seconds after ``after`` events."""

    seconds: float
    after: int = 3
    sleep: Callable[[float], None] = time.sleep

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream with the wait in it."""
        yield from islice(events, self.after)
        self.sleep(self.seconds)
        yield from events


class abort(Struct, frozen=True):
    """Aborts the reply after ``after`` events."""

    after: int = 3
    reason: str = "fault"

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream up to there, and an ``abort``."""
        yield from islice(events, self.after)
        yield ev.Abort(reason=self.reason)


class truncate(Struct, frozen=True):
    """Ends the stream after ``after`` events without an end event."""

    after: int = 3

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream up to there."""
        yield from islice(events, self.after)


class disconnect(Struct, frozen=True):
    """Loses the connection after ``after`` events: the stream raises."""

    after: int = 3
    message: str = "The connection to the model was lost."

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream up to there, which then raises `ModelError`."""
        yield from islice(events, self.after)
        raise ModelError(self.message)


# The connection ---------------------------------------------------------------------------------------------


class slow(Struct, frozen=True):
    """Waits for some seconds before each event. With `cut` before it, each piece of a text is an event."""

    seconds: float
    sleep: Callable[[float], None] = time.sleep

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the slow stream."""
        for event in events:
            self.sleep(self.seconds)
            yield event


class cut_bytes(Struct, frozen=True):
    """Sends the stream over a wire as bytes, in pieces of ``size`` bytes, also within characters.

    With ``at``, there is one cut only, after that many bytes.
    """

    size: int = 1
    at: int | None = None
    wire: str = "ui"

    def __post_init__(self) -> None:
        if self.size < 1 or (self.at is not None and self.at < 0):
            raise UsageError(f"A piece has at least 1 byte, and a cut a place, but got {self!r}.")

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream as the reader of the wire understands it."""
        reader = decoder(self.wire)
        if self.at is None:
            for data in _sent(events, self.wire):
                for start in range(0, len(data), self.size):
                    yield from reader.feed(data[start : start + self.size])
        else:
            whole = b"".join(_sent(events, self.wire))
            yield from reader.feed(whole[: self.at])
            yield from reader.feed(whole[self.at :])
        yield from reader.close()


class disconnect_at(Struct, frozen=True):
    """Sends the stream over a wire as bytes, and loses the connection after ``byte`` bytes: the stream raises.

    A stream that is shorter is not changed.
    """

    byte: int
    wire: str = "ui"
    message: str = "The connection to the model was lost."

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream up to there, which then raises `ModelError`."""
        reader, remaining = decoder(self.wire), self.byte
        for data in _sent(events, self.wire):
            yield from reader.feed(data[:remaining])
            if len(data) > remaining:
                raise ModelError(self.message)
            remaining -= len(data)
        yield from reader.close()


def _sent(events: Iterator[Event], wire: str) -> Iterator[bytes]:
    writer = encoder(wire)
    for event in events:
        yield writer.encode(event)
    yield writer.close()
