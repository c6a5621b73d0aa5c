"""The index of many runs: `RunEntry` keeps of each run where it is and what a table shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from toolcall_nb.core.call_states import State
from toolcall_nb.core.call_table import message_calls
from toolcall_nb.core.transcript import Message
from toolcall_nb.core.usage import read_usage
from toolcall_nb.traces.formats.base import RecordedRun

__all__ = ["RunEntry", "UnreadFile", "entry_of", "is_entry_of"]

_LONGEST_TITLE = 200
_LONGEST_ID = 200


class UnreadFile(NamedTuple):
    """A file that could not be read to its end, and the reason."""

    path: str
    reason: str


class RunEntry(Struct, frozen=True):
    """One run in the index. ``source`` is the file that it is read from, ``number`` its place there, from 0.

    The other fields are the columns of `toolcall_nb.traces.collection.Runs.df`; None is unknown.
    """

    source: str
    number: int
    path: str
    id: str
    title: str | None
    prompt: str | None
    began: float | None
    seconds: float | None
    messages: int
    calls: int
    errors: int
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    model: str | None
    diagnostics: int


def entry_of(source: str, number: int, run: RecordedRun) -> RunEntry:
    """Returns the entry of a run that was read from ``source``."""
    messages = run.transcript.messages
    states = [call.state for _, call in message_calls(messages)]
    summary = read_usage(messages)
    usage, cost = summary.usage, (summary.cost or {}).get("USD")
    return RunEntry(
        source=source,
        number=number,
        path=source if run.path == source else run.path,  # one string for all runs of a file
        id=run.id[:_LONGEST_ID],
        title=run.title[:_LONGEST_TITLE] or None,
        prompt=_first_prompt(messages),
        began=run.began,
        seconds=run.seconds,
        messages=len(messages),
        calls=len(states),
        errors=states.count(State.OUTPUT_ERROR),
        tokens_in=_whole(usage.get("inputTokens")),
        tokens_out=_whole(usage.get("outputTokens")),
        cost=float(cost) if isinstance(cost, Decimal) else None,
        model=_last_model(messages),
        diagnostics=len(run.transcript.diagnostics),
    )


def is_entry_of(entry: RunEntry, run: RecordedRun) -> bool:
    """Whether the entry belongs to a run that is at its place in the file."""
    return entry.id == run.id[:_LONGEST_ID]


def _first_prompt(messages: Sequence[Message]) -> str | None:
    text = next((message.text for message in messages if message.role == "user" and message.text), "")
    return " ".join(text[: 4 * _LONGEST_TITLE].split())[:_LONGEST_TITLE] or None


def _last_model(messages: Sequence[Message]) -> str | None:
    models = (message.metadata.get("model") for message in reversed(messages))
    return next((model[:_LONGEST_ID] for model in models if isinstance(model, str) and model), None)


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)
