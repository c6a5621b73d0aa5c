"""Tool blocks and the updates that make them: the shapes of seed 002, and JSON both ways.

On the wire the names are camelCase and an optional field that is not set is not there. Fields that a sender adds are
kept in ``extra`` and written back. ``isRunning`` is none of them: ``stage`` has taken its place in tool blocks and in
their updates. A `CommandOutputBlock` is about a command, not about a tool, and keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.core.events import Json, Object
from toolcall_nb.errors import UsageError, WireError
from toolcall_nb.stages.fields import DEPRECATED, Stage, refusal, stage_of, well_typed

__all__ = [
    "Block",
    "CommandOutputBlock",
    "Image",
    "NameAndArguments",
    "ToolBlock",
    "UpdateToolBlockParams",
    "apply_update",
    "from_dict",
    "to_dict",
    "upgrade",
]


class Image(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A picture of a result; ``data`` is base64 text."""

    data: str
    media_type: str | None = None


class NameAndArguments(Struct, frozen=True, kw_only=True):
    """What was called, and with what: ``arguments`` is the text that the model wrote, usually JSON."""

    name: str
    arguments: str


class _Block(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What all shapes share."""

    extra: Object = field(default_factory=dict)


class _Staged(_Block, frozen=True):
    """A shape that has a stage, and so no ``isRunning``."""

    stage: Stage

    def __post_init__(self) -> None:
        if DEPRECATED in self.extra:
            raise UsageError(refusal(self.extra))


class UpdateToolBlockParams(_Staged, frozen=True, kw_only=True):
    """One update of a tool block, as a log holds them.

    ``parameters`` is all of the written input so far, ``parameters_chunk`` what came last. ``messages``, which the
    seed's function is called with, is no part of a log: it is taken and kept, and never needed.
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
    """A tool block of a message: ``content`` is the result's text. An ``error`` may be an object with a message."""

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
    """What a command that the user typed has printed; ``is_running`` belongs here."""

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


def to_dict(block: Block) -> Object:
    """The block or update as a mapping with the wire's names; an update has no ``type``."""
    fields: Object = msgspec.to_builtins(block)
    extra = fields.pop("extra", {})
    if "images" in fields:
        fields["images"] = list(fields["images"])
    kind = {} if isinstance(block, UpdateToolBlockParams) else {"type": block.type}
    return {**kind, **{name: value for name, value in extra.items() if name != "type"}, **fields}


def from_dict(mapping: Mapping[str, Any]) -> Block:
    """The block of its ``type``, or without one the update, as it came from a wire.

    Raises `WireError` where a field is missing or of another JSON type, the stage or the type is unknown, or
    ``isRunning`` is there and the mapping is not a command's.
    """
    if not isinstance(mapping, Mapping):
        raise WireError(f"A tool block is an object, but got {mapping!r:.200}. Check who sends it.")
    kind = mapping.get("type")
    cls: type[Block] | None = UpdateToolBlockParams if kind is None else _TYPES.get(str(kind))
    if cls is None:
        known = ", ".join(map(repr, _TYPES))
        raise WireError(f"There is no block type {kind!r:.100}; the types are {known}, and an update has none.")
    if cls is not CommandOutputBlock and DEPRECATED in mapping:
        raise WireError(refusal(mapping))
    names = _WIRE_NAMES[cls]
    fields = {name: value for name, value in mapping.items() if name in names}
    extra = {name: value for name, value in mapping.items() if name not in names and name != "type"}
    try:
        block: Block = msgspec.convert({**fields, "extra": extra}, cls)
    except msgspec.ValidationError as error:
        raise WireError(f"This is no {cls.__name__}: {error}. It was {dict(mapping)!r:.200}") from None
    return block


# Old blocks to new ones -------------------------------------------------------------------------------------


def upgrade(block: Mapping[str, Any]) -> Object:
    """A tool block or update with ``stage`` in place of ``isRunning``; every other field is kept.

    A stage that is there already stands. Otherwise ``isRunning: true`` is ``running``; else a block with a result,
    an error or a success is at its ``end``, one with parameters is ``streaming``, and any other at its ``start``.
    What is about a command (``type: command_output``, or any other type than a tool's) is returned as it is.
    """
    if block.get("type", ToolBlock.type) != ToolBlock.type:
        return dict(block)
    kept = {name: value for name, value in block.items() if name != DEPRECATED}
    return {**kept, "stage": (stage_of(block) or _guessed(block)).value}


def _guessed(block: Mapping[str, Any]) -> Stage:
    called = block.get("toolCall")
    arguments = called.get("arguments") if isinstance(called, Mapping) else None
    if block.get(DEPRECATED) is True:
        return Stage.RUNNING
    if block.get("result") or block.get("content") or block.get("error") or isinstance(block.get("success"), bool):
        return Stage.END
    return Stage.STREAMING if block.get("parameters") or block.get("parametersChunk") or arguments else Stage.START


# Updates to blocks ------------------------------------------------------------------------------------------


def apply_update(
    blocks: Sequence[ToolBlock], update: UpdateToolBlockParams | Mapping[str, Any]
) -> tuple[ToolBlock, ...]:
    """The tool blocks of a message after one update, by the rules of the seed's own reducer.

    An id that is not there makes a block, with the name ``unknown`` and the stage ``start`` where none is given.
    Fields that are not given change nothing, and neither does another name. ``parameters`` replaces what was written,
    ``parametersChunk`` without it appends, and empty ``parameters`` while running change nothing.
    """
    given = to_dict(update) if isinstance(update, UpdateToolBlockParams) else update
    if DEPRECATED in given:
        raise WireError(refusal(given))
    given = well_typed(given)
    place = next((n for n, block in enumerate(blocks) if block.id == given.get("id")), len(blocks))
    old = blocks[place] if place < len(blocks) else _new_block(given)
    return (*blocks[:place], _updated(old, given), *blocks[place + 1 :])


def _new_block(given: Object) -> ToolBlock:
    name = given.get("name") or "unknown"
    called = NameAndArguments(name=name, arguments="")
    return ToolBlock(stage=Stage.START, content="", tool_call=called, id=given.get("id"), name=name)


def _updated(block: ToolBlock, given: Object) -> ToolBlock:
    stage = stage_of(given) or block.stage
    changes = {name: given[wire] for name, wire in _COPIED if given.get(wire) is not None}
    written = _written_after(block.tool_call.arguments, given, stage)
    called = replace(block.tool_call, arguments=written)
    others = {name: value for name, value in given.items() if name not in _NAMED and value is not None}
    return replace(block, stage=stage, tool_call=called, extra={**block.extra, **others}, **changes)


_COPIED = (
    ("content", "result"),
    ("success", "success"),
    ("error", "error"),
    ("compact_params", "compactParams"),
    ("parameters_chunk", "parametersChunk"),
)
_NAMED = {"id", "name", "stage", "parameters", "messages", "type", *(wire for _, wire in _COPIED)}


def _written_after(written: str, given: Mapping[str, Any], stage: Stage) -> str:
    """The written input after an update."""
    parameters, chunk = given.get("parameters"), given.get("parametersChunk")
    if isinstance(parameters, str):
        return written if not parameters and stage is Stage.RUNNING else parameters
    return written + chunk if isinstance(chunk, str) else written
