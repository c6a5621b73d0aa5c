"""A page as a live view builds it from patches: `Tree`, and `after`."""

from __future__ import annotations

import json
from collections.abc import Iterable

from toolcall_nb.core.events import Event
from toolcall_nb.render.html_output.live_html import LiveHtml
from toolcall_nb.render.html_output.nodes import Node, Patch


class Tree:
    """What a front end does with patches, on strings: the HTML of each node by its id, and who is in whom."""

    def __init__(self) -> None:
        self.html: dict[str, str] = {}
        self.children: dict[str, list[str]] = {"": []}

    def take(self, patches: Iterable[Patch]) -> None:
        for patch in json.loads(json.dumps(patches)):
            getattr(self, patch[0])(*patch[1:])

    def insert(self, id: str, parent: str, before: str | None, html: str) -> None:
        assert id not in self.html
        siblings = self.children[parent]
        siblings.insert(len(siblings) if before is None else siblings.index(before), id)
        self.html[id], self.children[id] = html, []

    def splice(self, id: str, start: int, deleted: int, text: str) -> None:
        units = self.html[id].encode("utf-16-le")
        assert 0 <= start <= start + deleted <= len(units) // 2
        spliced = units[: 2 * start] + text.encode("utf-16-le") + units[2 * (start + deleted) :]
        self.html[id] = spliced.decode("utf-16-le")

    def remove(self, id: str) -> None:
        next(siblings for siblings in self.children.values() if id in siblings).remove(id)
        for gone in [id, *self.below(id)]:
            del self.html[gone], self.children[gone]

    def below(self, id: str) -> list[str]:
        return [deeper for child in self.children[id] for deeper in (child, *self.below(child))]

    def roots(self) -> list[Node]:
        return [self.node(id) for id in self.children[""]]

    def node(self, id: str) -> Node:
        """Children live in the innermost last element: before the end tags that end the node's own HTML."""
        head, tail = parted(self.html[id]) if self.children[id] else (self.html[id], "")
        return Node(id, head, tail, [self.node(child) for child in self.children[id]])


def parted(html: str) -> tuple[str, str]:
    at = len(html)
    while html[:at].endswith(">") and (start := html.rfind("<", 0, at)) >= 0 and html.startswith("</", start):
        at = start
    return html[:at], html[at:]


def after(*events: Event) -> LiveHtml:
    live = LiveHtml()
    for event in events:
        live.apply(event)
    return live
