"""A model of a browser page: handles messages of a run as ``frontend/src/live_run.js`` does, without a DOM."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from toolcall_nb.render.html_output.nodes import Node
from toolcall_nb.render.html_output.page import fragment

__all__ = ["Page"]

Message: TypeAlias = dict[str, Any]


class Document:
    """The front end's ``NodeTree``: each node's HTML and children by its id. Raises for a patch that does not apply."""

    def __init__(self) -> None:
        self.html: dict[str, str] = {}
        self.children: dict[str, list[str]] = {"": []}

    def apply(self, patch: list[Any]) -> None:
        match patch:
            case [str(id), str(parent), before, str(html)]:
                self._insert(id, parent, before, html)
            case [str(id), int(start), str(text), *deleted]:
                self._splice(id, start, text, *deleted)
            case [str(id)]:
                self._remove(id)
            case _:
                raise ValueError(patch)

    def _insert(self, id: str, parent: str, before: str | None, html: str) -> None:
        if id in self.html:
            self._remove(id)
        siblings = self.children[parent]
        siblings.insert(len(siblings) if before is None else siblings.index(before), id)
        self.html[id], self.children[id] = html, []

    def _splice(self, id: str, start: int, text: str, deleted: int = 0) -> None:
        units = self.html[id].encode("utf-16-le")
        spliced = units[: 2 * start] + text.encode("utf-16-le") + units[2 * (start + deleted) :]
        self.html[id] = spliced.decode("utf-16-le")

    def _remove(self, id: str) -> None:
        next(siblings for siblings in self.children.values() if id in siblings).remove(id)
        for gone in [id, *self._below(id)]:
            del self.html[gone], self.children[gone]

    def _below(self, id: str) -> list[str]:
        return [deeper for child in self.children[id] for deeper in (child, *self._below(child))]

    @property
    def whole(self) -> str:
        return fragment([self._node(id) for id in self.children[""]])

    def _node(self, id: str) -> Node:
        """Puts the children into the innermost last element, before the end tags at the end of the node's own HTML."""
        html = self.html[id]
        at = len(html) if self.children[id] else 0
        while html[:at].endswith(">") and (start := html.rfind("<", 0, at)) >= 0 and html.startswith("</", start):
            at = start
        head, tail = (html[:at], html[at:]) if self.children[id] else (html, "")
        return Node(id, head, tail, [self._node(child) for child in self.children[id]])


class Page:
    """The front end's ``Session``. ``send`` sends a message to the kernel; a page that is not connected neither sends
    nor receives.

    ``misses`` is the number of next messages that get lost although the page is connected.
    """

    def __init__(self, send: Callable[[Page, Message], None]) -> None:
        self.document = Document()
        self.seq = -1
        self.asks: dict[str, Message] = {}
        self.done = False
        self.final: Message | None = None
        self.misses = 0
        self.is_connected = True
        self._is_asking = False
        self._send = send

    @property
    def html(self) -> str:
        """The HTML that the page shows."""
        return self.document.whole

    def begin(self, snapshot: Message) -> None:
        """Starts from the synced state, as after a reload."""
        self._restart(_carried(snapshot))
        self.sync()

    def receive(self, message: Message) -> None:
        """Handles a message from the kernel."""
        if not self.is_connected:
            return
        if self.misses:
            self.misses -= 1
            return
        message = _carried(message)
        if message["type"] == "patches":
            self._advance(message)
        elif message["type"] == "state" and (message["seq"] > self.seq or self._is_asking):
            self._restart(message)
        elif message["type"] == "final":
            self.final = message["bundle"]

    def say(self, message: Message) -> None:
        """Sends a message of the reader to the kernel."""
        if self.is_connected:
            self._send(self, _carried(message))

    def connect(self) -> None:
        """Reconnects; messages sent in the meantime are lost."""
        self.is_connected = True
        self.sync()

    def sync(self) -> None:
        """Tells the kernel the page's sequence number; a kernel that is ahead answers with the whole state."""
        self.say({"type": "sync", "seq": self.seq})

    def _advance(self, step: Message) -> None:
        if step["seq"] <= self.seq:
            return
        if step["seq"] != self.seq + 1:
            self._ask()
            return
        for patch in step["patches"]:
            self.document.apply(patch)
        self.seq = step["seq"]
        self._take(step)

    def _restart(self, state: Message) -> None:
        self.document = Document()
        for patch in state["patches"]:
            self.document.apply(patch)
        self.seq = state["seq"]
        self._is_asking = False
        self._take(state)

    def _take(self, step: Message) -> None:
        self.asks = step.get("asks", self.asks)
        self.done = step.get("done", self.done)

    def _ask(self) -> None:
        """Syncs once, not again for each following message: the front end waits for seconds before it repeats."""
        if not self._is_asking:
            self._is_asking = True
            self.sync()


def _carried(message: Message) -> Message:
    """Returns the message as it arrives after JSON encoding and decoding."""
    carried: Message = json.loads(json.dumps(message))
    return carried
