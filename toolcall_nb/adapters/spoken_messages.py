"""What a person or the system said, as the events of one message."""

from __future__ import annotations

from collections.abc import Iterable

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

__all__ = ["said"]


def said(role: str, parts: Iterable[str | Event]) -> list[Event]:
    """A whole message of ``role``: its texts, each a block of its own, and between them files and the like."""
    found: list[Event] = [ev.Start(role=role)]
    for number, part in enumerate(parts, 1):
        if isinstance(part, str):
            block = f"text-{number}"
            found += [ev.TextStart(block), ev.TextDelta(block, part), ev.TextEnd(block)]
        else:
            found.append(part)
    return [*found, ev.Finish()]
