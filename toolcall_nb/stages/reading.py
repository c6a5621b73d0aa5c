"""Reads updates of tool blocks as events: `from_stages`, and `StageReader` for a live log. It may break rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Json, Object
from toolcall_nb.core.json_text import json_text
from toolcall_nb.errors import WireError
from toolcall_nb.stages.blocks import (
    DEPRECATED,
    Stage,
    UpdateToolBlockParams,
    block_to_dict,
    deprecation_message,
    error_message,
    stage_of,
    well_typed,
)
from toolcall_nb.stages.projecting import ABORTED, DENIED, TAKEN_BACK, UNREADABLE
from toolcall_nb.stages.summaries import image_fields, parse_json

_Update = UpdateToolBlockParams | Mapping[str, Any]


def from_stages(log: Iterable[_Update]) -> list[Event]:
    """Returns the events of the one assistant message that a whole log describes.

    An update without a known stage leaves the stage of its block. A block without a ``start`` begins with its first
    update, by default with the name ``unknown``; a block without an ``end`` is interrupted. ``parameters`` replaces,
    ``parametersChunk`` without it appends, empty ``parameters`` while running change nothing. Unusable updates (no
    object, no id, after the end) are left out, with a diagnostic.

    Raises `WireError` for an update with ``isRunning``: `upgrade` it first.
    """
    reader = StageReader()
    return [event for update in log for event in reader.feed(update)] + reader.close()


class StageReader:
    """Reads a log: `feed` each update, then `close`. Both return events. See `from_stages`."""

    def __init__(self) -> None:
        self._blocks: dict[str, _Reading] = {}
        self._count = 0

    def feed(self, update: _Update) -> list[Event]:
        """Returns the events of one update."""
        first: list[Event] = [] if self._count else [ev.Start()]
        self._count += 1
        mapping: Json = block_to_dict(update) if isinstance(update, UpdateToolBlockParams) else update
        if not isinstance(mapping, Mapping):
            return [*first, self._ignored("is no object")]
        if DEPRECATED in mapping:
            raise WireError(f"Update {self._count}: {deprecation_message(mapping)}")
        fields = well_typed(mapping)
        block_id = fields.get("id", "")
        if not block_id.strip():
            return [*first, self._ignored("has no id")]
        block = self._blocks.setdefault(block_id, _Reading(block_id))
        if block.has_ended:
            return [*first, self._ignored(f"comes after the end of {block_id!r:.100}")]
        return [*first, *block.take(fields)]

    def close(self) -> list[Event]:
        """Returns interruptions for blocks that are still open, and the end of the message."""
        stopped = [ev.ToolInterrupted(block.id) for block in self._blocks.values() if not block.has_ended]
        return [*stopped, ev.Finish(finish_reason="stop")] if self._count else []

    def _ignored(self, why: str) -> Event:
        return ev.Diagnostic(f"Update {self._count} of the log {why}.", "It was ignored.")


class _Reading:
    """One block whose updates are being read."""

    def __init__(self, block_id: str) -> None:
        self.id = block_id
        self.name = ""
        self.stage = Stage.START
        self.has_ended = False
        self._written: list[str] = []
        self._emitted: tuple[str, str] | None = None  # the name and written input of the last complete input
        self._result: str | None = None

    def take(self, fields: Object) -> Iterator[Event]:
        """Yields the events of an update with these fields."""
        self.stage = stage_of(fields) or self.stage
        name = fields.get("name", "")
        name = name if name.strip() else self.name or "unknown"
        if name != self.name:  # the call begins, or begins anew because it turns out to have another name
            self.name = name
            if self._emitted is None:
                yield ev.ToolInputStart(self.id, name)
                yield from self._delta("".join(self._written))
        parameters, chunk = fields.get("parameters"), fields.get("parametersChunk", "")
        if parameters is None:
            self._written.append(chunk)
            yield from self._delta(chunk)
        elif parameters or self.stage is not Stage.RUNNING:
            yield from self._replace("".join(self._written), parameters)
        result, short = fields.get("result"), fields.get("shortResult")
        if self.stage is Stage.RUNNING:
            yield from self._available()
        if self.stage is Stage.END:
            self.has_ended = True
            yield from self._ended(fields)
        elif result is not None:
            self._result = result
            yield ev.ToolOutputAvailable(self.id, _output(result), preliminary=True)
        elif short:
            yield ev.Status(short)

    def _replace(self, before: str, after: str) -> Iterator[Event]:
        self._written = [after]
        if after.startswith(before):
            yield from self._delta(after[len(before) :])
        elif self._streams:
            yield ev.ToolInputStart(self.id, self.name)
            yield from self._delta(after)

    def _delta(self, text: str) -> Iterator[Event]:
        if text and self._streams:
            yield ev.ToolInputDelta(self.id, text)

    @property
    def _streams(self) -> bool:
        """Whether the input is still emitted as text; once it is running, it is emitted as a value."""
        return self._emitted is None and self.stage is not Stage.RUNNING

    def _available(self) -> Iterator[Event]:
        """Emits the input as a value, if it differs from the last one."""
        written = "".join(self._written)
        self._written = [written]
        if self._emitted != (self.name, written):
            self._emitted = (self.name, written)
            yield ev.ToolInputAvailable(self.id, self.name, _input(written))

    def _ended(self, fields: Object) -> Iterator[Event]:
        error = error_message(fields.get("error"))
        if error is None and fields.get("success") is not False:
            yield from self._available()
            result = fields.get("result", self._result)
            output = None if result is None else _output(result)
            yield ev.ToolOutputAvailable(self.id, output, **image_fields(fields.get("images")))
        else:
            yield from self._failed(fields.get("result", "") if error is None else error)

    def _failed(self, error: str) -> Iterator[Event]:
        if error == TAKEN_BACK:
            yield ev.ToolRetracted(self.id)
            return
        if error == ABORTED:
            if self._emitted is not None:
                yield from self._available()
            yield ev.ToolInterrupted(self.id)
            return
        if self._emitted is None and error.startswith(UNREADABLE):
            yield ev.ToolInputError(self.id, self.name, _input("".join(self._written)), error)
            return
        yield from self._available()
        if error != DENIED and not error.startswith(f"{DENIED}: "):
            yield ev.ToolOutputError(self.id, error)
            return
        if reason := error[len(DENIED) + 2 :]:
            approval_id = f"approval-{self.id}"
            yield ev.ToolApprovalRequest(approval_id, self.id)
            yield ev.ToolApprovalResponse(approval_id, False, reason)
        yield ev.ToolOutputDenied(self.id)


def _input(written: str) -> Json:
    """Returns the written input as a value: no arguments for an empty text, the text itself if it is not JSON."""
    if not written.strip():
        return {}
    value = parse_json(written)
    return written if value is MISSING else value


def _output(result: str) -> Json:
    """Returns the output of a result: a value if the text is exactly how its JSON is written, else the text."""
    value = parse_json(result)
    return result if isinstance(value, (str, ev.Missing)) or json_text(value) != result else value
