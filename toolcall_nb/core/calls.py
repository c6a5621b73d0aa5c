"""Tool calls: their times (`CallRecord`), collections (`ToolCalls`) and nesting (`CallNesting`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from toolcall_nb.core.call_states import State
from toolcall_nb.core.lazy_imports import port

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import Message, ToolCall


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
        fields = {name: getattr(self, name) for name in ("started", "seconds", "tokens")}
        return f"CallRecord({', '.join(f'{name}={value!r}' for name, value in fields.items() if value is not None)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return CallRecord, (), (None, {"started": self.started, "seconds": self.seconds, "tokens": self.tokens})


_LARGEST = 2**53

NO_RECORD = CallRecord()
"""The record of a call of which none was made."""


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
        from toolcall_nb.core.text_search import call_filter

        is_wanted = call_filter(name=name, state=state, text=text, min_seconds=min_seconds)
        return ToolCalls(filter(is_wanted, self._calls.values()), self._messages)

    def search(self, pattern: str | re.Pattern[str]) -> ToolCalls:
        """Returns the calls that have the text, in any case of its letters, or a match of the compiled expression."""
        from toolcall_nb.core.text_search import CallFilter, TextPattern

        return ToolCalls(filter(CallFilter(text=TextPattern(pattern)), self._calls.values()), self._messages)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the calls in a cell as a table."""
        calls = self.values()
        bundle: dict[str, str] = port("saved_calls_bundle")(calls, self._messages, include=include, exclude=exclude)
        return bundle


class Inside(NamedTuple):
    """What ran inside a call, at any depth: the agent, the number of calls and of errors, and the tokens."""

    agent: str | None = None
    calls: int = 0
    errors: int = 0
    tokens: int | float = 0


