"""The tool calls of many runs, read one run after the other: `RunCalls`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from toolcall_nb.core.call_table import call_rows, calls_frame, message_calls
from toolcall_nb.core.text_search import CallFilter, TextPattern, call_filter
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.render.saved_output import saved_calls_bundle
from toolcall_nb.render.value_lines import MAX_ROWS
from toolcall_nb.runs.formats.base import RecordedRun
from toolcall_nb.runs.run_index import RunEntry


class RunCalls:
    """The calls of many runs, in order. Iterating reads the runs, and keeps none.

    ``runs`` gives the runs anew each time. Two runs may have calls of the same id, so this is no mapping.
    """

    def __init__(
        self, runs: Callable[[], Iterator[tuple[RunEntry, RecordedRun]]], conditions: tuple[CallFilter, ...] = ()
    ) -> None:
        self._runs = runs
        self._conditions = conditions

    def __iter__(self) -> Iterator[ToolCall]:
        for _, run in self._runs():
            for _, call in message_calls(run.transcript.messages):
                if self._is_wanted(call):
                    yield call

    def __repr__(self) -> str:
        return f"<RunCalls{', filtered' if self._conditions else ''}>"

    @property
    def df(self) -> Any:
        """The calls as a `pandas.DataFrame`, as ``ToolCalls.df``, with the number of the run in the column ``run``."""
        rows: list[dict[str, Any]] = []
        for number, (_, run) in enumerate(self._runs()):
            messages = run.transcript.messages
            calls = [*message_calls(messages)]
            for row, (_, call) in zip(call_rows(calls, messages), calls, strict=True):
                if self._is_wanted(call):
                    rows.append({"run": number, **row})
        return calls_frame(rows, "A table of calls as a data frame", first=("run",))

    def filter(
        self,
        *,
        name: str | Collection[str] | None = None,
        state: str | Collection[str] | None = None,
        text: str | None = None,
        min_seconds: float | None = None,
    ) -> RunCalls:
        """Returns the calls that meet all conditions, as `toolcall_nb.core.calls.ToolCalls.filter` takes them."""
        added = call_filter(name=name, state=state, text=text, min_seconds=min_seconds)
        return RunCalls(self._runs, (*self._conditions, added))

    def search(self, pattern: str | re.Pattern[str]) -> RunCalls:
        """Returns the calls that have the text, in any case of its letters, or a match of the compiled expression."""
        return RunCalls(self._runs, (*self._conditions, CallFilter(text=TextPattern(pattern))))

    def _is_wanted(self, call: ToolCall) -> bool:
        return all(condition(call) for condition in self._conditions)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the first calls in a cell as a table, and the number of the others."""
        first: list[ToolCall] = []
        count = 0
        for call in self:
            count += 1
            if count <= MAX_ROWS:
                first.append(call)
        return saved_calls_bundle(first, hidden=count - len(first), include=include, exclude=exclude)
