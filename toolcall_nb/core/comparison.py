"""The difference between two runs as values: `Comparison`, with its rows, changes and totals.

`toolcall_nb.runs.difference` makes them, and `toolcall_nb.render` draws them.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Literal, TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import MISSING, Json, Missing
from toolcall_nb.core.transcript import Part, Role, ToolCall

RowKind: TypeAlias = Literal["=", "~", "+", "-", "moved"]
"""Equal, changed, only in the second run, only in the first run, or in another place."""

ItemKind: TypeAlias = Literal["run", "message", "call", "text", "reasoning", "part"]
"""The kind of item that a row compares; "part" is any other part of a message, such as a file or a source."""

Aspect: TypeAlias = Literal["arguments", "result", "text", "state", "timings", "ids", "other"]
ASPECTS: tuple[Aspect, ...] = ("arguments", "result", "text", "state", "timings", "ids", "other")
"""The groups of changes, in the order in which they are shown."""

_MORE_THAN = 0.1
_SHARE = 0.2


class DiffLine(Struct, frozen=True):
    """A line, or a paragraph, of two compared texts.

    ``kind`` is "=" for a line of both, "-" for one of the first and "+" for one of the second text; "…" is a remark in
    the place of lines that are left out. ``marks`` are the ranges within the line that differ from its counterpart;
    there are none where the line has no counterpart.
    """

    kind: Literal["=", "-", "+", "…"]
    text: str
    marks: tuple[tuple[int, int], ...] = ()


class FieldChange(Struct, frozen=True):
    """One difference between two paired items.

    ``path`` is the JSON path within the arguments, as in ``filters[0].name``, or else the name of the field. ``a`` and
    ``b`` are the two values, `MISSING` where there is none. Longer texts have ``lines``. ``note`` says in words what
    the values do not show.
    """

    aspect: Aspect
    path: str
    a: Json | Missing = MISSING
    b: Json | Missing = MISSING
    lines: tuple[DiffLine, ...] = ()
    note: str = ""


class RowSide(Struct, frozen=True):
    """The item of one run in a row. ``number`` counts the items of its kind in the run, from 1.

    ``value`` is the call or other part; None for a message, or for the run itself.
    """

    number: int
    value: Part | None = None
    role: Role | None = None


class ComparedRow(Struct, frozen=True, kw_only=True):
    """Two items that belong together, or one that has no counterpart: then ``a`` or ``b`` is None.

    ``name`` is the tool's name, or the role or type of other items. ``depth`` is the number of calls that a call ran
    inside of. ``is_coarse`` if the pair was found by a shortcut, since too much around it differs.
    """

    kind: RowKind
    item: ItemKind
    name: str
    depth: int = 0
    a: RowSide | None = None
    b: RowSide | None = None
    changes: tuple[FieldChange, ...] = ()
    is_coarse: bool = False

    @property
    def side(self) -> RowSide:
        """The item of the second run, or that of the first if the second has none."""
        side = self.b or self.a
        assert side is not None
        return side

    @property
    def call(self) -> ToolCall | None:
        """The tool call of `side`; None if the row is about something else."""
        return self.side.value if isinstance(self.side.value, ToolCall) else None

    @property
    def has_other_id(self) -> bool:
        """Whether ids differ, which does not make a row changed."""
        return any(change.aspect == "ids" for change in self.changes)


class Total(Struct, frozen=True):
    """A number for each of the two whole runs, None where it is not known. ``unit`` is empty, ``s`` or a currency."""

    name: str
    a: int | float | Decimal | None
    b: int | float | Decimal | None
    unit: str = ""

    @property
    def differs(self) -> bool:
        """Whether both numbers are known and differ; those of seconds by more than noise."""
        if self.a is None or self.b is None:
            return False
        return is_other_time(float(self.a), float(self.b)) if self.unit == "s" else self.a != self.b


def is_other_time(a: float, b: float) -> bool:
    """Whether two durations in seconds differ by more than 100 ms and by more than a fifth of the longer one."""
    return abs(a - b) > max(_MORE_THAN, _SHARE * max(a, b))


class Comparison(Struct, frozen=True):
    """Two runs compared: a row for each item of each run, and totals.

    ``names`` are those under which the runs are shown; ``ignored`` are the aspects that do not count as differences
    and are in none of the rows and totals.
    """

    names: tuple[str, str]
    rows: tuple[ComparedRow, ...]
    totals: tuple[Total, ...]
    ignored: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the runs differ in anything that is not ignored."""
        if any(row.kind != "=" or row.has_other_id for row in self.rows):
            return True
        return any(total.differs for total in self.totals)

    @property
    def first(self) -> ComparedRow | None:
        """The first row that is not equal: where the runs diverge. A message counts only if nothing else differs."""
        differing = [row for row in self.rows if row.kind != "="]
        return next((row for row in differing if row.item != "message"), differing[0] if differing else None)

    @property
    def counts(self) -> dict[RowKind, int]:
        """The number of rows by kind. Messages, whose parts have rows, count only if they are changed themselves."""
        kinds = Counter(row.kind for row in self.rows if row.kind == "~" or row.item not in ("message", "run"))
        order: tuple[RowKind, ...] = ("=", "~", "+", "-", "moved")
        return {kind: kinds[kind] for kind in order}
