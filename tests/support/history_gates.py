"""Gates: named points at which a model or a tool waits until a test lets it continue, one step at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.tools import Tool

__all__ = ["OVER", "PATIENCE", "GatedModel", "Gates", "only", "until"]

_Rule = TypeVar("_Rule", bound=Callable[..., None])

PATIENCE = 30.0
"""Timeout, in seconds, for things that must happen. No test asserts how soon they happen."""

OVER = object()
"""Ends the reply when it is given to a `GatedModel`."""


def until(happens: Callable[[], bool], what: Callable[[], str]) -> None:
    """Waits until ``happens()`` is true; fails with the message ``what()`` after `PATIENCE` seconds."""
    latest = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < latest, what()
        time.sleep(0.0005)


def only(when: Callable[[Any], object]) -> Callable[[_Rule], _Rule]:
    """Makes a rule do nothing unless ``when`` holds.

    It replaces Hypothesis' ``precondition``, which would make the drawn values depend on the timing of threads.
    """

    def decorate(rule: _Rule) -> _Rule:
        @wraps(rule)
        def guarded(self: Any, **drawn: Any) -> None:
            if when(self):
                rule(self, **drawn)

        return guarded  # type: ignore[return-value]  # the same parameters, by name

    return decorate


class Gates:
    """Threads that wait under a name, each for a value."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Any]] = {}

    def wait(self, name: str) -> Any:
        """Waits for a value and returns it. It waits in short steps, so that an interrupt gets through."""
        given: list[Any] = []
        with self._lock:
            assert name not in self._waiting, f"{name} waits twice"
            self._waiting[name] = given
        try:
            while not given:
                time.sleep(0.0005)
        finally:
            with self._lock:
                del self._waiting[name]
        return given[0]

    def give(self, name: str, thing: Any) -> None:
        """Gives a value to the thread that waits under this name; returns once the thread has taken it."""
        with self._lock:
            given = self._waiting[name]
            given.append(thing)
        until(lambda: self._waiting.get(name) is not given, lambda: f"{name} does not go on")

    @property
    def waiting(self) -> list[str]:
        """The names under which a thread still waits for a value."""
        with self._lock:
            return sorted(name for name, given in self._waiting.items() if not given)


class GatedModel:
    """A model that yields the events given to it; it raises exceptions, and `OVER` ends the reply.

    ``asked`` holds the messages of each request.
    """

    name = "gated"

    def __init__(self, gates: Gates) -> None:
        self.asked: list[tuple[Message, ...]] = []
        self._gates = gates

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        self.asked.append(tuple(messages))
        while (thing := self._gates.wait("model")) is not OVER:
            if isinstance(thing, BaseException):
                raise thing
            yield thing
