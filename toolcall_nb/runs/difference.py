"""Compares two runs: `diff`, and the `Difference` that it returns.

`toolcall_nb.runs.item_pairs` finds which items of the runs belong together, `toolcall_nb.runs.changes` what differs
between two of them, and `toolcall_nb.render` draws the result.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from toolcall_nb.core.comparison import ComparedRow, Comparison, FieldChange, RowKind, RowSide, Total
from toolcall_nb.core.data_frames import data_frame
from toolcall_nb.core.events import MISSING
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript
from toolcall_nb.core.usage import read_usage
from toolcall_nb.errors import UsageError
from toolcall_nb.redaction import Tally
from toolcall_nb.redaction.registered_secrets import saved_text, saved_value
from toolcall_nb.runs.changes import item_changes
from toolcall_nb.runs.item_pairs import ItemPair, pair_items
from toolcall_nb.runs.reading import read
from toolcall_nb.runs.run_items import RunItem, run_items

IGNORABLE = ("timings", "ids", "text")
"""The aspects that can be ignored: times, tokens and costs; ids and what providers add to them; texts and reasoning."""

_NAMES = ("A", "B")


def diff(a: Any, b: Any, *, ignore: str | Iterable[str] = (), names: tuple[str, str] | None = None) -> Difference:
    """Compares two runs.

    Each run is a transcript, a chat or anything else that has a transcript, a message, a call, or what
    `toolcall_nb.read` takes: Markdown, a file, a reply of an SDK.

    Calls belong together if they have the same name and similar arguments and stand in the same order; what they
    returned does not count for that. ``ignore`` names what does not count as a difference: "timings" (also tokens and
    costs), "ids", "text", as a list or with commas between them. Times differ if they do by more than 100 ms and 20 %.
    ``names`` are shown for the runs; otherwise files have their names, and others "A" and "B".

    Raises `UsageError` for something that is no run, and for an unknown word in ``ignore``.
    """
    ignored = _ignored(ignore)
    transcripts = (_transcript_of(a), _transcript_of(b))
    items = tuple(run_items(each, has_text="text" not in ignored) for each in transcripts)
    return _difference(transcripts, items, pair_items(*items), names or _names_of(a, b), ignored)


class Difference(Comparison, frozen=True):
    """The difference between two runs; true if they differ.

    ``rows`` has each call and text of both runs once, and ``totals`` calls, errors, seconds, tokens and cost. ``first``
    is the row where the runs diverge. In a cell it is shown as HTML; `to_text`, `data` and `df` are other forms.
    """

    transcripts: tuple[Transcript, Transcript] = (Transcript(), Transcript())
    pairs: tuple[ItemPair, ...] = ()

    def __bool__(self) -> bool:
        return self.differs

    def __repr__(self) -> str:
        from toolcall_nb.render.difference_words import describe_counts

        return f"<Difference: {describe_counts(self)}>"

    def to_text(self) -> str:
        """Returns the difference as plain text."""
        from toolcall_nb.render.difference_text import difference_text

        return difference_text(self)

    @property
    def data(self) -> dict[str, Any]:
        """The difference as JSON values: whether the runs differ, the totals, and a row for each item."""
        return {
            "names": list(self.names),
            "differs": self.differs,
            "ignored": list(self.ignored),
            "first": self.rows.index(self.first) if self.first is not None else None,
            "totals": [msgspec.to_builtins(total, enc_hook=str) for total in self.totals],
            "rows": [_record(row) | {"changes": list(map(_change_data, row.changes))} for row in self.rows],
        }

    @property
    def df(self) -> Any:
        """The rows as a pandas data frame: one for each call, text or other part, and for each changed message."""
        records = [_record(row) for row in self.rows if row.item not in ("run", "message") or row.kind != "="]
        columns = {name: [record[name] for record in records] for name in _COLUMNS}
        return data_frame(columns, "A difference as a data frame")

    def masked(self) -> tuple[Difference, Tally]:
        """Returns the difference without secrets, and their tally. A row keeps its kind if only a secret differs."""
        transcripts, tally = saved_value(self.transcripts)
        names = (saved_text(self.names[0]), saved_text(self.names[1]))
        if transcripts is self.transcripts:
            return replace(self, names=names), tally
        items = tuple(run_items(each, has_text="text" not in self.ignored) for each in transcripts)
        masked = _difference(transcripts, items, self.pairs, names, self.ignored)
        note = FieldChange("other", "", note="only masked secrets differ")
        rows = (
            row if row.kind == original.kind else replace(row, kind=original.kind, changes=(*row.changes, note))
            for row, original in zip(masked.rows, self.rows, strict=True)
        )
        return replace(masked, rows=tuple(rows)), tally

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """Shows the difference in a cell, without secrets."""
        from toolcall_nb.render.difference_text import difference_text
        from toolcall_nb.render.html_output.difference import difference_html
        from toolcall_nb.render.record_tables import make_bundle

        masked, tally = self.masked()
        makers = {
            "text/html": lambda: difference_html(masked, f"{tally}"),
            "text/plain": lambda: "\n\n".join(filter(None, (difference_text(masked), f"{tally}"))),
        }
        return make_bundle(makers, include, exclude)


def _ignored(words: str | Iterable[str]) -> tuple[str, ...]:
    aspects = [word.strip() for word in (words.split(",") if isinstance(words, str) else words) if word.strip()]
    unknown = [word for word in aspects if word not in IGNORABLE]
    if unknown:
        raise UsageError(f"{unknown[0]!r} cannot be ignored: name {', '.join(IGNORABLE[:-1])} or {IGNORABLE[-1]}.")
    return tuple(word for word in IGNORABLE if word in aspects)


def _transcript_of(thing: Any) -> Transcript:
    transcript = getattr(thing, "transcript", None)  # that of a chat, or of a run that was read
    return transcript if isinstance(transcript, Transcript) else read(thing)


def _names_of(a: Any, b: Any) -> tuple[str, str]:
    """Returns the names of two runs; two of the same file also have their ids."""
    one, other = _name_of(a) or _NAMES[0], _name_of(b) or _NAMES[1]
    if one != other:
        return one, other
    ids = [f" ({name})" if isinstance(name := getattr(each, "id", None), str) else "" for each in (a, b)]
    return one + ids[0], other + ids[1]


def _name_of(thing: Any) -> str:
    """Returns the name of a file, or the path of a run that was read from one."""
    path = thing if isinstance(thing, os.PathLike) else getattr(thing, "path", "")
    if isinstance(thing, str) and "\n" not in thing and os.path.exists(thing):
        path = thing
    return os.fsdecode(path) if isinstance(path, str | os.PathLike) else ""


# Rows and totals ------------------------------------------------------------------------------------------------


def _difference(
    transcripts: tuple[Transcript, ...],
    items: tuple[Sequence[RunItem], ...],
    pairs: Sequence[ItemPair],
    names: tuple[str, str],
    ignored: tuple[str, ...],
) -> Difference:
    rows = tuple(_row(pair, items[0], items[1], ignored) for pair in pairs)
    a, b = transcripts
    totals = tuple(_totals(a, b, has_timings="timings" not in ignored))
    return Difference(names, rows, totals, ignored, (a, b), tuple(pairs))


def _row(pair: ItemPair, a: Sequence[RunItem], b: Sequence[RunItem], ignored: Sequence[str]) -> ComparedRow:
    one = a[pair.a] if pair.a is not None else None
    other = b[pair.b] if pair.b is not None else None
    changes = item_changes(one, other, ignored) if one is not None and other is not None else ()
    item = other or one
    assert item is not None
    return ComparedRow(
        kind=_kind(pair, changes),
        item=item.kind,
        name=item.name,
        depth=pair.depth,
        a=_side(one),
        b=_side(other),
        changes=changes,
        is_coarse=pair.is_coarse,
    )


def _kind(pair: ItemPair, changes: Sequence[FieldChange]) -> RowKind:
    if pair.a is None:
        return "+"
    if pair.b is None:
        return "-"
    if pair.is_moved:
        return "moved"
    return "~" if any(change.aspect != "ids" for change in changes) else "="


def _side(item: RunItem | None) -> RowSide | None:
    if item is None:
        return None
    return RowSide(item.number, None if isinstance(item.value, Message | Transcript) else item.value, item.role)


_TOKENS = {
    "inputTokens": "tokens in",
    "cachedInputTokens": "of these cached",
    "cacheWriteTokens": "of these written to cache",
    "outputTokens": "tokens out",
    "reasoningTokens": "of these reasoning",
}


def _totals(a: Transcript, b: Transcript, *, has_timings: bool) -> Iterator[Total]:
    calls_a, calls_b = _calls(a), _calls(b)
    yield Total("calls", len(calls_a), len(calls_b))
    yield Total("errors", _count(calls_a, State.OUTPUT_ERROR), _count(calls_b, State.OUTPUT_ERROR))
    denied = _count(calls_a, State.OUTPUT_DENIED), _count(calls_b, State.OUTPUT_DENIED)
    if any(denied):
        yield Total("denied", *denied)
    if not has_timings:
        return
    yield Total("time in calls", _seconds(calls_a), _seconds(calls_b), "s")
    usage_a, usage_b = read_usage(a.messages), read_usage(b.messages)
    tokens_a, tokens_b = usage_a.usage, usage_b.usage
    for name, title in _TOKENS.items():
        if name in ("inputTokens", "outputTokens") or tokens_a.get(name) or tokens_b.get(name):
            yield Total(title, tokens_a.get(name), tokens_b.get(name))
    cost_a, cost_b = usage_a.cost or {}, usage_b.cost or {}
    for currency in sorted({*cost_a, *cost_b}):
        yield Total("cost", cost_a.get(currency), cost_b.get(currency), currency)


def _calls(transcript: Transcript) -> list[ToolCall]:
    return [call for message in transcript.messages if not message.repeated for call in message.calls]


def _count(calls: Sequence[ToolCall], state: State) -> int:
    return sum(call.state is state for call in calls)


def _seconds(calls: Sequence[ToolCall]) -> float | None:
    """Returns the sum of the calls' times; None if that of a call is unknown."""
    times = [call.seconds for call in calls if call.seconds is not None]
    return sum(times) if calls and len(times) == len(calls) else None


