"""Reads the state of a run and its activities, which AG-UI sends as snapshots and JSON patches (RFC 6902).

`StateReader` emits them as data parts; `PatchedDocument` applies the patches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Json, Object
from toolcall_nb.core.json_text import json_text
from toolcall_nb.errors import WireError
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


_MAX_COPIED = 1_000_000
"""The limit for all copies within one document, in characters of JSON: each copy may double the document."""


class PatchedDocument:
    """A JSON document that is changed by patches. `apply` makes a new ``value``; earlier values do not change."""

    def __init__(self, value: Json) -> None:
        self.value = value
        self._copied = 0

    def apply(self, operations: Any) -> None:
        """Applies all operations, or none: raises `WireError` if one is malformed, fails, or copies too much."""
        value = self.value
        try:
            for operation in operations:
                value = self._one(value, operation)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise WireError(f"A JSON patch cannot be applied ({error}): {operations!r:.200}") from None
        self.value = value

    def _one(self, value: Json, operation: Mapping[str, Any]) -> Json:
        path = _path(operation["path"])
        match operation["op"]:
            case "add":
                return _changed(value, path, operation["value"], is_new=True)
            case "replace":
                return _changed(value, path, operation["value"], is_new=False)
            case "remove":
                return _removed(value, path)
            case "move":
                source = _path(operation["from"])
                if path[: len(source)] == source and path != source:
                    raise ValueError("a value cannot be moved into itself")
                return _changed(_removed(value, source), path, _at(value, source), is_new=True)
            case "copy":
                source_value = _at(value, _path(operation["from"]))
                self._copied += len(json_text(source_value))
                if self._copied > _MAX_COPIED:
                    raise ValueError("it copies too much")
                return _changed(value, path, source_value, is_new=True)
            case "test" if json_text(_at(value, path)) == json_text(operation["value"]):
                return value
            case "test":
                raise ValueError("a test failed")
            case other:
                raise ValueError(f"there is no operation {other!r}")


def _path(pointer: str) -> list[str]:
    """Returns the keys of a JSON pointer (RFC 6901)."""
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer")
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def _at(value: Json, path: list[str]) -> Json:
    for key in path:
        value = value[_index(value, key)] if isinstance(value, list) else value[key]
    return value


def _index(items: list[Any], key: str, is_new: bool = False) -> int:
    if is_new and key == "-":
        return len(items)
    index = int(key) if key.isdecimal() else -1
    if not 0 <= index < len(items) + is_new:
        raise ValueError(f"the list has no place {key!r}")
    return index


def _changed(value: Json, path: list[str], new: Json, *, is_new: bool) -> Json:
    """Returns ``value`` with ``new`` at the path. Only the containers along the path are copied."""
    if not path:
        return new
    parents = [value]
    for key in path[:-1]:
        parents.append(_at(parents[-1], [key]))
    for parent, key in zip(reversed(parents), reversed(path), strict=True):
        new = _with(parent, key, new, is_new)
        is_new = False
    return new


def _with(parent: Json, key: str, new: Json, is_new: bool) -> Json:
    if isinstance(parent, list):
        index = _index(parent, key, is_new)
        return [*parent[:index], new, *parent[index + (not is_new) :]]
    if not is_new and key not in parent:
        raise ValueError(f"there is no {key!r}")
    return {**parent, key: new}


def _removed(value: Json, path: list[str]) -> Json:
    if not path:
        return None
    parent = _at(value, path[:-1])
    if isinstance(parent, list):
        index = _index(parent, path[-1])
        remaining: Json = [*parent[:index], *parent[index + 1 :]]
    else:
        remaining = {key: item for key, item in parent.items() if key != path[-1]}
        if len(remaining) == len(parent):
            raise ValueError(f"there is no {path[-1]!r}")
    return _changed(value, path[:-1], remaining, is_new=False)