class CallNesting:
    """What ran inside of what: the depth of each call, the name of the call around it, and what is inside it, by id.

    The steps and errors of ``messages`` say what is inside beside calls.
    A parent that is not among the calls, or that ran inside of the call itself, does not count.
    """

    def __init__(self, calls: Iterable[ToolCall] = (), messages: Sequence[Message] = ()) -> None:
        self._parents: dict[str, str | None] = {}
        self._names: dict[str, str] = {}
        self._failed: set[str] = set()
        self._parent_ids: set[str] = set()
        self._own: dict[int, dict[str, Inside]] = {}  # of each message: what is directly inside its calls, but no calls
        for call in calls:
            self._note(call)
        for number, message in enumerate(messages):
            self._own[number] = _own_inside(message)
        self._depths = _depths(self._parents)
        self._inside = self._count()

    def add(self, call: ToolCall) -> set[str]:
        """Notes a call, or its change; returns the ids of the known calls that are to be shown in another way."""
        call_id, parent = call.id, call.parent
        is_new = call_id not in self._parents
        is_same = not is_new and (self._parents[call_id], self._names[call_id]) == (parent, call.name)
        had_failed = call_id in self._failed
        self._note(call)
        failed = (call_id in self._failed) - had_failed
        if is_same and not failed:
            return set()
        if is_same or (is_new and call_id not in self._parent_ids):
            if is_new:
                self._depths[call_id] = 0 if parent is None else self._depths.get(parent, -1) + 1
            return self._add_inside(call_id, int(is_new), failed)
        return self._changed(call_id)

    def expect(self, call_id: str) -> None:
        """Notes that something is inside a call, which may come later."""
        self._parent_ids.add(call_id)

    def discard(self, call_id: str) -> set[str]:
        """Forgets a call; returns what `add` returns."""
        parent = self._parents.pop(call_id, None)
        self._names.pop(call_id, None)
        self._depths.pop(call_id, None)
        self._failed.discard(call_id)
        return {call_id, *self._changed(call_id)} if call_id in self._parent_ids or parent is not None else set()

    def set_message(self, number: int, message: Message) -> set[str]:
        """Notes the steps and the errors of a message, the one with this number; returns what `add` returns."""
        own = _own_inside(message)
        if own == self._own.get(number, {}):
            return set()
        self._own[number] = own
        self._parent_ids.update(own)
        former, self._inside = self._inside, self._count()
        return {each for each in self._parents if former.get(each) != self._inside.get(each)}

    def depth(self, call_id: str) -> int:
        """Returns the number of calls around a call."""
        return self._depths.get(call_id, 0)

    def depth_inside(self, call_id: str | None) -> int:
        """Returns the number of calls around what is inside a call; 0 for a call that is not known, and for None."""
        return self._depths.get(call_id, -1) + 1 if call_id is not None else 0

    def around(self, call_id: str) -> str:
        """Returns the name of the call around a call; empty for a call of the run itself."""
        parent = self._parents.get(call_id)
        return self._names.get(parent, "") if parent is not None and self._depths.get(call_id) else ""

    def speaker(self, call_id: str) -> str:
        """Returns who speaks inside a call: the name of the agent, or else that of the call."""
        return self.inside(call_id).agent or self._names.get(call_id, "")

    def inside(self, call_id: str) -> Inside:
        """Returns what ran inside a call."""
        return self._inside.get(call_id, _NOTHING)

    def _note(self, call: ToolCall) -> None:
        self._parents[call.id], self._names[call.id] = call.parent, call.name
        if call.parent is not None:
            self._parent_ids.add(call.parent)
        (self._failed.add if call.state is State.OUTPUT_ERROR else self._failed.discard)(call.id)

    def _calls_around(self, call_id: str) -> Iterator[str]:
        for _ in range(self.depth(call_id)):
            call_id = self._parents[call_id] or ""
            yield call_id

    def _add_inside(self, call_id: str, calls: int, errors: int) -> set[str]:
        """Counts a call in the calls around it, whose ids it returns."""
        around = set(self._calls_around(call_id))
        for each in around:
            former = self.inside(each)
            self._inside[each] = former._replace(calls=former.calls + calls, errors=former.errors + errors)
        return around

    def _count(self) -> dict[str, Inside]:
        """Counts what is inside of each call."""
        inside: dict[str, Inside] = {}
        for call_id, own in ((call_id, own) for each in self._own.values() for call_id, own in each.items()):
            if call_id in self._parents:
                inside[call_id] = inside.get(call_id, _NOTHING)._replace(agent=own.agent)
                for each in (call_id, *self._calls_around(call_id)):
                    former = inside.get(each, _NOTHING)
                    errors, tokens = former.errors + own.errors, former.tokens + own.tokens
                    inside[each] = former._replace(errors=errors, tokens=tokens)
        for call_id in self._parents:
            for each in self._calls_around(call_id):
                former = inside.get(each, _NOTHING)
                errors = former.errors + (call_id in self._failed)
                inside[each] = former._replace(calls=former.calls + 1, errors=errors)
        return inside

    def _changed(self, call_id: str) -> set[str]:
        former, self._depths = self._depths, _depths(self._parents)
        former_inside, self._inside = self._inside, self._count()
        changed = {each for each, depth in self._depths.items() if depth != former.get(each)}
        changed |= {each for each in self._parents if former_inside.get(each) != self._inside.get(each)}
        return changed | {each for each, parent in self._parents.items() if call_id in (each, parent)}


_NOTHING = Inside()


def _own_inside(message: Message) -> dict[str, Inside]:
    """Returns what the steps and the errors of a message say of what is inside each call."""
    from toolcall_nb.core.parts import ErrorPart

    inside: dict[str, Inside] = {}
    for start in message.step_starts:
        if start.parent is not None:
            former, usage = inside.get(start.parent, _NOTHING), start.usage or {}
            counts = [usage.get(name) for name in ("inputTokens", "outputTokens")]
            tokens = sum(count for count in counts if isinstance(count, int | float) and 0 <= count < _LARGEST)
            agent = start.agent or former.agent
            inside[start.parent] = former._replace(agent=agent, tokens=former.tokens + tokens)
    for part in message.parts:
        if part.parent is not None and isinstance(part, ErrorPart):
            former = inside.get(part.parent, _NOTHING)
            inside[part.parent] = former._replace(errors=former.errors + 1)
    return inside


def _depths(parents: Mapping[str, str | None]) -> dict[str, int]:
    depths: dict[str, int] = {}
    for start in parents:
        path: dict[str, None] = {}
        here: str | None = start
        while here is not None and here in parents and here not in depths and here not in path:
            path[here] = None
            here = parents[here]
        depth = depths[here] + 1 if here in depths else 0
        for call_id in reversed(path):
            depths[call_id], depth = depth, depth + 1
    return depths
