"""The pieces of tool calls in OpenAI's chat streams, put together whichever way a provider numbers them.

OpenAI gives each call an ``index``, and its id and name with the first piece alone. Seen of others: the id or the
name with each piece, another id with each piece, no index, no id, one index for all calls, the arguments in one piece
or as an object, a name in several pieces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from toolcall_nb.adapters.assembling import Assembler
from toolcall_nb.adapters.openai.parts import mapped, nonempty
from toolcall_nb.adapters.plain import get
from toolcall_nb.core.events import Event, Object

__all__ = ["ToolPieces", "executed", "old_call"]


class _Known(Struct):
    """A call that has begun. ``is_text``: what is written is the input, not its JSON."""

    key: Any
    id: str | None
    name: str
    is_text: bool
    written: list[str] = field(default_factory=list)
    is_whole: bool = False

    def is_complete(self) -> bool:
        """Whether nothing is missing of its arguments."""
        try:
            return self.is_whole or isinstance(json.loads("".join(self.written)), dict)
        except (ValueError, RecursionError):
            return False


class ToolPieces:
    """Reads what stands in ``tool_calls``, piece by piece, into a message."""

    def __init__(self, message: Assembler) -> None:
        self._message = message
        self._known: list[_Known] = []
        self._at: dict[Any, _Known] = {}  # the latest at each index
        self._by_id: dict[str, _Known] = {}

    def take(self, given: Any, is_whole: bool = False) -> list[Event]:
        """The events of one entry of ``tool_calls``. ``is_whole``: it is a call, and no piece of one."""
        piece = mapped(given)
        kind = _kind(piece)
        inner = mapped(piece.get(kind))
        call_id, name = nonempty(piece, "id"), nonempty(inner, "name")
        written = inner.get("input" if kind == "custom" else "arguments")
        if not (call_id or name or written):
            return []
        call = None if is_whole else self._continued(get(piece, "index", int), call_id, name, written)
        about = _about(piece)
        found: list[Event] = []
        if call is None:
            call = _Known(object(), call_id, name or "", kind == "custom")
            found = self._begin(call, get(piece, "index", int), about)
        else:
            self._message.grow_name(call.key, name or "")
            self._message.describe_call(call.key, **about)
            call.name = self._message.name_of(call.key)
        return found + self._grow(call, written)

    def close(self) -> list[Event]:
        """All calls are complete."""
        inputs = [(call.key, "".join(call.written)) for call in self._known if call.is_text]
        return [event for key, text in inputs for event in self._message.end_call(key, text)]

    def _begin(self, call: _Known, index: int | None, about: Object) -> list[Event]:
        self._known.append(call)
        self._at[index] = self._at[None] = call
        if call.id:
            self._by_id[call.id] = call
        return self._message.begin_call(call.key, call.id, call.name, **about)

    def _grow(self, call: _Known, written: Any) -> list[Event]:
        if written is None or written == "":
            return []
        if isinstance(written, str):
            call.written.append(written)
            return self._message.arguments(call.key, written)
        call.is_whole = True
        return self._message.end_call(call.key, dict(written) if isinstance(written, Mapping) else written)

    def _continued(self, index: int | None, call_id: str | None, name: str | None, written: Any) -> _Known | None:
        """The call that a piece belongs to; None for a new one."""
        same_id = self._by_id.get(call_id) if call_id else None
        if not name:
            latest = self._at.get(index) if index is not None or call_id is None else None
            return latest or same_id
        call = self._at.get(index) if index is not None else same_id
        if call is None or (call_id and call.id and call_id != call.id):
            return None
        if name != call.name and (call.written or call.is_whole):
            return None
        is_another = isinstance(written, Mapping) or (isinstance(written, str) and written.lstrip().startswith("{"))
        return None if is_another and call.is_complete() else call


def _kind(piece: Mapping[str, Any]) -> str:
    """Whose fields say something: ``function`` or ``custom``. Some servers send both, one of them empty."""
    told = {kind: any(mapped(piece.get(kind)).values()) for kind in ("function", "custom")}
    if told["custom"] and told["function"]:
        return "custom" if get(piece, "type") == "custom" else "function"
    return "custom" if told["custom"] or (not told["function"] and get(piece, "type") == "custom") else "function"


def _about(piece: Mapping[str, Any]) -> Object:
    """What Google's own route says of a call, by provider: a signature that the next request needs."""
    given = mapped(piece.get("extra_content"))
    extra = {provider: dict(value) for provider, value in given.items() if isinstance(value, Mapping)}
    return {"provider_metadata": extra} if extra else {}


def old_call(given: Any) -> Object:
    """The ``function_call`` of 2023's API, one for a message, as a piece of a tool call."""
    return {"index": -1, "function": mapped(given)}


def executed(message: Assembler, given: Any, position: int) -> list[Event]:
    """An entry of ``executed_tools``: what Groq's systems have run themselves, told again as more is known."""
    tool = mapped(given)
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
