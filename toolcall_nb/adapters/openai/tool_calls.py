"""`ToolPieces` puts together the pieces of tool calls in chat streams, however a provider numbers them.

OpenAI gives each call an ``index``, and its id and name only with the first piece. Other providers send the id or the
name with each piece, another id with each piece, no index, no id, one index for all calls, the arguments in one piece
or as an object, or a name in several pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import get, nonempty, object_fields


class _Key(Struct, eq=False):
    """Identifies a call in the message. ``is_text``: the written text is the input itself, not its JSON."""

    id: str | None
    is_text: bool


class ToolPieces:
    """Reads the entries of ``tool_calls`` into a message."""

    def __init__(self, message: Assembler) -> None:
        self._message = message
        self._texts: list[_Key] = []
        self._at: dict[Any, _Key] = {}  # the latest call at each index
        self._by_id: dict[str, _Key] = {}

    def take(self, given: Any, is_whole: bool = False) -> list[Event]:
        """Returns the events of one entry of ``tool_calls``. ``is_whole``: it is a complete call."""
        piece = object_fields(given)
        kind = _kind(piece)
        inner = object_fields(piece.get(kind))
        call_id, name, index = nonempty(piece, "id"), nonempty(inner, "name"), get(piece, "index", int)
        written = inner.get("input" if kind == "custom" else "arguments")
        if not (call_id or name or written):
            return []
        about = _about(piece)
        key = None if is_whole else self._continued(index, call_id, name, written)
        if key is not None:
            self._message.grow_name(key, name or "")
            self._message.describe_call(key, **about)
            return self._write(key, written)
        key = self._at[index] = self._at[None] = _Key(call_id, kind == "custom")
        self._texts += [key] if key.is_text else []
        if call_id:
            self._by_id[call_id] = key
        return [*self._message.begin_call(key, call_id, name or "", **about), *self._write(key, written)]

    def close(self) -> list[Event]:
        """Completes the calls whose input is text. Such a text may have been cut off anywhere."""
        ends = (self._message.end_call(key, self._message.written(key), may_be_cut=True) for key in self._texts)
        return [event for events in ends for event in events]

    def _write(self, key: _Key, written: Any) -> list[Event]:
        if isinstance(written, str):
            return self._message.arguments(key, written)
        if written is None:
            return []
        return self._message.end_call(key, dict(written) if isinstance(written, Mapping) else written)

    def _continued(self, index: int | None, call_id: str | None, name: str | None, written: Any) -> _Key | None:
        """Returns the call that a piece continues; None for a new call."""
        same_id = self._by_id.get(call_id) if call_id else None
        if not name:
            latest = self._at.get(index) if index is not None or call_id is None else None
            return latest or same_id
        key = self._at.get(index) if index is not None else same_id
        if key is None or (call_id and key.id and call_id != key.id):
            return None
        if name != self._message.name_of(key) and self._message.has_arguments(key):
            return None
        is_another = isinstance(written, Mapping) or (isinstance(written, str) and written.lstrip().startswith("{"))
        return None if is_another and self._message.is_complete(key) else key


def _kind(piece: Mapping[str, Any]) -> str:
    """Returns which of ``function`` and ``custom`` has content. Some servers send both, one of them empty."""
    filled = {kind: any(object_fields(piece.get(kind)).values()) for kind in ("function", "custom")}
    if filled["custom"] and filled["function"]:
        return "custom" if get(piece, "type") == "custom" else "function"
    return "custom" if filled["custom"] or (not filled["function"] and get(piece, "type") == "custom") else "function"


def _about(piece: Mapping[str, Any]) -> Object:
    """Returns the metadata that Google's route sends with a call: a signature that the next request needs."""
    given = object_fields(piece.get("extra_content"))
    extra = {provider: dict(value) for provider, value in given.items() if isinstance(value, Mapping)}
    return {"provider_metadata": extra} if extra else {}


def executed_tool_events(message: Assembler, given: Any, position: int) -> list[Event]:
    """Returns the events of an entry of ``executed_tools``, which Groq runs and sends again with more fields."""
    tool = object_fields(given)
    key = ("executed", tool.get("index") if isinstance(tool.get("index"), int) else position)
    name = nonempty(tool, "type") or nonempty(tool, "name") or "tool"
    found = message.begin_call(key, None, name, provider_executed=True)
    found += message.arguments(key, get(tool, "arguments", str) or "")
    found += message.end_call(key)
    rest = {field: value for field, value in tool.items() if field not in ("index", "type", "name", "arguments")}
    call_id = message.id_of(key)
    if call_id is None or rest.get("output") is None:
        return found
    output = rest["output"] if len(rest) == 1 else rest
    return found + message.output(call_id, output, provider_executed=True)
