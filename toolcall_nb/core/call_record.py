"""The times, the tokens and the Python value of a tool call: `CallRecord`."""

from __future__ import annotations

from typing import Any


class CallRecord:
    """The times of a tool call, its tokens, and its Python value. Unknown values are None.

    ``started`` is in seconds since the start of the run, ``seconds`` is the time from there to the call's end.
    ``tokens`` is the number of tokens that the result added to the next prompt. ``value`` is the object that the tool
    returned; only the process that ran the tool has it, so copies and pickles leave it out.

    All records are equal, so that two runs with the same calls are equal, however long the calls took. It is no
    struct: a value is never encoded or masked.
    """

    __slots__ = ("seconds", "started", "tokens", "value")

    def __init__(
        self,
        *,
        started: float | None = None,
        seconds: float | None = None,
        tokens: int | None = None,
        value: Any = None,
    ) -> None:
        self.started, self.seconds, self.tokens, self.value = started, seconds, tokens, value

    @property
    def is_known(self) -> bool:
        """Whether any of the times or the tokens is known."""
        return (self.started, self.seconds, self.tokens) != (None, None, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallRecord)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        known = {name: getattr(self, name) for name in ("started", "seconds", "tokens")}
        return f"CallRecord({', '.join(f'{name}={value!r}' for name, value in known.items() if value is not None)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _without_value, (self.started, self.seconds, self.tokens)


def _without_value(started: float | None, seconds: float | None, tokens: int | None) -> CallRecord:
    return CallRecord(started=started, seconds=seconds, tokens=tokens)


NO_RECORD = CallRecord()
"""The record of a call of which none was made."""
