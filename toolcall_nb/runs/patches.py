"""Patches on their way to a page: few, and short. What they are is said in `toolcall_nb.render.html_output.nodes`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

__all__ = ["Patch", "brief", "merged"]

Patch: TypeAlias = list[Any]


def brief(patches: Iterable[Patch]) -> list[list[Any]]:
    """The patches as a page reads them. Most bring a few characters, so what is said with them counts.

    The second item tells which is which: a string, the parent of a new node; a number, the start of a splice; or none.

        [id, parent, before, html]    insert
        [id, start, text]             splice that deletes nothing
        [id, start, text, deleted]    splice
        [id]                          remove
    """
    return [_brief(*patch) for patch in patches]


def _brief(kind: str, id: str, *values: Any) -> list[Any]:
    if kind != "splice":
        return [id, *values]
    start, deleted, text = values
    return [id, start, text, deleted] if deleted else [id, start, text]


def merged(patches: list[Patch]) -> list[Patch]:
    """The same changes in fewer patches: text that was appended piece by piece to one node becomes one piece."""
    result: list[Patch] = []
    for patch in patches:
        last = result[-1] if result else None
        if last is not None and _goes_on(last, patch):
            result[-1] = [*last[:4], last[4] + patch[4]]
        else:
            result.append(patch)
    return result


def _goes_on(last: Patch, patch: Patch) -> bool:
    return (
        patch[0] == last[0] == "splice"
        and patch[1] == last[1]
        and patch[3] == 0
        and bool(patch[2] == last[2] + _utf16_length(last[4]))
    )


def _utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
