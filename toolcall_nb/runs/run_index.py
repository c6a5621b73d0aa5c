"""The index of many runs: `RunEntry` keeps of each run where it is and what a table shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from toolcall_nb.core.call_states import State
from toolcall_nb.core.call_table import message_calls
from toolcall_nb.core.run_outcome import run_outcome
from toolcall_nb.core.transcript import Message
from toolcall_nb.core.usage import answering_model, read_usage
from toolcall_nb.runs.formats.base import RecordedRun

_LONGEST_TITLE = 200
_LONGEST_ID = 200


class UnreadFile(NamedTuple):
    """A file that could not be read to its end, and the reason."""

    path: str
    reason: str


class RunEntry(Struct, frozen=True):
    """One run in the index. ``source`` is the file that it is read from, ``number`` its place there, from 0.

    The other fields are the columns of `toolcall_nb.runs.collection.Runs.df`; None is unknown. ``state`` is how the
    run ended (`toolcall_nb.core.run_outcome`) and ``error`` why. ``calls`` counts all calls, ``errors``, ``denied`` and
    ``interrupted`` those that ended so. ``label`` is the name that `run_many` was given for the model, ``model`` the
    one that answered, ``repetition`` counts from 1.
    """

    source: str
    number: int
    path: str
    id: str
    title: str | None
    prompt: str | None
    label: str | None
    repetition: int | None
    state: str | None
    error: str | None
    began: float | None
    seconds: float | None
    messages: int
    calls: int
    errors: int
    denied: int
    interrupted: int
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
    outcome = run_outcome(messages, is_unfinished=run.is_unfinished)
    about = _batch_fields(run)
    usage, cost = summary.usage, (summary.cost or {}).get("USD")
    return RunEntry(
        source=source,
        number=number,
        path=source if run.path == source else run.path,  # one string for all runs of a file
        id=run.id[:_LONGEST_ID],
        title=run.title[:_LONGEST_TITLE] or None,
        prompt=_first_prompt(messages),
        label=about.label,
        repetition=about.repetition,
        state=None if outcome.state is None else outcome.state.value,
        error=_one_line(outcome.error or "") or None,
        began=run.began,
        seconds=run.seconds,
        messages=len(messages),
        calls=len(states),
        errors=states.count(State.OUTPUT_ERROR),
        denied=states.count(State.OUTPUT_DENIED),
        interrupted=states.count(State.INTERRUPTED),
        tokens_in=_whole(usage.get("inputTokens")),
        tokens_out=_whole(usage.get("outputTokens")),
        cost=float(cost) if isinstance(cost, Decimal) else None,
        model=answering_model(messages)[:_LONGEST_ID] or None,
        diagnostics=len(run.transcript.diagnostics),
    )


class _BatchFields(NamedTuple):
    """The place of a run in its batch: the name that `run_many` was given for its model, and the repetition, from 1."""

    label: str | None = None
    repetition: int | None = None


def _batch_fields(run: RecordedRun) -> _BatchFields:
    """Returns what the header of the run's recording says about its batch."""
    header = run.extra.get("run")
    if not isinstance(header, dict):
        return _BatchFields()
    label, number = header.get("model"), header.get("number")
    return _BatchFields(
        label[:_LONGEST_ID] if isinstance(label, str) and label else None,
        number if type(number) is int and 0 < number < 2**31 else None,
    )


def is_entry_of(entry: RunEntry, run: RecordedRun) -> bool:
    """Whether the entry belongs to a run that is at its place in the file."""
    return entry.id == run.id[:_LONGEST_ID]


def _first_prompt(messages: Sequence[Message]) -> str | None:
    text = next((message.text for message in messages if message.role == "user" and message.text), "")
    return _one_line(text) or None


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * _LONGEST_TITLE].split())[:_LONGEST_TITLE]


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)
