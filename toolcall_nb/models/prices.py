"""What a request cost, by the price list of `genai_prices`: data of the package, no network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["cost_of"]

_NAMES = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedInputTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
}


def cost_of(
    usage: Mapping[str, Any], model: str | None, *, provider: str | None = None, url: str | None = None
) -> dict[str, str] | None:
    """``{"USD": "0.0045725"}`` for the tokens of one request; None where no price is known, or no package.

    ``url`` is where the model was asked, ``provider`` its name in the list. With a URL the name does not count: a
    server of somebody's own may speak a provider's language, and call its model so.
    """
    if not model or not (url or provider) or not any(usage.get(name) for name in _NAMES):
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    counted = Usage(**{theirs: int(usage[ours]) for ours, theirs in _NAMES.items() if usage.get(ours)})
    try:
        price = (
            calc_price(counted, model, provider_api_url=url)
            if url
            else calc_price(counted, model, provider_id=provider)
        )
    except Exception:  # a model that is not in the list; counts that do not fit each other; a list of another make
        return None
    return {"USD": f"{price.total_price.normalize():f}"}
