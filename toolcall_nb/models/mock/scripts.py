"""Scripted replies of the mock model: `Script` gives the plan of one reply for each request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias

from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models.mock.scenarios import Call, Plan, Raise, Say, Think

ScriptedReply: TypeAlias = (
    str
    | tuple[Any, ...]
    | Sequence[Any]
    | BaseException
    | type[BaseException]
    | Callable[[Sequence[Message]], "ScriptedReply"]
)
"""One reply: a text, a call ``(name, arguments)`` or ``(name, arguments, id)``, an exception, `Think`, a list of
these, or a function that gets the messages and returns one of these."""

_EXPECTED = (
    "A reply is a text, a call as a tuple (name, arguments) or (name, arguments, id), an exception, "
    "a list of these, or a function of the messages."
)


class Script:
    """The replies of a mock model, in order: the n-th request gets the n-th reply.

    A request that is repeated after an error is a request of its own. Raises `UsageError`, with the position, for a
    reply that is none.
    """

    def __init__(self, replies: Iterable[ScriptedReply]) -> None:
        if isinstance(replies, str | Mapping) or not isinstance(replies, Iterable):
            raise UsageError(f"A script is a list of replies, but got {replies!r:.100}. {_EXPECTED}")
        self._plans = [_planned(reply, number) for number, reply in enumerate(replies, 1)]
        self._used = 0

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def left(self) -> int:
        """The number of replies that no request has got."""
        return len(self._plans) - self._used

    def fresh(self) -> Script:
        """Returns a script with the same replies, of which none is used."""
        made = copy(self)
        made._used = 0
        return made

    def next_plan(self, messages: Sequence[Message]) -> Plan:
        """Returns the plan for the next request. Raises `ModelError` if the script has ended."""
        if not self.left:
            raise ModelError(self._ended(messages))
        self._used += 1
        return self._plans[self._used - 1](messages)

    def _ended(self, messages: Sequence[Message]) -> str:
        count = f"{len(self)} {'reply' if len(self) == 1 else 'replies'}"
        last = messages[-1] if messages else Message("user")
        asked = f"results of {', '.join(call.name for call in last.calls)}" if last.calls else repr(last.text[:80])
        return (
            f"The script of the mock model has {count}, and this is request {self._used + 1}. The last message is of "
            f"the {last.role}: {asked}. Add a reply to the script, or see why the model is asked once more."
        )


def _planned(reply: Any, number: int) -> Callable[[Sequence[Message]], Plan]:
    """The function that plans a reply. A reply that is no function is checked at once."""
    if callable(reply) and not isinstance(reply, type):
        return lambda messages: _plan(reply(messages), f"The function that is reply {number} of the script")
    plan = _plan(reply, f"Reply {number} of the script")
    return lambda messages: plan


def _plan(reply: Any, place: str) -> Plan:
    """The plan of a reply; ``place`` is its name in the error for a reply that is none."""
    steps = [_step(item, place) for item in reply] if isinstance(reply, list) else [_step(reply, place)]
    end = next((number for number, step in enumerate(steps, 1) if isinstance(step, Raise)), len(steps))
    if end < len(steps):
        raise UsageError(f"{place} goes on after an exception, which ends a reply. Put the exception at its end.")
    return steps


def _step(item: Any, place: str) -> Say | Think | Call | Raise:
    match item:
        case str():
            return Say(item)
        case Say() | Think() | Call() | Raise():
            return item
        case BaseException():
            return Raise(item)
        case (str(name), Mapping() as arguments):
            return Call(name, dict(arguments))
        case (str(name), Mapping() as arguments, str(call_id)):
            return Call(name, dict(arguments), call_id)
    if isinstance(item, type) and issubclass(item, BaseException):
        return Raise(item())
    raise UsageError(f"{place} has {item!r:.100}, which is neither a text nor a call. {_EXPECTED}")
