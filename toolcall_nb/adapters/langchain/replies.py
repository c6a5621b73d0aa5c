"""The replies of LangChain's models that make one message of ours: their content, their calls, what came of those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolcall_nb.adapters.assembling import Assembler
from toolcall_nb.adapters.langchain.messages import blocks_of, content_text, described, file_of
from toolcall_nb.adapters.parts import Sources, custom
from toolcall_nb.adapters.plain import get, json_value, mapping
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Json, Object

__all__ = ["Replies"]

_CALLS = frozenset({"tool_call", "tool_call_chunk", "invalid_tool_call"})
_OF_PROVIDERS = frozenset({"tool_use", "input_json_delta", "function_call", "custom_tool_call"})
"""How a provider wrote the calls that LangChain gives as ``tool_calls``."""


class Replies:
    """Collects the message. A reply is known by its id; one that goes on after its calls were answered is another."""

    def __init__(self) -> None:
        self.message = Assembler()
        self.has_begun = False
        self.ended: set[str] = set()  # the ids of calls that were answered
        self._sources = Sources()
        self._turns: dict[Any, int] = {}  # the open replies
        self._count = 0
        self._keys: dict[str, Any] = {}  # of the calls, by id
        self._askers: dict[str, Any] = {}  # the replies of the calls
        self._order: dict[int, list[Any]] = {}  # the calls of each turn
        self._slots: dict[Any, Any] = {}
        self._running: dict[str, str] = {}  # calls by the run of their tool
        self._waiting: dict[str, tuple[str, Json]] = {}  # calls that no tool took up yet
        self._taken: dict[str, tuple[str, Json]] = {}
        self._usage: dict[int, dict[str, int]] = {}

    def is_open(self, reply: Any) -> bool:
        """Whether more of this reply may come."""
        return reply in self._turns

    def has_call(self, call_id: str) -> bool:
        """Whether this call is of this message."""
        return call_id in self._keys

    def has_ended(self, call_id: str) -> bool:
        """Whether this call was answered."""
        return call_id in self.ended

    # Replies

    def begin(self, reply: Any) -> list[Event]:
        """A reply begins, or goes on."""
        found = self.message.start()
        if reply not in self._turns:
            if self._count:
                found += self.message.other(ev.FinishStep()) + self.message.other(ev.StartStep())
            self._count += 1
            self._turns[reply], self.has_begun = self._count, True
        return found

    def piece(self, message: Mapping[str, Any]) -> list[Event]:
        """A piece of a reply."""
        reply = get(message, "id", str) or next(reversed(self._turns), "")
        found = self.begin(reply)
        turn = self._turns[reply]
        chunks = get(message, "tool_call_chunks", list) or []
        found += self.content(turn, message, with_calls=not chunks)
        for position, chunk in enumerate(chunks):
            found += self.grow_call(turn, position, mapping(chunk))
        self._describe(turn, message, adds=True)
        return found

    def whole(self, message: Mapping[str, Any]) -> list[Event]:
        """A whole reply. Of one whose pieces were told: what they left out."""
        reply = get(message, "id", str) or object()
        was_streamed = self.is_open(reply)
        found = self.begin(reply)
        turn = self._turns[reply]
        calls = [mapping(call) for name in ("tool_calls", "invalid_tool_calls") for call in message.get(name) or ()]
        if not was_streamed:
            found += self.content(turn, message, with_calls=not calls)
        for position, call in enumerate(calls):
            found += self._whole_call(turn, position, call)
        found += [*self.message.end_block(), *self.end_calls(turn)]
        self._describe(turn, message, adds=False)
        return found

    def turn_of(self, reply: Any) -> int:
        """The number of an open reply, from 1."""
        return self._turns[reply]

    def finish(self, reply: str, said: Mapping[str, Any]) -> list[Event]:
        """An open reply is over, and this is what it says of itself."""
        turn = self._turns.get(reply, self._count)
        self._describe(turn, said, adds=False)
        return [*self.message.end_block(), *self.end_calls(turn)]

    def _describe(self, turn: int, message: Mapping[str, Any], adds: bool) -> None:
        known = described(message)
        self.message.reason = known.get("reason", self.message.reason)
        if "model" in known:
            self.message.metadata["model"] = known["model"]
        if "usage" in known:
            before = self._usage.get(turn, {}) if adds else {}
            self._usage[turn] = _added([before, known["usage"]])
            self.message.metadata["usage"] = _added(self._usage.values())

    # Content

    def content(self, turn: int, message: Mapping[str, Any], with_calls: bool) -> list[Event]:
        """The blocks of a message, or of a piece of one."""
        more = mapping(message.get("additional_kwargs"))
        provider = get(message.get("response_metadata"), "model_provider", str) or "langchain"
        found: list[Event] = []
        if thought := get(more, "reasoning_content", str):
            found += self.message.reasoning(thought, (turn, "reasoning"))
        for position, block in enumerate(blocks_of(message.get("content"))):
            if with_calls or block.get("type") not in _CALLS:
                found += self.block(turn, position, block, provider)
        if refusal := get(more, "refusal", str):
            found += self._refused(turn, refusal)
        return found

    def block(self, turn: int, position: int, block: Mapping[str, Any], provider: str = "langchain") -> list[Event]:
        """One block of content, or a piece of one."""
        index = block.get("index", position)
        kind = get(block, "type", str) or "block"
        match kind:
            case "text":
                text = self.message.text(get(block, "text", str) or "", (turn, index))
                return [*text, *self._cited(block)]
            case "reasoning" | "thinking" | "redacted_thinking":
                return self._thought(turn, index, block, provider)
            case "refusal":
                return self._refused(turn, get(block, "refusal", str) or "")
            case "tool_call_chunk":
                return self.grow_call(turn, position, block)
            case "tool_call" | "invalid_tool_call":
                return self._whole_call(turn, position, block)
            case "server_tool_call" | "server_tool_call_chunk" | "server_tool_use":
                return self._server_call(turn, index, block)
        if kind in _OF_PROVIDERS:
            return []
        if kind.endswith("_tool_result"):
            return self._server_result(block)
        return self.message.other(file_of(block) or custom(provider, kind, json_value(block)))

    def _thought(self, turn: int, index: Any, block: Mapping[str, Any], provider: str) -> list[Event]:
        summary = block.get("summary")
        texts = [get(item, "text", str) or "" for item in (summary if isinstance(summary, list) else ())]
        text = get(block, "reasoning", str) or get(block, "thinking", str) or "\n\n".join(texts)
        found = self.message.reasoning(text, (turn, "reasoning", index))
        kept = {**mapping(block.get("extras")), **{name: block.get(name) for name in _KEPT if block.get(name)}}
        return [*found, *(self.message.annotate({provider: json_value(kept)}) if kept else [])]

    def _refused(self, turn: int, text: str) -> list[Event]:
        self.message.reason = "content-filter"
        return self.message.text(text, (turn, "refusal"))

    def _cited(self, block: Mapping[str, Any]) -> list[Event]:
        found: list[Event] = []
        for name in ("annotations", "citations"):
            for citation in get(block, name, list) or ():
                page = self._sources.page(get(citation, "url", str), get(citation, "title", str))
                found += self.message.after_block(page) if page is not None else []
        return found

    # Calls

    def grow_call(self, turn: int, position: int, chunk: Mapping[str, Any]) -> list[Event]:
        """A piece of a call. A new id under an index that is in use begins another call."""
        call_id, name = get(chunk, "id", str) or None, get(chunk, "name", str) or ""
        index = chunk.get("index")
        slot = (turn, position if index is None else index)
        if index is None and call_id is None and self._order.get(turn):
            key = self._order[turn][-1]
        else:
            key = self._slots.get(slot)
            if key is None or self._is_other(key, call_id):
                key = self._slots[slot] = (*slot, len(self._order.get(turn, ())))
        found = self._begin_call(turn, key, call_id, name)
        self.message.grow_name(key, name)
        return [*found, *self.message.arguments(key, get(chunk, "args", str) or "")]

    def _is_other(self, key: Any, call_id: str | None) -> bool:
        return call_id is not None and self.message.id_of(key) not in (None, call_id)

    def _begin_call(self, turn: int, key: Any, call_id: str | None, name: str, **about: Any) -> list[Event]:
        found = self.message.begin_call(key, call_id, name, **about)
        if found:
            own_id = self.message.id_of(key) or ""
            self._order.setdefault(turn, []).append(key)
            self._askers[own_id] = turn
            self._keys[own_id] = key
            if not about:
                self._waiting[own_id] = (name, MISSING)
        return found

    def _whole_call(self, turn: int, position: int, call: Mapping[str, Any]) -> list[Event]:
        call_id, name = get(call, "id", str) or None, get(call, "name", str) or ""
        known = self._order.get(turn, [])
        key = self._keys.get(call_id) if call_id is not None else known[position] if position < len(known) else None
        if key is None or (key not in known):
            key = (turn, "whole", call_id or position)
        found = self._begin_call(turn, key, call_id, name)
        args = call.get("args")
        if isinstance(args, str):
            found += self.message.arguments(key, args) if found else []
            return [*found, *self.message.end_call(key)]
        given = json_value(args) if args is not None else {}
        own_id = self.message.id_of(key) or ""
        if own_id in self._waiting:
            self._waiting[own_id] = (name, given)
        return [*found, *self.message.end_call(key, given)]

    def end_calls(self, turn: int) -> list[Event]:
        """The calls of a reply are complete."""
        return [event for key in self._order.get(turn, ()) for event in self.message.end_call(key)]

    def _server_call(self, turn: int, index: Any, block: Mapping[str, Any]) -> list[Event]:
        key = (turn, "server", index)
        call_id, args = get(block, "id", str), block.get("args", block.get("input"))
        found = self._begin_call(turn, key, call_id, get(block, "name", str) or "", provider_executed=True)
        if isinstance(args, str):
            return [*found, *self.message.arguments(key, args)]
        is_piece = block.get("type") == "server_tool_call_chunk"
        return found if is_piece else [*found, *self.message.end_call(key, json_value(args) if args else {})]

    def _server_result(self, block: Mapping[str, Any]) -> list[Event]:
        call_id = get(block, "tool_call_id", str) or get(block, "tool_use_id", str) or ""
        content = json_value(block.get("output", block.get("content")))
        ends = [*self.message.end_block(), *self.message.end_call(self._keys.get(call_id))]
        self.ended.add(call_id)
        if block.get("status") == "error":
            return [*ends, *self.message.failure(call_id, content_text(content), provider_executed=True)]
        return [*ends, *self.message.output(call_id, content, provider_executed=True)]

    # Tools

    def started(self, run_id: str, name: str, given: Json) -> list[Event]:
        """A tool begins to run: for a call of its name that waits, the one with its input first.

        One that no model asked for is a call of its own, under the id of its run.
        """
        named = [call_id for call_id, (called, _) in self._waiting.items() if called == name]
        equal = [call_id for call_id in named if self._waiting[call_id][1] == given]
        self.has_begun = True
        if named:
            call_id = (equal or named)[0]
            self._running[run_id] = call_id
            self._taken[call_id] = self._waiting.pop(call_id)
            return self.message.end_call(self._keys[call_id])
        key = ("run", run_id)
        found = self.message.start() + self._begin_call(self._count, key, run_id, name)
        own_id = self.message.id_of(key) or run_id
        self._waiting.pop(own_id, None)
        self._running[run_id] = own_id
        return [*found, *self.message.end_call(key, given)]

    def waiting_for(self, action: Mapping[str, Any]) -> str | None:
        """The call that waits with the ``name`` and the ``args`` of an action."""
        wanted = (action.get("name"), action.get("args"))
        return next((call_id for call_id, call in self._waiting.items() if call == wanted), None)

    def run_of(self, run_id: str) -> str | None:
        """The call for which a tool runs."""
        return self._running.get(run_id)

    def release(self, call_id: str) -> None:
        """The tool that was thought to run for this call ran for another one, of the same name."""
        if call_id in self._taken and call_id not in self.ended:
            self._waiting[call_id] = self._taken.pop(call_id)

    def answer(self, call_id: str, message: Mapping[str, Any]) -> list[Event]:
        """What a tool message says of its call. One that nobody asked for, in a history that was cut, begins here."""
        content = message.get("content")
        about: Object = {}
        if message.get("artifact") is not None:
            about["tool_metadata"] = {"artifact": json_value(message["artifact"])}
        if message.get("status") == "error":
            return self.outcome(call_id, ev.ToolOutputError(call_id, content_text(content), **about), message)
        return self.outcome(call_id, ev.ToolOutputAvailable(call_id, json_value(content), **about), message)

    def outcome(self, call_id: str, event: Event, about: Mapping[str, Any]) -> list[Event]:
        """How a call ended. A reply whose calls are answered is over."""
        if call_id in self.ended:
            return []
        self.ended.add(call_id)
        self._waiting.pop(call_id, None)
        if call_id not in self._keys:
            self.has_begun = True
            start = ev.ToolInputStart(call_id, get(about, "name", str) or "")
            return [*self.message.other(start), event]
        asker = self._askers[call_id]
        self._turns = {reply: turn for reply, turn in self._turns.items() if turn != asker}
        return [*self.message.end_call(self._keys[call_id]), *self.message.outcome(call_id, event)]


_KEPT = ("id", "signature", "encrypted_content", "data")


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total
