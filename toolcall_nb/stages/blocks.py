"""Tool blocks of seed 002 and the updates that change them, as JSON both ways; `apply_update` applies an update.

In JSON the names are camelCase, and optional fields that are not set are absent. Unknown fields are kept in ``extra``
and written back. Tool blocks and updates refuse ``isRunning``, which ``stage`` has replaced; `upgrade` converts old
blocks. A `CommandOutputBlock` is about a command, not about a tool, and keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.core.events import Json, Object
from toolcall_nb.errors import UsageError, WireError

DEPRECATED = "isRunning"
"""The field of tool blocks that ``stage`` has replaced."""


class Stage(StrEnum):
    """A tool block's stage: announced, its parameters written, running, ended."""

    START = "start"
    STREAMING = "streaming"
    RUNNING = "running"
    END = "end"


FIELD_TYPES: Mapping[str, type | tuple[type, ...]] = {
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
"""The types of an update's fields except ``stage``. An ``error`` is text, or an object with a message."""


def well_typed(update: Mapping[str, Any]) -> Object:
    """Returns the fields of the right type. The seed's types have no null, so null is left out."""
    return {
        name: value for name, value in update.items() if name not in FIELD_TYPES or isinstance(value, FIELD_TYPES[name])
    }


def stage_of(update: Mapping[str, Any]) -> Stage | None:
    """Returns the stage of an update or block; None if it is missing or unknown."""
    stage = update.get("stage")
    return Stage(stage) if isinstance(stage, str) and stage in tuple(Stage) else None


def error_message(error: Json) -> str | None:
    """Returns an ``error`` as text: itself, or the message of an error object; None if there is none."""
    if isinstance(error, Mapping):
        message = error.get("message")
        return message if isinstance(message, str) else str(error.get("name") or "")
    return error if isinstance(error, str) else None


def deprecation_message(update: Mapping[str, Any]) -> str:
    """Returns why a tool block with ``isRunning`` is refused, and what to do."""
    which = update.get("id") or update.get("name") or "without an id"
    return (
        f"The tool block {which!r:.100} has the field {DEPRECATED!r}, which 'stage' has replaced. "
        "toolcall_nb.stages.upgrade(block) makes a new block of an old one."
    )


class Image(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An image of a result; ``data`` is base64 text."""

    data: str
    media_type: str | None = None


class NameAndArguments(Struct, frozen=True, kw_only=True):
    """The tool and the arguments of a call; ``arguments`` is the text that the model wrote, usually JSON."""

    name: str
    arguments: str


class _Block(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of all blocks."""

    extra: Object = field(default_factory=dict)


class _Staged(_Block, frozen=True):
    """The base of blocks with a stage, which refuse ``isRunning``."""

    stage: Stage

    def __post_init__(self) -> None:
        if DEPRECATED in self.extra:
            raise UsageError(deprecation_message(self.extra))


class UpdateToolBlockParams(_Staged, frozen=True, kw_only=True):
    """One update of a tool block, in a log.

    ``parameters`` is the whole written input so far, ``parameters_chunk`` the last piece. ``messages`` is a parameter
    of the seed's function and not a part of a log: it is kept, but not used.
    """

    id: str
    parameters: str
    result: str | None = None
    success: bool | None = None
    error: str | None = None
    name: str | None = None
    short_result: str | None = None
    images: tuple[Image, ...] | None = None
    compact_params: str | None = None
    parameters_chunk: str | None = None
    messages: list[Json] | None = None


class ToolBlock(_Staged, frozen=True, kw_only=True):
    """A tool block of a message; ``content`` is the result's text. An ``error`` may be an object with a message."""

    type: ClassVar[str] = "tool"
    content: str
    tool_call: NameAndArguments
    id: str | None = None
    name: str | None = None
    success: bool | None = None
    error: str | Object | None = None
    compact_params: str | None = None
    parameters_chunk: str | None = None


class CommandOutputBlock(_Block, frozen=True, kw_only=True):
    """The output of a command that the user typed. It has ``is_running``."""

    type: ClassVar[str] = "command_output"
    command: str
    output: str
    is_running: bool
    exit_code: int | None


Block: TypeAlias = UpdateToolBlockParams | ToolBlock | CommandOutputBlock

_TYPES: Mapping[str, type[ToolBlock | CommandOutputBlock]] = {cls.type: cls for cls in (ToolBlock, CommandOutputBlock)}
_WIRE_NAMES = {
    cls: frozenset(item.encode_name for item in msgspec.structs.fields(cls)) - {"extra"}
    for cls in (UpdateToolBlockParams, ToolBlock, CommandOutputBlock)
}


def block_to_dict(block: Block) -> Object:
    """Returns the block or update as a mapping with camelCase names; an update has no ``type``."""
    fields: Object = msgspec.to_builtins(block)
    extra = fields.pop("extra", {})
    if "images" in fields:
        fields["images"] = list(fields["images"])
    kind = {} if isinstance(block, UpdateToolBlockParams) else {"type": block.type}
    return {**kind, **{name: value for name, value in extra.items() if name != "type"}, **fields}


def block_from_dict(mapping: Mapping[str, Any]) -> Block:
    """Returns the block of this ``type``, or the update if there is none.

    Raises `WireError` if a field is missing or of another JSON type, if the stage or the type is unknown, or if a
    mapping other than a command's has ``isRunning``.
    """
    if not isinstance(mapping, Mapping):
        raise WireError(f"A tool block is an object, but got {mapping!r:.200}. Check who sends it.")
    kind = mapping.get("type")
    cls: type[Block] | None = UpdateToolBlockParams if kind is None else _TYPES.get(str(kind))
    if cls is None:
        types = ", ".join(map(repr, _TYPES))
        raise WireError(f"There is no block type {kind!r:.100}; the types are {types}, and an update has none.")
    if cls is not CommandOutputBlock and DEPRECATED in mapping:
        raise WireError(deprecation_message(mapping))
    names = _WIRE_NAMES[cls]
    fields = {name: value for name, value in mapping.items() if name in names}
    extra = {name: value for name, value in mapping.items() if name not in names and name != "type"}
    try:
        block: Block = msgspec.convert({**fields, "extra": extra}, cls)
    except msgspec.ValidationError as error:
        raise WireError(f"This is no {cls.__name__}: {error}. It was {dict(mapping)!r:.200}") from None
    return block


def upgrade(block: Mapping[str, Any]) -> Object:
    """Returns a tool block or update with ``stage`` in place of ``isRunning``; every other field is kept.

    An existing stage is kept. Otherwise ``isRunning: true`` becomes ``running``; a block with a result, an error or a
    success is at its ``end``, one with parameters is ``streaming``, and any other is at its ``start``. A block of
    another type than a tool's, like ``command_output``, is returned unchanged.
    """
    if block.get("type", ToolBlock.type) != ToolBlock.type:
        return dict(block)
    kept = {name: value for name, value in block.items() if name != DEPRECATED}
    tool_call = block.get("toolCall")
    arguments = tool_call.get("arguments") if isinstance(tool_call, Mapping) else None
    stage = stage_of(block)
    if stage is None and block.get(DEPRECATED) is True:
        stage = Stage.RUNNING
    elif stage is None and (
        block.get("result") or block.get("content") or block.get("error") or isinstance(block.get("success"), bool)
    ):
        stage = Stage.END
    elif stage is None and (block.get("parameters") or block.get("parametersChunk") or arguments):
        stage = Stage.STREAMING
    return {**kept, "stage": (stage or Stage.START).value}


def apply_update(
    blocks: Sequence[ToolBlock], update: UpdateToolBlockParams | Mapping[str, Any]
) -> tuple[ToolBlock, ...]:
    """Returns the tool blocks of a message after one update, by the rules of the seed's own reducer.

    A new id makes a block, by default with the name ``unknown`` and the stage ``start``. Absent fields and another name
    change nothing. ``parameters`` replaces the written input, ``parametersChunk`` without it appends, and empty
    ``parameters`` while running change nothing.
    """
    mapping = block_to_dict(update) if isinstance(update, UpdateToolBlockParams) else update
    if DEPRECATED in mapping:
        raise WireError(deprecation_message(mapping))
    fields = well_typed(mapping)
    index = next((n for n, block in enumerate(blocks) if block.id == fields.get("id")), len(blocks))
    if index < len(blocks):
        block = blocks[index]
    else:
        name = fields.get("name") or "unknown"
        tool_call = NameAndArguments(name=name, arguments="")
        block = ToolBlock(stage=Stage.START, content="", tool_call=tool_call, id=fields.get("id"), name=name)
    return (*blocks[:index], _updated(block, fields), *blocks[index + 1 :])


def _updated(block: ToolBlock, fields: Object) -> ToolBlock:
    stage = stage_of(fields) or block.stage
    changes = {name: fields[wire] for name, wire in _COPIED if fields.get(wire) is not None}
    written, parameters, chunk = block.tool_call.arguments, fields.get("parameters"), fields.get("parametersChunk")
    if isinstance(parameters, str):
        written = parameters if parameters or stage is not Stage.RUNNING else written
    elif isinstance(chunk, str):
        written += chunk
    tool_call = replace(block.tool_call, arguments=written)
    others = {name: value for name, value in fields.items() if name not in _NAMED and value is not None}
    return replace(block, stage=stage, tool_call=tool_call, extra={**block.extra, **others}, **changes)


_COPIED = (
    ("content", "result"),
    ("success", "success"),
    ("error", "error"),
    ("compact_params", "compactParams"),
    ("parameters_chunk", "parametersChunk"),
)
_NAMED = {"id", "name", "stage", "parameters", "messages", "type", *(wire for _, wire in _COPIED)}
