"""Faults of a model's stream, on purpose: for tests of whatever reads it.

    model = with_faults(MockModel(), faults.cut(1), faults.duplicate_id())
    Chat(model).send("…")

Each fault is a small frozen value; several are applied in order, the first nearest to the model. Those on ids
and on the written call know the ways of calling: events, and the text dialects as the mock model writes them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models.base import Model, model_name
from toolcall_nb.tools import Tool

__all__ = [
    "Fault",
    "abort",
    "cut",
    "disconnect",
    "duplicate_id",
    "faulty",
    "malformed_call",
    "missing_id",
    "random_cuts",
    "stall",
    "truncate",
    "with_faults",
]


class Fault(Protocol):
    """One fault: events in, spoiled events out."""

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The spoiled stream."""
        ...


def faulty(events: Iterator[Event], faults: Iterable[Fault]) -> Iterator[Event]:
    """A stream with these faults, in order."""
    for fault in faults:
        events = fault.apply(events)
    return events


def with_faults(model: Model, *faults: Fault) -> Model:
    """A model whose every reply has these faults."""
    return _FaultyModel(model, faults)


class _FaultyModel:
    def __init__(self, model: Model, faults: Sequence[Fault]) -> None:
        self._model, self._faults = model, tuple(faults)
        self.name = model_name(model)
        self.dialect: str = getattr(model, "dialect", "native")

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        return faulty(iter(self._model.stream(messages, tools)), self._faults)


# Where the stream is cut ------------------------------------------------------------------------------------


class cut(Struct, frozen=True):
    """Text and inputs come in pieces of ``size`` UTF-16 units; 1 parts the halves of a surrogate pair too."""

    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"A piece has at least 1 unit, not {self.size}.")

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream in such pieces."""
        return _recut(events, lambda: self.size)


class random_cuts(Struct, frozen=True):
    """Text and inputs come in pieces of 1 to ``most`` UTF-16 units, by ``seed``."""

    seed: int = 0
    most: int = 12

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream in such pieces."""
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
    place = 0
    while place < len(units):
        end = place + 2 * size()
        yield units[place:end].decode("utf-16-le", "surrogatepass")
        place = end


# What is wrong with the calls -------------------------------------------------------------------------------

_HEADER = re.compile(r"(> *\[!tool +)(\S+)( +\S+)?\](.*)", re.DOTALL)
_JSON_NAME = re.compile(r'\A( +"(?:toolName|tool)": .*,)')
_INPUT = re.compile(r'\A(> *input:|  "(?:parameters|params)":).*')


class duplicate_id(Struct, frozen=True):
    """Every call has the same id, in every reply."""

    id: str = "call_1"

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream with that id."""
        return _with_lines(_with_id(events, self.id), self._line)

    def _line(self, line: str) -> str:
        line = _HEADER.sub(lambda m: f"{m[1]}{m[2]} {self.id}]{m[4]}", line)
        return _JSON_NAME.sub(lambda m: f'{m[1]}\n  "id": {json.dumps(self.id)},', line)


class missing_id(Struct, frozen=True):
    """No call has an id: it is the empty string, or not written at all."""

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream without ids."""
        return _with_lines(_with_id(events, ""), lambda line: _HEADER.sub(r"\1\2]\4", line))


class malformed_call(Struct, frozen=True):
    """The arguments of every call break off: broken JSON in an input error, or broken YAML or JSON in the text."""

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream with broken calls."""
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
    """Whole lines of text changed; each comes when it is whole, others pass as they come."""
    held = ""
    for event in events:
        if isinstance(event, ev.TextDelta):
            held += event.delta
            head, newline, held = held.rpartition("\n") if _quoting(held) else (held, "", "")
            text = "".join(map(change, (head + newline).splitlines(keepends=True)))
            if text:
                yield replace(event, delta=text)
            continue
        if isinstance(event, ev.TextEnd) and held:
            yield ev.TextDelta(event.id, change(held))
            held = ""
        yield event


def _quoting(text: str) -> bool:
    """Whether the last line may be one of a callout or of a JSON object, and more of it may come."""
    last = text.rpartition("\n")[2]
    return not last.strip() or last.lstrip().startswith((">", '"'))


# What ends it -----------------------------------------------------------------------------------------------


class stall(Struct, frozen=True):
    """Nothing comes for some seconds, after ``after`` events."""

    seconds: float
    after: int = 3
    sleep: Callable[[float], None] = time.sleep

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream with the wait in it."""
        yield from islice(events, self.after)
        self.sleep(self.seconds)
        yield from events


class abort(Struct, frozen=True):
    """The model says that it was stopped, after ``after`` events."""

    after: int = 3
    reason: str = "fault"

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream up to there, and an ``abort``."""
        yield from islice(events, self.after)
        yield ev.Abort(reason=self.reason)


class truncate(Struct, frozen=True):
    """The stream just ends after ``after`` events."""

    after: int = 3

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream up to there."""
        yield from islice(events, self.after)


class disconnect(Struct, frozen=True):
    """The connection is lost after ``after`` events: the stream raises."""

    after: int = 3
    message: str = "The connection to the model was lost."

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """The stream up to there, and then `ModelError`."""
        yield from islice(events, self.after)
        raise ModelError(self.message)
