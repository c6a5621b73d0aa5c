"""A span, whatever file it is from, and the spans of one trace as a tree: `Span`, `SpanFile` and `SpanTree`.

Each container format has a module that reads its files into spans. `build_tree` arranges those of a trace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

from toolcall_nb.core.events import Diagnostic, Json, Object


class SpanEvent(Struct, frozen=True, kw_only=True):
    """An event of a span, or a log record that was written while the span was open. ``time`` is in nanoseconds."""

    name: str = ""
    time: int | None = None
    attributes: Object = field(default_factory=dict)
    body: Json = None


class Span(Struct, kw_only=True):
    """One span of a trace.

    ``start`` and ``end`` are in nanoseconds since 1970; None if unknown. ``status`` is empty where none was set.
    ``has_remote_parent`` is true if the file says that the parent belongs to another process. ``resource`` describes
    the process that wrote the span, and ``extra`` keeps the fields of the container that have no place here.
    """

    trace: str
    id: str
    parent: str | None = None
    name: str = ""
    kind: str = ""
    start: int | None = None
    end: int | None = None
    status: Literal["", "ok", "error"] = ""
    status_message: str = ""
    attributes: Object = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    links: list[Json] = field(default_factory=list)
    resource: Object = field(default_factory=dict)
    scope: str = ""
    has_remote_parent: bool = False
    extra: Object = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Returns an attribute that is a string; empty if there is none."""
        value = self.attributes.get(name)
        return value if isinstance(value, str) else ""


class SpanFile(Struct):
    """The spans of a file, in its order.

    ``logs`` are log records with the ids of their trace and span, either of which may be empty. ``titles`` and
    ``extras`` are what a container says of a whole trace. ``unknown`` counts the records that are no spans.
    """

    spans: list[Span] = field(default_factory=list)
    logs: list[tuple[str, str, SpanEvent]] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    extras: dict[str, Object] = field(default_factory=dict)
    unknown: int = 0

    def extend(self, other: SpanFile) -> None:
        """Adds the spans of another file."""
        self.spans += other.spans
        self.logs += other.logs
        self.titles |= other.titles
        self.extras |= other.extras
        self.unknown += other.unknown


class SpanTree(Struct):
    """The spans of a trace.

    ``spans`` are in the order of their starts, but none comes before its parent. ``parents`` is by the position of a
    span in that order and leads to a smaller position; a root has none.
    """

    spans: list[Span] = field(default_factory=list)
    parents: list[int | None] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def build_tree(trace: Iterable[Span]) -> SpanTree:
    """Arranges the spans of a trace. A parent that is missing, or that cannot be one, is reported and left out."""
    spans, repeated = _distinct(trace)
    tree = SpanTree()
    _report(tree, repeated, "span was", "spans were", "in the file more than once", "The first copy was kept.")
    parents = _parents(spans, tree)
    top_down = _top_down(parents)
    if len(top_down) < len(spans):  # no root leads to the others
        circles = _break_circles(parents)
        kept = "One link of each was left out."
        _report(tree, circles, "circle of parents was", "circles of parents were", "found", kept)
        top_down = _top_down(parents)
    order = sorted(range(len(spans)), key=_sort_keys(spans, parents, top_down, tree).__getitem__)
    new_index = {old: new for new, old in enumerate(order)}
    tree.spans = [spans[old] for old in order]
    tree.parents = [None if (parent := parents[old]) is None else new_index[parent] for old in order]
    return tree


def _report(tree: SpanTree, number: int, one: str, more: str, what: str, action: str) -> None:
    if number:
        tree.diagnostics.append(Diagnostic(f"{number:,} {one if number == 1 else more} {what}.", action))


def _distinct(spans: Iterable[Span]) -> tuple[list[Span], int]:
    by_id: dict[str, Span] = {}
    nameless: list[Span] = []
    repeated = 0
    for span in spans:
        if not span.id:
            nameless.append(span)
        elif span.id in by_id:
            repeated += 1
        else:
            by_id[span.id] = span
    return [*by_id.values(), *nameless], repeated


def _parents(spans: list[Span], tree: SpanTree) -> list[int | None]:
    """Returns the position of each span's parent."""
    positions = {span.id: i for i, span in enumerate(spans) if span.id}
    parents = [positions.get(span.parent) if span.parent else None for span in spans]
    is_lost = [span.parent is not None and parents[i] is None for i, span in enumerate(spans)]
    remote = sum(lost and span.has_remote_parent for lost, span in zip(is_lost, spans, strict=True))
    kept = "Such a span was read as a root."
    _report(tree, sum(is_lost) - remote, "span has", "spans have", "a parent that is not in the file", kept)
    _report(tree, remote, "span has", "spans have", "a parent in another process, which is not in the file", kept)
    return parents


def _break_circles(parents: list[int | None]) -> int:
    """Removes one link of each circle and returns their number."""
    done = [False] * len(parents)
    circles = 0
    for start in range(len(parents)):
        path: set[int] = set()
        i: int | None = start
        while i is not None and not done[i] and i not in path:
            path.add(i)
            i = parents[i]
        if i is not None and i in path:
            parents[i] = None
            circles += 1
        for passed in path:
            done[passed] = True
    return circles


def _top_down(parents: list[int | None]) -> list[int]:
    """Returns the positions in an order in which each parent comes before its children."""
    children: dict[int | None, list[int]] = {}
    for i, parent in enumerate(parents):
        children.setdefault(parent, []).append(i)
    order, queue = [], list(children.get(None, ()))
    while queue:
        order.append(i := queue.pop())
        queue += children.get(i, ())
    return order


def _sort_keys(
    spans: list[Span], parents: list[int | None], top_down: list[int], tree: SpanTree
) -> list[tuple[int, int]]:
    """Returns the start and the depth by which each span is sorted. No start is missing or before that of a parent."""
    keys = [(0, 0)] * len(spans)
    early = unknown = 0
    for i in top_down:
        parent, start = parents[i], spans[i].start
        least, depth = (0, 0) if parent is None else keys[parent]
        unknown += start is None
        early += start is not None and start < least and parent is not None and spans[parent].start is not None
        keys[i] = (least if start is None else max(start, least), depth + 1)
    order = "Such a span was read in the order of the file."
    _report(tree, unknown, "span has", "spans have", "no time", order)
    _report(tree, early, "span starts", "spans start", "before its parent", "Such a span was read after its parent.")
    return keys
