"""Finds text in many runs: `find_matches` returns `Match` objects, which `Matches` shows as a table.

In a Markdown file, `MarkdownLines` finds the line of a match. A transcript keeps no positions. So the parts are looked
for in the file one after the other, each behind the one before, and a text only between the beginnings of its part and
of the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from msgspec import Struct
from msgspec.structs import asdict

from toolcall_nb.core.data_frames import data_frame
from toolcall_nb.core.text_search import TextPattern, message_texts
from toolcall_nb.core.transcript import Part, ReasoningPart, TextPart, ToolCall, Transcript
from toolcall_nb.redaction.registered_secrets import saved_value
from toolcall_nb.render.record_tables import table_bundle
from toolcall_nb.render.saved_output import with_line
from toolcall_nb.render.value_lines import format_count
from toolcall_nb.runs.formats.base import RecordedRun
from toolcall_nb.runs.paths import common_folder, open_path, suffix_of
from toolcall_nb.runs.recorded_file import MARKDOWN
from toolcall_nb.runs.run_index import RunEntry

_BEFORE = 40
_AFTER = 120
_SHOWN = 50
_COLUMNS = ("run", "path", "run_id", "turn", "role", "call", "name", "field", "text", "line")
_NEAR = 50
"""The next line of a text is looked for in so many lines."""
_KEYS = {
    **{"arguments": ("input:", "inputText:"), "result": ("output:", "display:", "modelText:"), "log": ("log:",)},
    **{"error": ("error:", "errorText:", "error_text:"), "traceback": ("traceback:",), "approval": ("approval:",)},
}
"""The keys of a tool callout by the field of a search."""


class Match(Struct, frozen=True):
    """The first match of the pattern in a field.

    ``run`` is the number of the run in the collection that was searched. ``turn`` is the number of the message in its
    transcript, from 0; ``call`` and ``name`` are those of the tool call, if it is in one; of a text inside a call,
    ``call`` is that one. ``text`` is the match with the words around it. ``line`` is the line of a Markdown file, from
    1; None in other files, and where it is unknown.
    """

    run: int
    path: str
    run_id: str
    turn: int
    role: str
    call: str | None
    name: str | None
    field: str
    text: str
    line: int | None = None


class Matches(Sequence[Match]):
    """The matches of a pattern. ``runs`` are the runs that have them, each once.

    ``is_cut`` is true if the search ended at its limit.
    """

    def __init__(self, matches: Sequence[Match], runs: Sequence[RecordedRun], is_cut: bool) -> None:
        self._matches = matches
        self.runs = runs
        self.is_cut = is_cut

    def __len__(self) -> int:
        return len(self._matches)

    @overload
    def __getitem__(self, index: int) -> Match: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Match]: ...

    def __getitem__(self, index: int | slice) -> Match | Sequence[Match]:
        return self._matches[index]

    def __repr__(self) -> str:
        return f"<Matches: {self._count()}>"

    @property
    def df(self) -> Any:
        """The matches as a `pandas.DataFrame`."""
        rows = [asdict(match) for match in self._matches]
        return data_frame({name: [row[name] for row in rows] for name in _COLUMNS}, "A table of matches")

    def _count(self) -> str:
        more = "; there may be more, see `limit`" if self.is_cut else ""
        return f"{format_count(len(self._matches), 'places')} in {format_count(len(self.runs), 'runs')}{more}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the first matches in a cell as a table."""
        first = self._matches[:_SHOWN]
        folder = common_folder([match.path for match in first])
        lines = [self._count() if self._matches else "", f"Below {folder}" if folder else ""]
        (records, below), tally = saved_value(
            ([_record(match, folder) for match in first], " · ".join(filter(None, lines)))
        )
        bundle = table_bundle(
            records,
            summary=f"Search: {self._count()}",
            empty="Nothing was found.",
            numbers=("run", "turn"),
            hidden=len(self._matches) - len(records),
            include=include,
            exclude=exclude,
        )
        return with_line(bundle, " · ".join(filter(None, (below, f"{tally}"))))


def find_matches(
    runs: Iterable[tuple[RunEntry, RecordedRun]], pattern: str | re.Pattern[str], limit: int | None
) -> tuple[list[Match], list[RunEntry], bool]:
    """Returns the matches, the entries of the runs that have them, and whether it ended at the limit."""
    matches: list[Match] = []
    entries: list[RunEntry] = []
    for entry, match in iterate_matches(runs, pattern):
        if limit is not None and len(matches) >= limit:
            return matches, entries, True
        matches.append(match)
        if not entries or entries[-1] is not entry:
            entries.append(entry)
    return matches, entries, False


