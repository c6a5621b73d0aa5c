"""Collects the spans for watches: `begin_watching`, `end_watching` and `missing_instrumentations`.

Everything here is shared by the watches that go on at the same time. The first one sets it up, and the last one
restores what was there before.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from opentelemetry import trace

from toolcall_nb.chat.turn_spans import CONTENT_LISTENERS
from toolcall_nb.watching.instrumentations import Instrumentations
from toolcall_nb.watching.plain_calls import PlainCalls
from toolcall_nb.watching.private_spans import PRIVATE_PROVIDER, listeners
from toolcall_nb.watching.span_store import SpanStore

_lock = threading.RLock()
_stores: list[SpanStore] = []
_setups: list[_Setup] = []
_heard: WeakSet[Any] = WeakSet()
"""The providers that have a processor of ours. It stays, since OpenTelemetry has no way to remove one, and does nothing
while no watch goes on."""


class _Setup:
    """The changes that hold while any watch goes on."""

    def __init__(self) -> None:
        self.instrumentations = Instrumentations(_add_content)
        self._plain_calls = PlainCalls()
        self._has_set_provider = trace._TRACER_PROVIDER is None

    def begin(self) -> None:
        if self._has_set_provider:
            trace._TRACER_PROVIDER = PRIVATE_PROVIDER  # set_tracer_provider works once, and is the user's
        CONTENT_LISTENERS.append(_add_content)
        self._plain_calls.begin()
        self.instrumentations.activate()

    def end(self) -> None:
        self.instrumentations.restore()
        self._plain_calls.end()
        CONTENT_LISTENERS.remove(_add_content)
        if self._has_set_provider and trace._TRACER_PROVIDER is PRIVATE_PROVIDER:
            trace._TRACER_PROVIDER = None


def begin_watching(store: SpanStore, provider: Any = None) -> None:
    """Gives the store all spans that start from now on: private ones, and those of the provider and of the user's."""
    with _lock:
        for each in (provider, trace._TRACER_PROVIDER):
            _hear(each)
        listeners.append(store)
        _stores.append(store)
        if not _setups:
            _setups.append(_Setup())
            _setups[0].begin()


def end_watching(store: SpanStore) -> None:
    """Ends what `begin_watching` began."""
    with _lock:
        _stores.remove(store)
        listeners.remove(store)
        if not _stores:
            _setups.pop().end()


def missing_instrumentations() -> list[str]:
    """Returns a sentence for each client whose requests the watches cannot see, while any watch goes on."""
    with _lock:
        return [text for setup in _setups for text in setup.instrumentations.missing]


def _hear(provider: Any) -> None:
    """Adds a processor to a provider of OpenTelemetry's SDK, once."""
    if provider is not None and hasattr(provider, "add_span_processor") and provider not in _heard:
        _heard.add(provider)
        provider.add_span_processor(_Processor())


def _add_content(span: Any, content: Mapping[str, Any]) -> None:
    for store in tuple(_stores):
        store.add_content(span, content)


class _Processor:
    """Passes the spans of a provider to the watches (opentelemetry.sdk.trace.SpanProcessor)."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Takes a span that has started."""
        for store in tuple(_stores):
            store.span_started(span, trace.get_current_span(parent_context))

    def _on_ending(self, span: Any) -> None:
        """Is called before `on_end`."""

    def on_end(self, span: Any) -> None:
        """Takes a span that has ended."""
        for store in tuple(_stores):
            store.span_ended(span)

    def shutdown(self) -> None:
        """Has nothing to end."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Has nothing to send."""
        return True
