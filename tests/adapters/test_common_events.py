"""Events and counts that the adapters of several providers have in common."""

from __future__ import annotations

from toolcall_nb.adapters.common_events import add_counts


def test_the_counts_of_several_requests_are_added_name_by_name() -> None:
    usages = [{"inputTokens": 3, "outputTokens": 1}, {"inputTokens": 4}, {"cachedInputTokens": 2}]
    assert add_counts(usages) == {"inputTokens": 7, "outputTokens": 1, "cachedInputTokens": 2}
