"""`OutputReader` reads the output items of a response, as they grow and when they are complete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import file_event
from toolcall_nb.adapters.openai import items
from toolcall_nb.adapters.openai.choice import part_event
from toolcall_nb.adapters.openai.content import citation_event, text_in
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.sdk_objects import get, nonempty, object_fields


class _Item(Struct):
    """The state of an item. ``has_head``: the beginning of its input was written, around text that comes without it."""

    key: Any
    kind: str = ""
    grown: dict[Any, list[str]] = field(default_factory=dict)  # the deltas of its texts, by text
    has_head: bool = False
    commands: int = 0
    is_done: bool = False


class OutputReader:
    """Reads items into ``message``. A ``place`` identifies an item while it grows: its index in the output.

    Each item is read once: `done` adds what the deltas left out, and a second `done` is ignored.
    """

    def __init__(self, message: Assembler) -> None:
        self.message = message
        self.was_refused = False
        self.awaits_results = False
        self._items: dict[Any, _Item] = {}
        self._ids: set[str] = set()
        self._searches: list[str] = []
        self._executed: set[str] = set()  # calls that the provider runs

    def end(self) -> list[Event]:
        """Ends the response. The items of the next one are counted from the beginning."""
        cut = [item.key for item in self._items.values() if item.kind == "custom_tool_call" and not item.is_done]
        self._items.clear()
        ends = (self.message.end_call(key, self.message.written(key), may_be_cut=True) for key in cut)
        texts = [event for events in ends for event in events]
        return [*self.message.end_block(), *texts, *self.message.end_calls()]

    def knows(self, place: Any, item: Mapping[str, Any]) -> bool:
        """Whether an item was read already, by its place or its id."""
        known = self._items.get(place)
        return (known is not None and known.is_done) or nonempty(item, "id") in self._ids

    # Texts

    def text(self, place: Any, part: Any, delta: Any) -> list[Event]:
        """Adds text of the answer."""
        return self._grow(place, ("text", part), delta)

    def refusal(self, place: Any, part: Any, delta: Any) -> list[Event]:
        """Adds text of a refusal."""
        self.was_refused = True
        return self._grow(place, ("text", part), delta)

    def reasoning(self, place: Any, kind: str, part: Any, delta: Any) -> list[Event]:
        """Adds reasoning: of a ``summary``, or the ``content`` itself."""
        return self._grow(place, (kind, part), delta)

    def cite(self, annotation: Any) -> list[Event]:
        """Adds a source of the open text."""
        return self.message.after_block(citation_event(self.message.sources, annotation))

    def _grow(self, place: Any, which: tuple[str, Any], delta: Any) -> list[Event]:
        if not isinstance(delta, str) or not delta:
            return []
        item = self._item(place)
        item.grown.setdefault(which, []).append(delta)
        grow = self.message.text if which[0] == "text" else self.message.thought
        return grow(delta, (item.key, which))

    def _whole(self, place: Any, which: tuple[str, Any], text: str) -> list[Event]:
        """Adds the rest of a complete text, after its deltas."""
        streamed = "".join(self._item(place).grown.get(which, ()))
        return self._grow(place, which, text[len(streamed) :]) if text.startswith(streamed) else []

    # Calls

    def begin(self, place: Any, given: Mapping[str, Any]) -> list[Event]:
        """Begins an item; a call begins at once."""
        item = self._item(place)
        item.kind = get(given, "type", str) or "unknown"
        if not items.is_call_item(item.kind) or self._earlier(given):
            return []
        call_id, name = items.call_id(given), items.call_name(given)
        return self.message.begin_call(item.key, call_id, name, **items.call_fields(given))

    def write(self, place: Any, delta: Any) -> list[Event]:
        """Adds to the JSON text of a call's input."""
        return self.message.arguments(self._item(place).key, delta if isinstance(delta, str) else "")

    def write_within(self, place: Any, head: str, delta: Any) -> list[Event]:
        """Adds to a text within a call's input, whose JSON begins with ``head``."""
        item = self._item(place)
        start, item.has_head = "" if item.has_head else head, True
        return self.write(place, start + json.dumps(delta)[1:-1] if isinstance(delta, str) else start)

    def write_command(self, place: Any) -> list[Event]:
        """Begins the next command of a shell call."""
        item = self._item(place)
        item.commands += 1
        return self.write(place, '", "') if item.commands > 1 else []

    def finish_text(self, place: Any, text: Any, is_json: bool = True) -> list[Event]:
        """Completes a call's input, given as JSON text, or without ``is_json`` as the input itself."""
        key = self._item(place).key
        if not isinstance(text, str):
            return []
        if not is_json:
            return self.finish(place, text)
        if text == self.message.written(key) or not self.message.id_of(key):
            return self.message.end_call(key)
        return [*self.message.rewrite_call(key), *self.message.arguments(key, text), *self.message.end_call(key)]

    def finish(self, place: Any, value: Any) -> list[Event]:
        """Completes a call's input with this value."""
        return self.message.end_call(self._item(place).key, value)

    # Whole items

    def done(self, place: Any, given: Mapping[str, Any]) -> list[Event]:
        """Reads a complete item."""
        item = self._item(place)
        item.kind = get(given, "type", str) or ("message" if "content" in given else "unknown")
        if item.is_done:
            return []
        item.is_done = True
        self._ids.update({item_id} if (item_id := nonempty(given, "id")) else ())
        if item.kind == "message":
            return self._message(place, given)
        if item.kind == "reasoning":
            return self._reasoning(place, item, given)
        if items.is_call_item(item.kind):
            return self._call(place, item, given)
        if items.is_output_item(item.kind) and (found := self._output(item.kind, given)):
            return found
        return self.message.custom("openai", item.kind, given)

    def _message(self, place: Any, given: Mapping[str, Any]) -> list[Event]:
        content = given.get("content")
        parts = list(content) if isinstance(content, list | tuple) else [content] if content else []
        found: list[Event] = []
        for number, each in enumerate(parts):
            found += self._part(place, number, each if isinstance(each, str) else object_fields(each))
        phase = nonempty(given, "phase")
        return found + self._end_block(place, {"openai": {"phase": phase}} if phase else None)

    def _part(self, place: Any, number: int, part: Any) -> list[Event]:
        text = text_in(part)
        if text is None:
            return self.message.other(part_event(part)) if part else []
        self.was_refused = self.was_refused or get(part, "type", str) == "refusal"
        found = self._whole(place, ("text", number), text)
        for annotation in get(part, "annotations", (list, tuple)) or []:
            found += self.cite(annotation)
        return found

    def _reasoning(self, place: Any, item: _Item, given: Mapping[str, Any]) -> list[Event]:
        found: list[Event] = []
        for kind in ("summary", "content"):
            for number, part in enumerate(get(given, kind, (list, tuple)) or []):
                found += self._whole(place, (kind, number), text_in(object_fields(part) or part) or "")
        secret = nonempty(given, "encrypted_content")
        if secret and not self._is_open(place):
            found += self.message.reasoning("", (item.key, ("secret", 0)))
            return found + self._end_block(place, {"openai": {"itemId": given.get("id"), "encryptedContent": secret}})
        for number, which in enumerate(which for which in item.grown if which[0] != "text"):
            metadata: Object = {"itemId": given.get("id")}
            metadata |= {"encryptedContent": secret} if secret and number == 0 else {}
            metadata |= {"raw_content": True} if which[0] == "content" else {}
            self.message.annotate_block((item.key, which), {"openai": metadata})
        return found + self._end_block(place, None)

    def _is_open(self, place: Any) -> bool:
        """Whether the open block belongs to this item."""
        key = self.message.open_key
        return isinstance(key, tuple) and key[0] is self._item(place).key

    def _end_block(self, place: Any, metadata: Object | None) -> list[Event]:
        return self.message.end_block(metadata) if self._is_open(place) else []

    def _call(self, place: Any, item: _Item, given: Mapping[str, Any]) -> list[Event]:
        if earlier := self._earlier(given):
            return self._end(earlier, given)
        name, call_id = items.call_name(given), items.call_id(given)
        about = items.call_fields(given)
        found = self.message.begin_call(item.key, call_id, name, **about)
        found += self.message.rename_call(item.key, call_id) if call_id else []
        self.message.describe_call(item.key, name, **about)
        text = get(given, "arguments", str)
        if text is None:
            found += self.message.end_call(item.key, items.call_input(given))
        else:
            found += self.finish_text(place, text, item.kind != "custom_tool_call")
        own = self.message.id_of(item.key)
        return found + (self._end(own, given) if own else [])

    def _end(self, own: str, given: Mapping[str, Any]) -> list[Event]:
        """Reads what a call's item says of its end."""
        kind, is_executed = given.get("type"), items.is_provider_executed(given)
        self.awaits_results = self.awaits_results or not is_executed
        self._executed.update({own} if is_executed else ())
        if kind == "tool_search_call":
            self._searches.append(own)
        if kind == "mcp_approval_request":
            return [ev.ToolApprovalRequest(str(given.get("id") or own), own)]
        failure, output = items.call_error(given) if is_executed else None, items.call_output(given)
        if failure is not None:
            return self.message.failure(own, failure, provider_executed=True)
        found = [] if output is MISSING else self.message.output(own, output, provider_executed=True)
        return found + (self._image(given) if kind == "image_generation_call" else [])

    def _image(self, given: Mapping[str, Any]) -> list[Event]:
        name = nonempty(given, "output_format") or "png"
        media_type = "image/svg+xml" if name == "svg" else f"image/{name}"
        return self.message.other(file_event(media_type, get(given, "result", str) or None))

    def _output(self, kind: str, given: Mapping[str, Any]) -> list[Event]:
        """Ends the call that an output item belongs to; returns nothing if the call is unknown or has ended."""
        call_id = items.call_id(given)
        if kind == "tool_search_output" and not nonempty(given, "call_id") and self._searches:
            call_id = self._searches.pop(0)
        if not call_id:
            return []
        event: Any = items.output_event(call_id, given)
        if call_id in self._executed:
            event = replace(event, provider_executed=True)
        return self.message.outcome(call_id, event)

    def _earlier(self, given: Mapping[str, Any]) -> str | None:
        """Returns the id of the call that asked for the approval with which this one ran."""
        asked = nonempty(given, "approval_request_id")
        return asked if asked and self.message.knows(asked) else None

    def _item(self, place: Any) -> _Item:
        if place not in self._items:
            self._items[place] = _Item(object())
        return self._items[place]
