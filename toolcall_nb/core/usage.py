"""What requests to a model took: tokens and costs, as a message's metadata keeps them.

    usage   {inputTokens, outputTokens, …}     of the whole message; `TOKEN_COUNTS` are the counts that are known
    cost    {USD: "0.0045725"}                 by currency, as decimal text, where each request's price is known
    model   who answered
    steps   [{usage, cost?, model?, added?}]   of each request, where there were several; ``added`` says by call id how
                                               many tokens the call's result added to the next prompt

Nothing here is measured: it is what providers report, and the same each time that the transcript is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import Struct

from toolcall_nb.core.events import Json, Object
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import Message, ToolCall

__all__ = [
    "TOKEN_COUNTS",
    "USAGE_FIELDS",
    "Account",
    "Request",
    "account",
    "added_by",
    "counts",
    "requests_of",
    "to_metadata",
    "total",
    "total_cost",
]

USAGE_FIELDS = ("usage", "cost", "steps")
"""What `to_metadata` writes."""

_LARGEST = 2**53

_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "inputTokens": ("input_tokens", "promptTokens", "prompt_tokens"),
    "outputTokens": ("output_tokens", "completionTokens", "completion_tokens"),
    "totalTokens": ("total_tokens",),
    "cachedInputTokens": ("cached_input_tokens", "cacheReadTokens", "cache_read_tokens"),
    "cacheWriteTokens": ("cache_write_tokens",),
    "reasoningTokens": ("reasoning_tokens",),
}
TOKEN_COUNTS = tuple(_OTHER_NAMES)
"""The counts. Of the input, some was cached, or was written to a cache; of the output, some was reasoning."""

_OWN = {other: own for own, others in _OTHER_NAMES.items() for other in others}


class Request(Struct, frozen=True):
    """The usage and cost of one request to a model.

    ``usage`` holds counts under the names of `TOKEN_COUNTS` and is empty where nothing was reported. ``cost`` is by
    currency, or None where it is not known. ``added`` estimates, by call id, how many tokens the result of each call
    added to the next prompt.
    """

    usage: Mapping[str, int | float] = {}
    cost: Mapping[str, Decimal] | None = None
    model: str | None = None
    added: Mapping[str, int] = {}


class Account(Struct, frozen=True):
    """What a transcript took, request by request."""

    requests: tuple[Request, ...] = ()

    @property
    def usage(self) -> dict[str, int | float]:
        """All of it."""
        return total(request.usage for request in self.requests)

    @property
    def cost(self) -> dict[str, Decimal] | None:
        """All of it, by currency; None where the price of a request is not known, or there is none."""
        return total_cost(request.cost for request in self.requests if request.usage)

    @property
    def added(self) -> dict[str, int]:
        """Tokens that a call's result added to the next prompt, by call id, where that can be told."""
        return {call: tokens for request in self.requests for call, tokens in request.added.items()}


def account(messages: Iterable[Message]) -> Account:
    """What the metadata of the messages say; of a message that says nothing, nothing."""
    return Account(tuple(request for message in messages for request in requests_of(message.metadata)))


def requests_of(metadata: Object) -> list[Request]:
    """The requests that a message's metadata tells of; none where it reports no usage."""
    steps = metadata.get("steps")
    whole = _request(metadata)
    if not isinstance(steps, list) or not steps:
        return [whole] if whole.usage else []
    return [_request({"model": metadata.get("model"), **step} if isinstance(step, dict) else {}) for step in steps]


def _request(fields: Mapping[str, Any]) -> Request:
    model, added = fields.get("model"), fields.get("added")
    return Request(
        counts(fields.get("usage")),
        _cost(fields.get("cost")),
        model if isinstance(model, str) else None,
        {call: tokens for call, tokens in added.items() if _is_count(tokens)} if isinstance(added, dict) else {},
    )


def to_metadata(requests: Sequence[Request]) -> Object:
    """The fields ``usage``, ``cost`` and ``steps`` of a message that took these requests; none where none reported."""
    whole = Account(tuple(requests))
    if not whole.usage:
        return {}
    fields: Object = {"usage": whole.usage}
    fields |= {"cost": _cost_text(whole.cost)} if whole.cost is not None else {}
    last = next((request.model for request in reversed(requests) if request.model), None)
    return fields | ({"steps": [_step(request, last) for request in requests]} if len(requests) > 1 else {})


def _step(request: Request, model: str | None) -> Object:
    fields: Object = {"usage": dict(request.usage)}
    fields |= {"cost": _cost_text(request.cost)} if request.cost is not None else {}
    fields |= {"model": request.model} if request.model not in (None, model) else {}
    return fields | ({"added": dict(request.added)} if request.added else {})


# Tokens -------------------------------------------------------------------------------------------------------


def counts(reported: Json) -> dict[str, int | float]:
    """What is reported under `TOKEN_COUNTS`, or other names of providers for these; what is no count is left out."""
    found: dict[str, int | float] = {}
    for name, value in reported.items() if isinstance(reported, Mapping) else ():
        if isinstance(name, str) and _is_count(value):
            found.setdefault(_OWN.get(name, name), value)
    return found


def total(usages: Iterable[Mapping[str, int | float]]) -> dict[str, int | float]:
    """The counts added up."""
    sums: dict[str, int | float] = {}
    for usage in usages:
        for name, value in usage.items():
            sums[name] = sums.get(name, 0) + value
    return sums


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST


def added_by(calls: Sequence[ToolCall], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    """How many tokens of the prompt the results of these calls are, by call id; nothing where that cannot be told.

    ``before`` is the usage of the request that made the calls, ``after`` that of the next: its input is the input
    and the output of the first, and what the results added. Reasoning may be left out of the next prompt; where the sum
    says so, it is not counted. The calls share by the length of what was told of them.
    """
    if not calls or any("inputTokens" not in usage for usage in (before, after)):
        return {}
    grown = after["inputTokens"] - before["inputTokens"] - before.get("outputTokens", 0)
    grown = int(grown if grown >= 0 else grown + before.get("reasoningTokens", 0))
    return _shared(grown, {call.id: len(format_result(call)) for call in calls}) if grown >= 0 else {}


def _shared(tokens: int, lengths: Mapping[str, int]) -> dict[str, int]:
    """The tokens by length, whole ones, and all of them."""
    shares: dict[str, int] = {}
    left, longer = tokens, sum(lengths.values())
    for call, length in lengths.items():
        shares[call] = left * length // longer if longer else left // (len(lengths) - len(shares))
        left, longer = left - shares[call], longer - length
    return shares


# Costs --------------------------------------------------------------------------------------------------------


def total_cost(costs: Iterable[Mapping[str, Decimal] | None]) -> dict[str, Decimal] | None:
    """The costs added up by currency; None where one is not known, or there are none."""
    sums: dict[str, Decimal] = {}
    for cost in costs:
        if cost is None:
            return None
        for currency, amount in cost.items():
            sums[currency] = sums.get(currency, Decimal(0)) + amount
    return sums or None


def _cost(told: Json) -> dict[str, Decimal] | None:
    amounts = {}
    for currency, text in told.items() if isinstance(told, dict) else ():
        try:
            amount = Decimal(text) if isinstance(text, str) else None
        except InvalidOperation:
            continue
        if amount is not None and amount.is_finite() and amount >= 0:
            amounts[currency] = amount
    return amounts or None


def _cost_text(cost: Mapping[str, Decimal] | None) -> dict[str, str]:
    return {currency: f"{amount.normalize():f}" for currency, amount in (cost or {}).items()}
