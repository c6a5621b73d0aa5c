"""A queryable collection of tool calls, `ToolCalls`: the type of ``Transcript.calls``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import ToolCall

__all__ = ["ToolCalls"]


class ToolCalls(Mapping[str, "ToolCall"]):
    """Tool calls by id, in order. Of two calls with the same id, it holds the later one.

    It is no ``dict``, because IPython has its own way to print one.
    """

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._calls = {call.id: call for call in calls}

    def __getitem__(self, call_id: str) -> ToolCall:
        return self._calls[call_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __repr__(self) -> str:
        return f"<ToolCalls: {', '.join(self._calls) or 'none'}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the calls in a cell as a table."""
        from toolcall_nb.redaction.saved_output import saved_calls_bundle

        return saved_calls_bundle(self.values(), include=include, exclude=exclude)
