"""As many items as possible are paired, each with a position that it fits."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb.core.matching import maximum_matching


@given(st.lists(st.lists(st.integers(0, 5), max_size=6, unique=True), max_size=6))
def test_the_matching_is_the_largest_of_all(fits: list[list[int]]) -> None:
    pairs = maximum_matching(dict(enumerate(fits)))
    assert all(position in fits[item] for item, position in pairs.items())
    assert len(set(pairs.values())) == len(pairs)
    largest = max(
        sum(position in fits[item] for item, position in enumerate(positions[: len(fits)]))
        for positions in permutations(range(6))
    )
    assert len(pairs) == largest
