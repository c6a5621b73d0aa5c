"""What AG-UI changes by patches: the state of the run, and the activities."""

from __future__ import annotations

from collections.abc import Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.errors import WireError
from toolcall_nb.wire.ag_ui.patching import Patched
from toolcall_nb.wire.ag_ui.terms import STATE, chunk, text_of

__all__ = ["Documents"]


class Documents:
    """The state and the activities, as data parts. An activity is small, and is told at each change.

    A state may be large and change often, so its changes are told as transient data, and what they lead to at the end.
    """

    def __init__(self) -> None:
        self._state = Patched(None)
        self._is_told = True
        self._activities: dict[str, Patched] = {}

    def state_snapshot(self, event: Object) -> Iterator[Event]:
        """The state as a whole."""
        self._state, self._is_told = Patched(event.get("snapshot")), True
        yield from chunk(event, f"data-{STATE}", data=self._state.value, id=STATE)

    def state_delta(self, event: Object) -> Iterator[Event]:
        """A change of the state."""
        self._state.apply(event.get("delta"))
        self._is_told = False
        yield ev.Data("state-delta", event["delta"], transient=True)

    def end_run(self) -> Iterator[Event]:
        """The state that the changes have led to."""
        if not self._is_told:
            self._is_told = True
            yield ev.Data(STATE, self._state.value, id=STATE)

    def activity_snapshot(self, event: Object) -> Iterator[Event]:
        """An activity as a whole; with ``replace: false``, only where there is none of the id."""
        message = text_of(event, "messageId")
        if message not in self._activities or event.get("replace") is not False:
            self._activities[message] = Patched(event.get("content"))
        yield self._activity(event, message)

    def activity_delta(self, event: Object) -> Iterator[Event]:
        """A change of an activity."""
        message = text_of(event, "messageId")
        if message not in self._activities:
            raise WireError(f"An ACTIVITY_DELTA is for {message!r:.80}, of which there was no ACTIVITY_SNAPSHOT.")
        self._activities[message].apply(event.get("patch"))
        yield self._activity(event, message)

    def _activity(self, event: Object, message: str) -> Event:
        return ev.Data(text_of(event, "activityType"), self._activities[message].value, id=message)
