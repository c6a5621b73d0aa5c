"""Chooses tool calls by name, state, text and duration: `CallFilter`."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from toolcall_nb.core.call_states import STATE_WORDS, State
from toolcall_nb.core.text_search import TextPattern, call_texts
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.errors import UsageError

_CALLED = frozenset({State.INPUT_STREAMING, State.INPUT_AVAILABLE})
_STATES: dict[str, frozenset[State]] = {
    **{state.value: frozenset({state}) for state in State},
    **{word.lower(): frozenset({state}) for state, word in STATE_WORDS.items()},
    "called": _CALLED,
}
"""The states by their names, and by the words that a card shows."""


class CallFilter(Struct, frozen=True):
    """The conditions that a call has to meet, all of them; None is no condition. `call_filter` makes one."""

    names: frozenset[str] | None = None
    states: frozenset[State] | None = None
    text: TextPattern | None = None
    min_seconds: float | None = None

    def __call__(self, call: ToolCall) -> bool:
        """Whether the call meets them. A call whose duration is not known is never long enough."""
        if self.names is not None and call.name not in self.names:
            return False
        if self.states is not None and call.state not in self.states:
            return False
        if self.min_seconds is not None and (call.seconds is None or call.seconds < self.min_seconds):
            return False
        pattern = self.text
        return pattern is None or any(pattern.find(each.text) is not None for each in call_texts(call))


def call_filter(
    *,
    name: str | Collection[str] | None = None,
    state: str | Collection[str] | None = None,
    text: str | None = None,
    min_seconds: float | None = None,
) -> CallFilter:
    """Returns a filter. ``name`` and ``state`` may be several. Raises `UsageError` for a state that does not exist."""
    return CallFilter(
        None if name is None else frozenset([name] if isinstance(name, str) else name),
        None if state is None else frozenset().union(*map(_states, [state] if isinstance(state, str) else state)),
        None if text is None else TextPattern(text),
        min_seconds,
    )


def _states(name: str) -> frozenset[State]:
    known = _STATES.get(name.lower()) if isinstance(name, str) else None
    if known is None:
        words = ", ".join(word.lower() for word in STATE_WORDS.values())
        raise UsageError(f"There is no state {name!r}. The states are {words}, called; or {', '.join(State)}.")
    return known
