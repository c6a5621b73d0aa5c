"""Limits of a turn: `SpendingLimits` in tokens, cost, seconds and calls. `TurnLimits` watches a turn, `Spent` counts.

The limits are checked after each reply and before each call, and the seconds also while a reply streams. A tool that
runs is never cut. What a model does not report is not counted, and the turn says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from msgspec import Struct

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.core.usage import RequestUsage, UsageSummary
from toolcall_nb.errors import UsageError
from toolcall_nb.models.base import Model, model_name
from toolcall_nb.sources.event_loop import WHILE_WAITING

_DOLLARS = "USD"
_TO_GO_ON = "Ask again to go on, or raise {name} ({option})."


class SpendingLimits(Struct, frozen=True, kw_only=True):
    """The most that one turn may spend; None is any. Raises `UsageError` for a limit that is no positive number.

    ``max_tokens`` counts input and output of all requests, ``max_cost`` is in US dollars, ``max_seconds`` by the chat's
    clock, also while a person is asked, and ``max_calls`` counts calls of tools.
    """

    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    max_calls: int | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is None:
                continue
            is_whole = name in ("max_tokens", "max_calls")
            is_number = isinstance(value, int if is_whole else int | float | Decimal) and not isinstance(value, bool)
            if not (is_number and math.isfinite(value) and (value > 0 or name == "max_calls")):
                kind = "a whole number" if is_whole else "a number"
                least = "at least 0" if name == "max_calls" else "above 0"
                raise UsageError(f"{name} is {kind} {least}, or None, but is {value!r:.100}.")


class Spent(Struct, frozen=True):
    """The amount spent. ``cost`` is in US dollars, of the requests whose price is known; ``seconds`` by the clock."""

    tokens: int = 0
    cost: Decimal | None = None
    seconds: float = 0.0
    calls: int = 0

    def __str__(self) -> str:
        return self.describe()

    def describe(self, *, has_seconds: bool = True) -> str:
        """Returns the amounts as text, with the seconds or without them."""
        cost = [] if self.cost is None else [_dollars(self.cost)]
        seconds = [f"{self.seconds:.1f} s"] if has_seconds else []
        return ", ".join([f"{self.tokens:,} tokens", *cost, *seconds, _calls(self.calls)])


class Account(UsageSummary, frozen=True):
    """The tokens and costs of a chat, request by request, and what its turns in this session have spent.

    ``seconds`` and ``calls`` are those of all its turns, ``turn`` is the last one.
    """

    seconds: float = 0.0
    calls: int = 0
    turn: Spent = Spent()


class OutOfTime(BaseException):
    """The turn has reached ``max_seconds``. No ``except Exception`` of a model may take it for an error of its own."""


class TurnLimits:
    """Counts what one turn spends. ``clock`` returns seconds."""

    def __init__(self, limits: SpendingLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._start: float | None = None
        self._end: float | None = None
        self._requests: list[RequestUsage] = []
        self._calls = 0
        self._has_refused = False
        self._has_noted_cost = False
        self.was_cut = False

    def begin(self) -> None:
        """Starts the clock."""
        self._start = self._clock()

    def end(self) -> None:
        """Stops the clock."""
        self._end = self._clock()

    @property
    def spent(self) -> Spent:
        """The amount spent so far."""
        counts = UsageSummary(tuple(self._requests)).usage
        tokens = counts.get("inputTokens", 0) + counts.get("outputTokens", 0) or counts.get("totalTokens", 0)
        costs = [request.cost[_DOLLARS] for request in self._requests if request.cost and _DOLLARS in request.cost]
        seconds = 0.0 if self._start is None else (self._clock() if self._end is None else self._end) - self._start
        return Spent(int(tokens), sum(costs, Decimal(0)) if costs else None, seconds, self._calls)

    def add(self, requests: Sequence[RequestUsage], model: Model) -> Iterator[Event]:
        """Adds the requests of a reply of a model.

        Yields a note, once a turn for each, if limited tokens are not reported, or if the cost of a reply is not known,
        which is seen only in the reply: the price depends on where the request went and on which model answered.
        """
        is_first = not self._requests
        self._requests += requests
        if self.was_cut:
            return
        if self._limits.max_tokens is not None and is_first and not any(request.usage for request in requests):
            text = f"The model reports no tokens, so max_tokens={self._limits.max_tokens} cannot be checked."
            yield ev.Data(ev.NOTICE, text)
        is_known = all(request.cost is not None and _DOLLARS in request.cost for request in requests)
        if self._limits.max_cost is not None and not is_known and not self._has_noted_cost:
            self._has_noted_cost = True
            limit = f"max_cost={_dollars(self._limits.max_cost)}"
            yield ev.Data(
                ev.NOTICE,
                f"The price of {model_name(model)} is not known, so {limit} does not limit what it costs. "
                "max_tokens (--max-tokens) needs no price.",
            )

    def watch(self, events: Iterable[Event]) -> Iterable[Event]:
        """Returns the events of a reply, which raise `OutOfTime` at ``max_seconds``, also while none comes."""
        return events if self._limits.max_seconds is None else self._watched(iter(events))

    def _watched(self, events: Iterator[Event]) -> Iterator[Event]:
        while True:
            token = WHILE_WAITING.set(self._check_time)
            try:
                self._check_time()
                event = next(events, None)
            finally:
                WHILE_WAITING.reset(token)
            if event is None:
                return
            yield event

    def allowed(self, calls: Iterable[ToolCall], refused: list[ToolCall]) -> Iterator[ToolCall]:
        """Yields the calls that may run, each when it is its turn, and adds the others to ``refused``."""
        for call in calls:
            used_up = self._limits.max_calls is not None and self._calls >= self._limits.max_calls
            if used_up or self._limit() is not None:
                self._has_refused = True
                refused.append(call)
            else:
                self._calls += 1
                yield call

    def reached(self, goes_on: bool) -> str | None:
        """Returns a sentence if a limit ends the turn: the limit, what was spent, how to go on.

        ``goes_on``: the model would be asked again. Otherwise a limit ends the turn only if it has cut a reply or
        refused a call.
        """
        name = self._limit() or ("max_calls" if self._has_refused else None)
        if name is None or not (goes_on or self._has_refused or self.was_cut):
            return None
        to_go_on = _TO_GO_ON.format(name=name, option=f"--{name.replace('_', '-')}")
        # The sentence is saved with the notebook: without a limit of time it is the same each time that the cell runs.
        spent = self.spent.describe(has_seconds=self._limits.max_seconds is not None)
        return f"The turn ended: {self._describe(name)}. It has spent {spent}. {to_go_on}"

    def _describe(self, name: str) -> str:
        limit = getattr(self._limits, name)
        amounts = {
            "max_tokens": f"{limit:,} tokens",
            "max_cost": _dollars(limit),
            "max_seconds": f"{limit} s",
            "max_calls": _calls(limit),
        }
        return f"the limit of {amounts[name]} is reached"

    def _limit(self) -> str | None:
        """Returns the name of the limit of tokens, cost or time that is reached."""
        spent, limits = self.spent, self._limits
        if limits.max_tokens is not None and spent.tokens >= limits.max_tokens:
            return "max_tokens"
        if limits.max_cost is not None and spent.cost is not None and float(spent.cost) >= limits.max_cost:
            return "max_cost"
        if limits.max_seconds is not None and spent.seconds >= limits.max_seconds:
            return "max_seconds"
        return None

    def _check_time(self) -> None:
        most = self._limits.max_seconds
        if most is not None and self.spent.seconds >= most:
            self.was_cut = True
            raise OutOfTime


def _dollars(amount: float | Decimal) -> str:
    """Formats an amount with two decimals or more, as ``$0.50`` and ``$0.005``."""
    whole, _, cents = f"{Decimal(str(amount)).normalize():f}".partition(".")
    return f"${whole}.{cents:0<2}"


def _calls(number: int) -> str:
    return f"{number:,} {'call' if number == 1 else 'calls'}"