# Data -----------------------------------------------------------------------------------------------------------

_COLUMNS = (
    *("kind", "item", "name", "depth", "a", "b", "id_a", "id_b", "state_a", "state_b", "seconds_a", "seconds_b"),
    *("changed", "is_coarse"),
)


def _record(row: ComparedRow) -> dict[str, Any]:
    record = {"kind": row.kind, "item": row.item, "name": row.name, "depth": row.depth, "is_coarse": row.is_coarse}
    for name, side in (("a", row.a), ("b", row.b)):
        value = side.value if side is not None else None
        call = value if isinstance(value, ToolCall) else None
        record |= {
            name: side.number if side is not None else None,
            f"id_{name}": call.id if call is not None else None,
            f"state_{name}": call.state.value if call is not None else None,
            f"seconds_{name}": call.seconds if call is not None else None,
        }
    return record | {"changed": [change.path or change.aspect for change in row.changes]}


def _change_data(change: FieldChange) -> dict[str, Any]:
    fields: dict[str, Any] = {"aspect": change.aspect, "path": change.path}
    fields |= {name: value for name, value in (("a", change.a), ("b", change.b)) if value is not MISSING}
    fields |= {"lines": [f"{line.kind} {line.text}" for line in change.lines]} if change.lines else {}
    return fields | ({"note": change.note} if change.note else {})
