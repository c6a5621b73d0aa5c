"""A queryable collection of tool calls, `ToolCalls`: the type of ``Transcript.calls``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from toolcall_nb.core.ports import port

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import Message, ToolCall


class ToolCalls(Mapping[str, "ToolCall"]):
    """Tool calls in order: a mapping by id, and by number and slice as a sequence. `df` is the table of them.

    Of two calls with the same id, it holds the later one. ``messages`` are those that the calls are from; the table
    takes the calls' turns and tokens from them. It is no ``dict``, because IPython has its own way to print one.
    """

    def __init__(self, calls: Iterable[ToolCall] = (), messages: Sequence[Message] = ()) -> None:
        self._calls = {call.id: call for call in calls}
        self._messages = messages
        self._in_order: tuple[ToolCall, ...] | None = None

    @overload
    def __getitem__(self, key: str | int) -> ToolCall: ...

    @overload
    def __getitem__(self, key: slice) -> ToolCalls: ...

    def __getitem__(self, key: str | int | slice) -> ToolCall | ToolCalls:
        if isinstance(key, str):
            return self._calls[key]
        if self._in_order is None:
            self._in_order = tuple(self._calls.values())
        return ToolCalls(self._in_order[key], self._messages) if isinstance(key, slice) else self._in_order[key]

    def __contains__(self, key: object) -> bool:
        return key in self._calls

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __repr__(self) -> str:
        return f"<ToolCalls: {', '.join(self._calls) or 'none'}>"

    @property
    def df(self) -> Any:
        """The calls as a `pandas.DataFrame`, one row a call; see `toolcall_nb.core.call_table` for the columns.

        What is not known is `pandas.NA`. Each argument also has a column, ``args.NAME``. Raises `MissingPackageError`
        where pandas is not installed.
        """
        from toolcall_nb.core.call_table import call_rows, calls_frame, message_calls

        turns = {call.id: turn for turn, call in message_calls(self._messages)}
        rows = call_rows(((turns.get(call.id), call) for call in self._calls.values()), self._messages)
        return calls_frame([*rows], "A table of calls as a data frame")

    def filter(
        self,
        *,
        name: str | Collection[str] | None = None,
        state: str | Collection[str] | None = None,
        text: str | None = None,
        min_seconds: float | None = None,
    ) -> ToolCalls:
        """Returns the calls that meet all conditions, in order.

        ``name`` is the tool's name, or several names. ``state`` is a state, or several, by name (``output-error``) or
        by the word of a card (``error``). ``text`` is found in the name, arguments, result, error or log, in any case
        of its letters. ``min_seconds`` is the least duration; a call whose duration is not known is left out.
        """
        from toolcall_nb.core.call_filter import call_filter

        is_wanted = call_filter(name=name, state=state, text=text, min_seconds=min_seconds)
        return ToolCalls(filter(is_wanted, self._calls.values()), self._messages)

    def search(self, pattern: str | re.Pattern[str]) -> ToolCalls:
        """Returns the calls that have the text, in any case of its letters, or a match of the compiled expression."""
        from toolcall_nb.core.call_filter import CallFilter
        from toolcall_nb.core.text_search import TextPattern

        return ToolCalls(filter(CallFilter(text=TextPattern(pattern)), self._calls.values()), self._messages)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the calls in a cell as a table."""
        calls = self.values()
        bundle: dict[str, str] = port("saved_calls_bundle")(calls, self._messages, include=include, exclude=exclude)
        return bundle
