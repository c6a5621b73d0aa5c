"""Reads the state of a run and its activities, which AG-UI sends as snapshots and patches: `StateReader`."""

from __future__ import annotations

from collections.abc import Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.errors import WireError
from toolcall_nb.wire.ag_ui.json_patch import PatchedDocument
from toolcall_nb.wire.ag_ui.terms import STATE, chunk_events, text_field


class StateReader:
    """Emits the state and the activities as data parts.

    An activity is small and is emitted whole at each change. A state may be large and change often, so its changes are
    emitted as transient data, and the resulting state once at the end of the run.
    """

    def __init__(self) -> None:
        self._state = PatchedDocument(None)
        self._is_emitted = True
        self._activities: dict[str, PatchedDocument] = {}

    def state_snapshot(self, event: Object) -> Iterator[Event]:
        """Yields the whole state."""
        self._state, self._is_emitted = PatchedDocument(event.get("snapshot")), True
        yield from chunk_events(event, f"data-{STATE}", data=self._state.value, id=STATE)

    def state_delta(self, event: Object) -> Iterator[Event]:
        """Yields a change of the state."""
        self._state.apply(event.get("delta"))
        self._is_emitted = False
        yield ev.Data("state-delta", event["delta"], transient=True)

    def end_run(self) -> Iterator[Event]:
        """Yields the state after its changes, if it was not emitted yet."""
        if not self._is_emitted:
            self._is_emitted = True
            yield ev.Data(STATE, self._state.value, id=STATE)

    def activity_snapshot(self, event: Object) -> Iterator[Event]:
        """Yields a whole activity. With ``replace: false`` an existing activity of the same id stays."""
        message = text_field(event, "messageId")
        if message not in self._activities or event.get("replace") is not False:
            self._activities[message] = PatchedDocument(event.get("content"))
        yield self._activity(event, message)

    def activity_delta(self, event: Object) -> Iterator[Event]:
        """Yields an activity after a change."""
        message = text_field(event, "messageId")
        if message not in self._activities:
            raise WireError(f"An ACTIVITY_DELTA is for {message!r:.80}, of which there was no ACTIVITY_SNAPSHOT.")
        self._activities[message].apply(event.get("patch"))
        yield self._activity(event, message)

    def _activity(self, event: Object, message: str) -> Event:
        return ev.Data(text_field(event, "activityType"), self._activities[message].value, id=message)
