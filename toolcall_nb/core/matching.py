"""Pairs as many items as possible with positions that they fit: `maximum_matching`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence


def maximum_matching(fits: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Returns the position of each item that gets one; ``fits`` has the positions that an item fits, best first.

    This is Kuhn's algorithm: an item whose positions are taken makes others change theirs, where they can. So the
    number of pairs does not depend on the order of the items, as it does when each takes the first free position.
    """
    pairs: dict[int, int] = {}
    items: dict[int, int] = {}  # the same, by the position
    for item in fits:
        position, reached_from = _free_position(item, fits, items)
        while position is not None:
            mover = reached_from[position]
            former = pairs.get(mover)
            pairs[mover], items[position] = position, mover
            position = former
    return pairs


def _free_position(
    start: int, fits: Mapping[int, Sequence[int]], items: Mapping[int, int]
) -> tuple[int | None, dict[int, int]]:
    """Returns a free position that changes can reach, or None; and by each reached position the item to take it."""
    reached_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        item = queue.popleft()
        for position in fits[item]:
            if position not in reached_from:
                reached_from[position] = item
                if position not in items:
                    return position, reached_from
                queue.append(items[position])
    return None, reached_from
