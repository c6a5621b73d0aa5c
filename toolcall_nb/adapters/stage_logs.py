"""The log of tool blocks with stages (seed 002), as a list, a generator or a file gives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcall_nb.adapters.base import Format, never
from toolcall_nb.core.events import Event
from toolcall_nb.stages import Stage, StageReader, UpdateToolBlockParams

__all__ = ["FORMAT", "StageLogAdapter"]


class StageLogAdapter:
    """Reads updates of tool blocks. Raises `WireError` for one with ``isRunning``, as `toolcall_nb.stages` does."""

    def __init__(self) -> None:
        self._reader = StageReader()

    def take(self, item: Any) -> list[Event]:
        """The events of one update."""
        return self._reader.feed(item)

    def close(self) -> list[Event]:
        """The log is over: blocks that are still open were stopped."""
        return self._reader.close()


def _is_item(item: Any) -> bool:
    if isinstance(item, UpdateToolBlockParams):
        return True
    return type(item) is dict and "type" not in item and item.get("stage") in tuple(Stage) and "id" in item


def _whole(_: Any) -> Iterator[Event]:
    yield from ()


FORMAT = Format(
    name="stages",
    title="a log of tool blocks with stages",
    is_item=_is_item,
    adapter=StageLogAdapter,
    is_whole=never,
    whole=_whole,
)
