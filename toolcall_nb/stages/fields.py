"""The four stages, and the fields of an update as they come from anybody: which there are, and of which type."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from toolcall_nb.core.events import Json, Object

__all__ = ["DEPRECATED", "FIELDS", "Stage", "error_text", "refusal", "stage_of", "well_typed"]

DEPRECATED = "isRunning"


class Stage(StrEnum):
    """Where a tool block stands: announced, its parameters written, at work, over."""

    START = "start"
    STREAMING = "streaming"
    RUNNING = "running"
    END = "end"


FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "name": str,
    "parameters": str,
    "parametersChunk": str,
    "compactParams": str,
    "result": str,
    "shortResult": str,
    "success": bool,
    "error": (str, Mapping),
    "images": (list, tuple),
}
"""The fields of an update but its stage, and what each holds. An ``error`` is text, or an object with a message."""


def well_typed(update: Mapping[str, Any]) -> Object:
    """The fields that are what they should be; null is no value, as it is none in the seed's types."""
    return {name: value for name, value in update.items() if name not in FIELDS or isinstance(value, FIELDS[name])}


def stage_of(update: Mapping[str, Any]) -> Stage | None:
    """The stage that the mapping names; None where that is missing or not one of the four."""
    stage = update.get("stage")
    return Stage(stage) if isinstance(stage, str) and stage in tuple(Stage) else None


def error_text(error: Json) -> str | None:
    """The text of an ``error``: itself, or the message of an error object; None where there is none."""
    if isinstance(error, Mapping):
        message = error.get("message")
        return message if isinstance(message, str) else str(error.get("name") or "")
    return error if isinstance(error, str) else None


def refusal(update: Mapping[str, Any]) -> str:
    """Why a tool block with ``isRunning`` is not taken, and what to do."""
    which = update.get("id") or update.get("name") or "without an id"
    return (
        f"The tool block {which!r:.100} has the field {DEPRECATED!r}, which 'stage' has replaced. "
        "toolcall_nb.stages.upgrade(block) makes a new block of an old one."
    )