def iterate_matches(
    runs: Iterable[tuple[RunEntry, RecordedRun]], pattern: str | re.Pattern[str]
) -> Iterator[tuple[RunEntry, Match]]:
    """Yields the matches one by one, each with the entry of its run."""
    text_pattern = TextPattern(pattern)
    for number, (entry, run) in enumerate(runs):
        for match in _matches_in(number, entry, run, text_pattern):
            yield entry, match


def _matches_in(number: int, entry: RunEntry, run: RecordedRun, pattern: TextPattern) -> Iterator[Match]:
    lines: MarkdownLines | None = None
    for turn, message in enumerate(run.transcript.messages):
        last: tuple[int, str] | None = None
        for part, text in message_texts(message):
            if last == (id(part), text.field):  # the same field, as JSON and as its strings
                continue
            if (span := pattern.find(text.text)) is not None:
                last = (id(part), text.field)
                call, name = (part.id, part.name) if isinstance(part, ToolCall) else (part.parent, None)
                if lines is None and suffix_of(entry.source) == MARKDOWN:
                    with open_path(entry.source) as file:
                        lines = MarkdownLines(file.read().decode("utf-8-sig", "replace"), run.transcript)
                line = None if lines is None else lines.find(part, text.field, text.text, *span)
                words = _excerpt(text.text, *span)
                yield Match(number, entry.path, entry.id, turn, message.role, call, name, text.field, words, line)


def _excerpt(text: str, start: int, end: int) -> str:
    """Returns a match in one line, with the words around it."""
    first, last = max(0, start - _BEFORE), min(end, start + _AFTER) + _BEFORE
    words = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{words}{'…' if last < len(text) else ''}"


def _record(match: Match, folder: str) -> dict[str, Any]:
    return {
        **{"run": f"{match.run}", "turn": f"{match.turn}", "role": match.role, "call": match.name or ""},
        **{"field": match.field, "text": match.text, "path": match.path[len(folder) :]},
    }


class MarkdownLines:
    """The lines of a file that holds this transcript as Markdown."""

    def __init__(self, text: str, transcript: Transcript) -> None:
        self._lines = text.split("\n")
        self._starts: dict[int, int] = {}
        position = 0
        for part in (part for message in transcript.messages for part in message.parts):
            self._starts[id(part)] = position = self._start_of(part, position)
            position = self._end_of(part, position)
        ends = [*self._starts.values(), len(self._lines)][1:]
        self._ends = dict(zip(self._starts, ends, strict=True))

    def find(self, part: Part, field: str, text: str, start: int, end: int) -> int | None:
        """Returns the number of the line, from 1, that has ``text[start:end]``, a text of the part; None if unknown."""
        whole = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0].strip()
        first, last = self._starts[id(part)], self._ends[id(part)]
        if isinstance(part, ToolCall) and (keys := _KEYS.get(field)):
            first = next((i for i in range(first, last) if self._lines[i].lstrip("> ").startswith(keys)), first)
        for words in (whole, text[start:end].partition("\n")[0].strip()):
            if words and (index := self._index(words, first, last)) is not None:
                return index + 1
        return None

    def _start_of(self, part: Part, position: int) -> int:
        beginning = next(iter(_text_lines(part)), "")
        if isinstance(part, ToolCall):
            beginning = "[!tool"
        index = self._index(beginning, position, len(self._lines)) if beginning else None
        return position if index is None else index

    def _end_of(self, part: Part, position: int) -> int:
        """Returns the index of the line after the last one that certainly belongs to the part."""
        for line in _text_lines(part):
            index = self._index(line, position, min(position + _NEAR, len(self._lines)))
            position = position if index is None else index + 1
        return position + isinstance(part, ToolCall)

    def _index(self, text: str, start: int, end: int) -> int | None:
        return next((i for i in range(start, end) if text in self._lines[i]), None)


def _text_lines(part: Part) -> list[str]:
    """Returns the lines of a text that are not blank."""
    text = part.text if isinstance(part, TextPart | ReasoningPart) else ""
    return [stripped for line in text.split("\n") if (stripped := line.strip())]
