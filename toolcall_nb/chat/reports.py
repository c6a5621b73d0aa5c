"""What is added to the message when the calls of a reply have ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolcall_nb import dialects
from toolcall_nb.core.events import MISSING, Diagnostic
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.dialects.json_call import result_text
from toolcall_nb.tools import Outcome, Registry

__all__ = ["reports", "results"]


def reports(dialect: str, calls: Sequence[ToolCall], troubles: Sequence[Diagnostic], tools: Registry) -> Iterator[str]:
    """What the dialect says of calls that could not be read, and of those that have ended, as Markdown."""
    for trouble in troubles:
        yield dialects.remark(dialect, trouble) or ""
    for call in calls:
        yield dialects.report(dialect, call, tools) or ""


def results(calls: Sequence[ToolCall], outcomes: Mapping[str, Outcome], tools: Registry) -> Iterator[str]:
    """What each call gave, in the words of seed 004, with the input as the tool got it."""
    for call in calls:
        outcome = outcomes.get(call.id)
        arguments = outcome.arguments if outcome is not None else None
        yield result_text(call, tools, MISSING if arguments is None else arguments)
