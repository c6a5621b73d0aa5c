"""The nesting of calls, some of which ran inside of others: `CallNesting`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolcall_nb.core.transcript import ToolCall


class CallNesting:
    """The depth of each call, and the name of the call around it, by call id.

    A parent that is not among the calls, or that is itself below, is none.
    """

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        known = {call.id: call for call in calls}
        self._parents = {call.id: call.parent for call in known.values()}
        self._names = {call.id: call.name for call in known.values()}
        self._depths = _depths(self._parents)
        self._named = set(filter(None, self._parents.values()))  # the calls that are named as a parent

    def add(self, call: ToolCall) -> set[str]:
        """Notes a call, or its change; returns the ids of the known calls whose depth or parent's name has changed."""
        own, parent = call.id, call.parent
        is_new = own not in self._parents
        if not is_new and (self._parents[own], self._names[own]) == (parent, call.name):
            return set()
        self._parents[own], self._names[own] = parent, call.name
        if parent is not None:
            self._named.add(parent)
        if is_new and own not in self._named:
            self._depths[own] = 0 if parent is None else self._depths.get(parent, -1) + 1
            return set()
        return self._changed(own)

    def discard(self, call_id: str) -> set[str]:
        """Forgets a call; returns what `add` returns."""
        self._parents.pop(call_id, None)
        self._names.pop(call_id, None)
        self._depths.pop(call_id, None)
        return self._changed(call_id) if call_id in self._named else set()

    def depth(self, call_id: str) -> int:
        """Returns the number of calls around a call."""
        return self._depths.get(call_id, 0)

    def around(self, call_id: str) -> str:
        """Returns the name of the call around a call; empty for a call of the run itself."""
        parent = self._parents.get(call_id)
        return self._names.get(parent, "") if parent is not None and self._depths.get(call_id) else ""

    def _changed(self, call_id: str) -> set[str]:
        former, self._depths = self._depths, _depths(self._parents)
        changed = {own for own, depth in self._depths.items() if depth != former.get(own)}
        return changed | {own for own, parent in self._parents.items() if own == call_id or parent == call_id}


def _depths(parents: Mapping[str, str | None]) -> dict[str, int]:
    depths: dict[str, int] = {}
    for start in parents:
        path: dict[str, None] = {}
        here: str | None = start
        while here is not None and here in parents and here not in depths and here not in path:
            path[here] = None
            here = parents[here]
        depth = depths[here] + 1 if here in depths else 0
        for call_id in reversed(path):
            depths[call_id], depth = depth, depth + 1
    return depths
