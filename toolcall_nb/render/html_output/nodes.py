"""The tree that a transcript is drawn as, and the patches that make one tree into another.

A node has an id that never changes, the HTML of its own element, and children, which live in the innermost last
element of that HTML. `serialise` writes a tree down; `update` makes an old tree like a new one, in place, and
says what that took. So the static HTML and the live view cannot drift: both come from the same nodes.

A patch is a list that JSON can carry:

    ["insert", id, parent, before, html]    a new node; ``parent`` "" is the root, ``before`` null is the end
    ["splice", id, start, deleted, text]    the node's own HTML changes, at offsets in UTF-16 units (JavaScript's)
    ["remove", id]                          the node goes, and its children with it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import msgspec

from toolcall_nb.core.packing import pack, unpack

__all__ = ["Node", "PackedNodes", "Patch", "insert", "leaf", "remove", "serialise", "splice", "update"]

Patch: TypeAlias = list[Any]

_NEAR = 64  # what grows differs near its end


class Node:
    """One element of the tree. Children stand between ``head`` and ``tail``; a leaf has no ``tail``.

    ``children`` is any sequence, and it is not copied: whoever gave it may change it, or make them when asked.
    """

    __slots__ = ("children", "head", "id", "tail")

    def __init__(self, id: str, head: str, tail: str, children: Sequence[Node] = ()) -> None:
        self.id = id
        self.head = head
        self.tail = tail
        self.children = children

    @property
    def html(self) -> str:
        """The element alone, without its children."""
        return self.head + self.tail


def leaf(id: str, html: str) -> Node:
    """A node that never has children."""
    return Node(id, html, "")


class PackedNodes(Sequence[Node]):
    """Nodes in little memory, which are made again each time that they are asked for."""

    __slots__ = ("_packed",)

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._packed = pack(msgspec.msgpack.encode([_plain(node) for node in nodes]))

    def __len__(self) -> int:
        return len(self._nodes())

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Node]: ...
    def __getitem__(self, index: int | slice) -> Node | Sequence[Node]:
        return self._nodes()[index]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes())

    def _nodes(self) -> list[Node]:
        return [_node(plain) for plain in msgspec.msgpack.decode(unpack(self._packed))]


def _plain(node: Node) -> list[Any]:
    return [node.id, node.head, node.tail, [_plain(child) for child in node.children]]


def _node(plain: list[Any]) -> Node:
    id, head, tail, children = plain
    return Node(id, head, tail, [_node(child) for child in children])


def serialise(nodes: Sequence[Node]) -> str:
    """The HTML of the nodes with all that is in them."""
    pieces: list[str] = []
    _write(nodes, pieces)
    return "".join(pieces)


def _write(nodes: Sequence[Node], pieces: list[str]) -> None:
    for node in nodes:
        pieces.append(node.head)
        _write(node.children, pieces)
        pieces.append(node.tail)


def insert(node: Node, parent: str, before: str | None) -> Iterator[Patch]:
    """The patches that bring the node and all that is in it."""
    yield ["insert", node.id, parent, before, node.html]
    for child in node.children:
        yield from insert(child, node.id, None)


def remove(node: Node) -> Patch:
    """The patch that takes the node away, with all that is in it."""
    return ["remove", node.id]


def update(old: Node, new: Node) -> Iterator[Patch]:
    """Make ``old`` like ``new``, which has the same id, and say how; nothing where they are alike.

    The children that stay must be in the same order in both.
    """
    if (old.head, old.tail) != (new.head, new.tail):
        yield splice(old.id, old.html, new.html)
        old.head, old.tail = new.head, new.tail
    if old.children != new.children:  # nodes are equal only where they are the same
        yield from _update_children(old, new.children)


def _update_children(old: Node, wanted: Sequence[Node]) -> Iterator[Patch]:
    stay = {child.id for child in wanted}
    for child in old.children:
        if child.id not in stay:
            yield remove(child)
    here = {child.id: child for child in old.children}
    for place, child in enumerate(wanted):
        if child.id in here:
            yield from update(here[child.id], child)
        else:
            before = next((later.id for later in wanted[place + 1 :] if later.id in here), None)
            yield from insert(child, old.id, before)
    old.children = [here.get(child.id, child) for child in wanted]


def splice(id: str, old: str, new: str) -> Patch:
    """The patch that makes ``old`` into ``new``: what they begin and end with alike is left alone."""
    start = _common_prefix(old, new)
    limit = min(len(old), len(new)) - start
    end = _common_suffix(old, new, limit)
    deleted = old[start : len(old) - end]
    before = start if old.isascii() else _utf16(old[:start])
    return ["splice", id, before, _utf16(deleted), new[start : len(new) - end]]


def _common_prefix(one: str, other: str) -> int:
    """Length of what both begin with. Halving keeps the comparing in C: one pass, whatever the length."""
    low, high = 0, min(len(one), len(other))
    if high > _NEAR and other.startswith(one[: high - _NEAR]):
        low = high - _NEAR
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(one: str, other: str, limit: int) -> int:
    """Length of what both end with, at most ``limit``."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _utf16(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
