"""Calculates what a request cost, by the price list in the package `genai_prices`; no network. `cost_of` does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COUNTS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedInputTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
}
"""Our names of the counts, and those of `genai_prices`."""


def cost_of(
    usage: Mapping[str, Any], model: str | None, *, provider: str | None = None, url: str | None = None
) -> dict[str, str] | None:
    """Returns ``{"USD": "0.0045725"}`` for the tokens of one request; None without a known price or the package.

    ``provider`` is its name in the price list. If the ``url`` of the request is given, it alone decides: a server of
    one's own may use the names of a provider's models.
    """
    if not model or not (url or provider) or not any(usage.get(name) for name in _COUNTS):
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    counts = Usage(**{theirs: int(usage[ours]) for ours, theirs in _COUNTS.items() if usage.get(ours)})
    asked = {"provider_api_url": url} if url else {"provider_id": provider}
    try:
        price = calc_price(counts, model, **asked)
    except Exception:  # a model or provider that is not in the list, or counts that contradict each other
        return None
    return {"USD": f"{price.total_price.normalize():f}"}
