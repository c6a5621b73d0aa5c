"""Checks a log of updates: `validate` lists every rule of seed 002 that it breaks, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import Json
from toolcall_nb.stages.blocks import DEPRECATED, FIELD_TYPES, Stage, UpdateToolBlockParams, block_to_dict, stage_of

_REQUIRED = ("id", "name", "parameters")

RULES: Mapping[str, str] = {
    "object": "An update is an object.",
    "required": "Each update has a stage, an id, a name and parameters.",
    "type": "Each field holds what its type says.",
    "stage": "A stage is start, streaming, running or end.",
    "deprecated": "No update has the field isRunning.",
    "begins-with-start": "An execution always begins with its start.",
    "one-start": "An execution has exactly one start.",
    "one-end": "An execution has exactly one end.",
    "nothing-after-end": "An execution always ends with its end.",
    "order": "Updates come in the order of execution: no timestamp is before an earlier one.",
    "typical": "parametersChunk is typical while streaming, result at a good end, error at a bad one.",
}
"""The rules by name. The last is only about what is typical, and is checked on request."""


class BrokenRule(Struct, frozen=True):
    """A rule that the update ``log[position]`` breaks, and a sentence about it."""

    position: int
    rule: str
    message: str


def validate(log: Iterable[UpdateToolBlockParams | Mapping[str, Any]], *, typical: bool = False) -> list[BrokenRule]:
    """Returns every rule that the log breaks, by position. A missing end is reported at the block's last update.

    ``typical`` also reports fields at another stage than the typical one. Never raises.
    """
    updates = [block_to_dict(update) if isinstance(update, UpdateToolBlockParams) else update for update in log]
    check = _Check()
    for position, update in enumerate(updates):
        check.update(position, update, typical)
    check.close()
    return sorted(check.broken, key=lambda rule: rule.position)


class _Check:
    """The state of the check: which executions have begun and ended."""

    def __init__(self) -> None:
        self.broken: list[BrokenRule] = []
        self._first: dict[str, tuple[int, Stage | None]] = {}
        self._last: dict[str, int] = {}
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._time: float = float("-inf")

    def update(self, position: int, update: Json, typical: bool) -> None:
        if not isinstance(update, Mapping):
            return self._add(position, "object", f"an update is an object, but this is {update!r:.100}")
        for rule, message in (*_missing(update), *_ill_typed(update), *_atypical(update, typical)):
            self._add(position, rule, message)
        time = update.get("timestamp")
        if isinstance(time, int | float) and not isinstance(time, bool):
            if time < self._time:
                self._add(position, "order", f"the timestamp {time} is before {self._time}, which came earlier")
            self._time = max(self._time, time)
        block_id, stage = update.get("id"), stage_of(update)
        if isinstance(block_id, str) and block_id.strip():
            self._step(position, block_id, stage)

    def close(self) -> None:
        """Reports starts and ends that never came."""
        for block_id, (position, stage) in self._first.items():
            which = f"{block_id!r:.100}"
            if block_id not in self._started:
                self._add(position, "one-start", f"{which} never starts")
            elif stage not in (Stage.START, None):
                self._add(position, "begins-with-start", f"{which} begins with {str(stage)!r}, and starts only later")
            if block_id not in self._ended:
                self._add(self._last[block_id], "one-end", f"{which} never ends")

    def _add(self, position: int, rule: str, message: str) -> None:
        self.broken.append(BrokenRule(position, rule, message))

    def _step(self, position: int, block_id: str, stage: Stage | None) -> None:
        self._first.setdefault(block_id, (position, stage))
        self._last[block_id] = position
        which = f"{block_id!r:.100}"
        if stage is Stage.START and block_id in self._started:
            self._add(position, "one-start", f"{which} has started before")
        elif stage is Stage.END and block_id in self._ended:
            self._add(position, "one-end", f"{which} has ended before")
        elif block_id in self._ended:
            self._add(position, "nothing-after-end", f"{which} has ended before")
        if stage is Stage.START:
            self._started.add(block_id)
        elif stage is Stage.END:
            self._ended.add(block_id)


_Broken: TypeAlias = Iterator[tuple[str, str]]
"""Names of rules, each with a sentence about what is wrong."""


def _missing(update: Mapping[str, Any]) -> _Broken:
    for name in ("stage", *_REQUIRED):
        if name not in update:
            yield "required", f"the field {name!r} is missing"
        elif name in ("id", "name") and isinstance(update[name], str) and not update[name].strip():
            yield "required", f"the field {name!r} is empty"


def _ill_typed(update: Mapping[str, Any]) -> _Broken:
    stage = update.get("stage")
    if "stage" in update and stage_of(update) is None:
        yield "stage", f"there is no stage {stage!r:.100}; the stages are {', '.join(Stage)}"
    for name, kind in FIELD_TYPES.items():
        if name in update and not isinstance(update[name], kind):
            wanted = _KINDS.get(name, "text")
            yield "type", f"the field {name!r} is {wanted}, but here it is {update[name]!r:.100}"
    images = update.get("images")
    for image in images if isinstance(images, (list, tuple)) else ():
        has_data = isinstance(image, Mapping) and isinstance(image.get("data"), str)
        if not has_data or not isinstance(image.get("mediaType", ""), str):
            yield "type", f"an image is an object with data and perhaps a mediaType, but here it is {image!r:.100}"
    if DEPRECATED in update:
        yield "deprecated", f"the field {DEPRECATED!r} is there, which 'stage' has replaced"


_KINDS = {"success": "true or false", "error": "text or an error object", "images": "a list"}


def _atypical(update: Mapping[str, Any], typical: bool) -> _Broken:
    """Reports fields that are not typical of the stage. Empty ones say nothing, and may be anywhere."""
    stage = stage_of(update)
    if not typical or stage is None:
        return
    is_bad = bool(update.get("error")) or update.get("success") is False
    if update.get("parametersChunk") and stage is not Stage.STREAMING:
        yield "typical", f"parametersChunk is typical of 'streaming', but this is {stage.value!r}"
    if update.get("result") and (stage is not Stage.END or is_bad):
        where = "of a failure" if stage is Stage.END else f"at {stage.value!r}"
        yield "typical", f"result is typical of a successful 'end', but this is the one {where}"
    if update.get("error") and stage is not Stage.END:
        yield "typical", f"error is typical of an 'end' that failed, but this is {stage.value!r}"
