"""`OutputReader` reads the output items of a response, as they grow and when they are complete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import file_event
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.adapters.openai import items
from toolcall_nb.adapters.openai.choice import part_event
from toolcall_nb.adapters.openai.content import TEXTS, cite, text_in
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.sdk_objects import get, nonempty, object_fields

_USED_OF_TEXTS = in_use(kinds=dict.fromkeys((*TEXTS, "refusal"), in_use("text refusal annotations")))
USED_OF_ITEM = in_use(
    kinds={
        "message": in_use("id status phase", content=_USED_OF_TEXTS),
        "reasoning": in_use("id status encrypted_content", summary=_USED_OF_TEXTS, content=_USED_OF_TEXTS),
        "*_output": in_use("id call_id status output result tools outputs results"),
    },
    envelope=True,
)
"""The fields of an item that `OutputReader` uses. Calls and items of other types are kept whole."""


class _ItemState(Struct):
    """The state of an item. ``has_head``: the beginning of its input was written, around text that comes without it."""

    key: Any
    kind: str = ""
    grown: dict[Any, list[str]] = field(default_factory=dict)  # the deltas of its texts, by text
    has_head: bool = False
    commands: int = 0
    is_done: bool = False


class OutputReader:
    """Reads items into ``message``. An item is identified by its ``index`` in the output while it grows.

    Each item is read once: `done` adds what the deltas left out, and a second `done` is ignored.
    """

    def __init__(self, message: Assembler) -> None:
        self.message = message
        self.was_refused = False
        self.awaits_results = False
        self._states: dict[Any, _ItemState] = {}
        self._ids: set[str] = set()
        self._searches: list[str] = []
        self._executed: set[str] = set()  # calls that the provider runs

    def end(self) -> list[Event]:
        """Ends the response. The items of the next one are counted from the beginning."""
        cut = [item.key for item in self._states.values() if item.kind == "custom_tool_call" and not item.is_done]
        self._states.clear()
        ends = (self.message.end_call(key, self.message.written(key), may_be_cut=True) for key in cut)
        texts = [event for events in ends for event in events]
        return [*self.message.end_block(), *texts, *self.message.end_calls()]

    def knows(self, index: Any, item: Mapping[str, Any]) -> bool:
        """Whether an item was read already, by its index or its id."""
        state = self._states.get(index)
        return (state is not None and state.is_done) or nonempty(item, "id") in self._ids

    # Texts

    def cite(self, annotation: Any) -> list[Event]:
        """Adds a source of the open text."""
        return cite(self.message, annotation)

    def grow(self, index: Any, which: tuple[str, Any], delta: Any) -> list[Event]:
        """Adds to a text of an item. ``which`` has its kind and its index.

        The kinds are ``text`` and ``refusal`` of the answer, and ``summary`` and ``content`` of the reasoning.
        """
        if which[0] == "refusal":
            self.was_refused = True
            which = ("text", which[1])
        if not isinstance(delta, str) or not delta:
            return []
        state = self._state(index)
        state.grown.setdefault(which, []).append(delta)
        grow = self.message.text if which[0] == "text" else self.message.thought
        return grow(delta, (state.key, which))

    def _whole(self, index: Any, which: tuple[str, Any], text: str) -> list[Event]:
        """Adds the part of a complete text that its deltas left out."""
        streamed = "".join(self._state(index).grown.get(which, ()))
        return self.grow(index, which, text[len(streamed) :]) if text.startswith(streamed) else []

    # Calls

    def begin(self, index: Any, item: Mapping[str, Any]) -> list[Event]:
        """Begins an item; a call begins at once."""
        state = self._state(index)
        state.kind = get(item, "type", str) or "unknown"
        if not items.is_call_item(state.kind) or self._earlier(item):
            return []
        call_id, name = items.call_id(item), items.call_name(item)
        return self.message.begin_call(state.key, call_id, name, **items.call_fields(item))

    def write(self, index: Any, delta: Any) -> list[Event]:
        """Adds to the JSON text of a call's input."""
        return self.message.arguments(self._state(index).key, delta if isinstance(delta, str) else "")

    def write_within(self, index: Any, head: str, delta: Any) -> list[Event]:
        """Adds to a text within a call's input, whose JSON begins with ``head``."""
        state = self._state(index)
        start, state.has_head = "" if state.has_head else head, True
        return self.write(index, start + json.dumps(delta)[1:-1] if isinstance(delta, str) else start)

    def write_command(self, index: Any) -> list[Event]:
        """Begins the next command of a shell call."""
        state = self._state(index)
        state.commands += 1
        return self.write(index, '", "') if state.commands > 1 else []

    def finish_text(self, index: Any, text: Any, is_json: bool = True) -> list[Event]:
        """Completes a call's input, given as JSON text, or without ``is_json`` as the input itself."""
        key = self._state(index).key
        if not isinstance(text, str):
            return []
        if not is_json:
            return self.finish(index, text)
        if text == self.message.written(key) or not self.message.id_of(key):
            return self.message.end_call(key)
        return [*self.message.rewrite_call(key), *self.message.arguments(key, text), *self.message.end_call(key)]

    def finish(self, index: Any, value: Any) -> list[Event]:
        """Completes a call's input with this value."""
        return self.message.end_call(self._state(index).key, value)

    # Whole items

    def done(self, index: Any, item: Mapping[str, Any]) -> list[Event]:
        """Reads a complete item."""
        state = self._state(index)
        state.kind = get(item, "type", str) or ("message" if "content" in item else "unknown")
        if state.is_done:
            return []
        state.is_done = True
        self._ids.update({item_id} if (item_id := nonempty(item, "id")) else ())
        if state.kind == "message":
            return self._message(index, item)
        if state.kind == "reasoning":
            return self._reasoning(index, state, item)
        if items.is_call_item(state.kind):
            return self._call(index, state, item)
        if items.is_output_item(state.kind) and (events := self._output(state.kind, item)):
            return events
        return self.message.custom("openai", state.kind, item)

    def _message(self, index: Any, item: Mapping[str, Any]) -> list[Event]:
        content = item.get("content")
        parts = list(content) if isinstance(content, list | tuple) else [content] if content else []
        events: list[Event] = []
        for number, part in enumerate(parts):
            events += self._part(index, number, part if isinstance(part, str) else object_fields(part))
        if item_id := nonempty(item, "id"):
            self.message.keep("openai", "itemId", item_id)
        phase = nonempty(item, "phase")
        return events + self._end_block(index, {"openai": {"phase": phase}} if phase else None)

    def _part(self, index: Any, number: int, part: Any) -> list[Event]:
        text = text_in(part)
        if text is None:
            return self.message.other(part_event(part)) if part else []
        self.was_refused = self.was_refused or get(part, "type", str) == "refusal"
        events = self._whole(index, ("text", number), text)
        for annotation in get(part, "annotations", (list, tuple)) or []:
            events += self.cite(annotation)
        return events

    def _reasoning(self, index: Any, state: _ItemState, item: Mapping[str, Any]) -> list[Event]:
        events: list[Event] = []
        for kind in ("summary", "content"):
            for number, part in enumerate(get(item, kind, (list, tuple)) or []):
                events += self._whole(index, (kind, number), text_in(object_fields(part) or part) or "")
        secret = nonempty(item, "encrypted_content")
        if secret and not self._is_open(index):
            events += self.message.reasoning("", (state.key, ("secret", 0)))
            return events + self._end_block(index, {"openai": {"itemId": item.get("id"), "encryptedContent": secret}})
        for number, which in enumerate(which for which in state.grown if which[0] != "text"):
            metadata: Object = {"itemId": item.get("id")}
            metadata |= {"encryptedContent": secret} if secret and number == 0 else {}
            metadata |= {"raw_content": True} if which[0] == "content" else {}
            self.message.annotate_block((state.key, which), {"openai": metadata})
        return events + self._end_block(index, None)

    def _is_open(self, index: Any) -> bool:
        """Whether the open block belongs to this item."""
        key = self.message.open_key
        return isinstance(key, tuple) and key[0] is self._state(index).key

    def _end_block(self, index: Any, metadata: Object | None) -> list[Event]:
        return self.message.end_block(metadata) if self._is_open(index) else []

    def _call(self, index: Any, state: _ItemState, item: Mapping[str, Any]) -> list[Event]:
        if earlier := self._earlier(item):
            return self._end(earlier, item)
        name, call_id = items.call_name(item), items.call_id(item)
        fields = items.call_fields(item)
        events = self.message.begin_call(state.key, call_id, name, **fields)
        events += self.message.rename_call(state.key, call_id) if call_id else []
        self.message.describe_call(state.key, name, **fields)
        text = get(item, "arguments", str)
        if text is None:
            events += self.message.end_call(state.key, items.call_input(item))
        else:
            events += self.finish_text(index, text, state.kind != "custom_tool_call")
        own_id = self.message.id_of(state.key)
        return events + (self._end(own_id, item) if own_id else [])

    def _end(self, own_id: str, item: Mapping[str, Any]) -> list[Event]:
        """Reads the approval request, the error or the output in a call's item."""
        kind, is_executed = item.get("type"), items.is_provider_executed(item)
        self.awaits_results = self.awaits_results or not is_executed
        self._executed.update({own_id} if is_executed else ())
        if kind == "tool_search_call":
            self._searches.append(own_id)
        if kind == "mcp_approval_request":
            server = nonempty(item, "server_label")
            rule = "require_approval" if server else None
            return [ev.ToolApprovalRequest(str(item.get("id") or own_id), own_id, asked_by=server, rule=rule)]
        failure, output = items.call_error(item) if is_executed else None, items.call_output(item)
        if failure is not None:
            if isinstance(error := item.get("error"), Mapping):
                self.message.keep("openai", "error", error)
            return self.message.failure(own_id, failure, provider_executed=True)
        events = [] if output is MISSING else self.message.output(own_id, output, provider_executed=True)
        if kind == "image_generation_call":
            name = nonempty(item, "output_format") or "png"
            media_type = "image/svg+xml" if name == "svg" else f"image/{name}"
            events += self.message.other(file_event(media_type, get(item, "result", str) or None))
        return events

    def _output(self, kind: str, item: Mapping[str, Any]) -> list[Event]:
        """Ends the call that an output item belongs to; returns nothing if the call is unknown or has ended."""
        call_id = items.call_id(item)
        if kind == "tool_search_output" and not nonempty(item, "call_id") and self._searches:
            call_id = self._searches.pop(0)
        if not call_id:
            return []
        event: Any = items.output_event(call_id, item)
        if call_id in self._executed:
            event = replace(event, provider_executed=True)
        return self.message.outcome(call_id, event)

    def _earlier(self, item: Mapping[str, Any]) -> str | None:
        """Returns the id of the call that asked for the approval with which this one ran."""
        request_id = nonempty(item, "approval_request_id")
        return request_id if request_id and self.message.knows(request_id) else None

    def _state(self, index: Any) -> _ItemState:
        if index not in self._states:
            self._states[index] = _ItemState(object())
        return self._states[index]
