"""A span, whatever file it is from: `Span`. Each container format has a module that reads its files into spans."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from toolcall_nb.core.events import Json, Object


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
        found = self.attributes.get(name)
        return found if isinstance(found, str) else ""


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
