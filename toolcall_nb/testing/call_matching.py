"""Pairs expected tool calls with those of a run: `maximum_matching` in any order, `first_matches` in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence


def first_matches(expected: int, actual: int, fits: Callable[[int, int], bool]) -> dict[int, int]:
    """Pairs each expected item with the next one that fits, in order; ends where none does.

    If there is a subsequence that fits all, this finds one: the earliest partner leaves the most for the rest.
    """
    pairs: dict[int, int] = {}
    for place in range(actual):
        if len(pairs) < expected and fits(len(pairs), place):
            pairs[len(pairs)] = place
    return pairs


def maximum_matching(fits: Sequence[Sequence[int]]) -> dict[int, int]:
    """Pairs as many items as possible, each with one of the places that it fits.

    This is Kuhn's algorithm: an item whose places are taken makes others change theirs, where they can. So the number
    of pairs does not depend on the order of the items, as it does when each takes the first free place.
    """
    places: dict[int, int] = {}
    items: dict[int, int] = {}  # the same, by the place
    for item in range(len(fits)):
        place, reached = _free_place(item, fits, items)
        while place is not None:
            mover = reached[place]
            former = places.get(mover)
            places[mover], items[place] = place, mover
            place = former
    return places


def _free_place(
    item: int, fits: Sequence[Sequence[int]], items: Mapping[int, int]
) -> tuple[int | None, dict[int, int]]:
    """Returns a free place that can be reached by changes, or None; and by each reached place the item to take it."""
    reached: dict[int, int] = {}
    waiting = deque([item])
    while waiting:
        here = waiting.popleft()
        for place in fits[here]:
            if place not in reached:
                reached[place] = here
                if place not in items:
                    return place, reached
                waiting.append(items[place])
    return None, reached
