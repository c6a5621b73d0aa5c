"""The changes between two paired items of runs: `item_changes`.

Providers and agent frameworks name a response, thread, checkpoint or span, and say when it was made and what it took.
Each run has other ones. So in metadata they count as ids and timings, whatever the provider; everything else there
counts as it stands. Arguments and results are no metadata: an id in them is part of what happened, but for the results
of tools that a provider runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolcall_nb.core.comparison import ASPECTS, Aspect, FieldChange, is_other_time
from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.parts import QUESTION_FIELDS
from toolcall_nb.core.transcript import Message, ReasoningPart, TextPart, ToolCall, Transcript
from toolcall_nb.render.value_lines import Bounds, draw_value, format_count
from toolcall_nb.runs.run_items import TIME_OF_DAY, VOLATILE, RunItem, compared_fields
from toolcall_nb.runs.text_lines import MAX_COMPARED, compare_lines, compare_paragraphs

_MAX_CHANGES = 100
"""The most changes of one item that are kept."""
_LINE = 60
"""A text that is longer, or has several lines, is compared by line."""
_BOUNDS = Bounds(characters=MAX_COMPARED, rows=100_000, depth=64, key=1_000)
_PLAIN_KEY = re.compile(r"\w+")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ID_WORDS = frozenset(
    {
        *("id", "ids", "uid", "uuid", "guid", "ulid", "etag", "nonce", "cursor", "fingerprint", "signature"),
        *("signatures", "traceparent", "tracestate", "encrypted"),
    }
)
"""The words of a name that make the field an id: ``responseId``, ``system_fingerprint``, ``thoughtSignature``."""
_MODEL_WORDS = frozenset({"assistant", "deployment", "model"})
"""The words of a name that make an id the name of what answers, which is a difference: ``modelId``."""
_ID_OWNERS = frozenset({"checkpoint", "container", "conversation", "generation", "interaction", "request", "response"})
_ID_OWNERS |= {"run", "session", "span", "task", "thread", "trace", "turn", "previous"}
"""The names of what providers and frameworks keep: a text in a field of such a name is an id."""
_TIME_WORDS = frozenset(
    {
        *("at", "created", "date", "duration", "elapsed", "expires", "expiry", "finished", "latency", "modified"),
        *("ms", "ns", "seconds", "started", "time", "timestamp", "timestamps", "times", "timing", "timings", "ts"),
        *("updated", "us"),
        *("billed", "cost", "costs", "metrics", "price", "token", "tokens", "usage"),
    }
)
"""The last words of a name that make the field a time, or tokens and costs, which count with the times."""


def item_changes(a: RunItem, b: RunItem, ignored: Sequence[str] = ()) -> tuple[FieldChange, ...]:
    """Returns the differences between two items of the same kind, by aspect, without those that are ignored.

    Beyond a number of them, the last one says how many there are in all.
    """
    changes = [change for change in _CHANGES[a.kind](a.value, b.value) if change.aspect not in ignored]
    changes.sort(key=lambda change: ASPECTS.index(change.aspect))
    hidden = len(changes) - _MAX_CHANGES
    if hidden > 0:
        changes[_MAX_CHANGES:] = [FieldChange("other", "…", note=f"{format_count(hidden, 'more changes')}")]
    return tuple(changes)


def _of_run(a: Transcript, b: Transcript) -> Iterator[FieldChange]:
    states = [MISSING if state is None else state.value for state in (a.outcome.state, b.outcome.state)]
    yield from _values("state", "outcome", *states)
    yield from _values("other", "", a.metadata, b.metadata)


def _of_message(a: Message, b: Message) -> Iterator[FieldChange]:
    yield from _values("other", "", compared_fields(a), compared_fields(b))
    yield from _values("ids", "id", a.id, b.id)


def _of_text(a: TextPart | ReasoningPart, b: TextPart | ReasoningPart) -> Iterator[FieldChange]:
    if a.text != b.text:
        lines = compare_paragraphs(a.text, b.text)
        yield FieldChange("text", "text", lines=lines, note="" if lines else "only blank lines differ")
    yield from _values("ids", "provider_metadata", a.provider_metadata, b.provider_metadata)


def _of_part(a: Any, b: Any) -> Iterator[FieldChange]:
    yield from _values("other", "", compared_fields(a), compared_fields(b))
    for name in ("id", "source_id", "provider_metadata"):
        yield from _values("ids", name, getattr(a, name, None), getattr(b, name, None))


# Calls ----------------------------------------------------------------------------------------------------------


def _of_call(a: ToolCall, b: ToolCall) -> Iterator[FieldChange]:
    yield from _values("arguments", "", a.input, b.input)
    yield from _values("arguments", "unfinished arguments", a.input_text or MISSING, b.input_text or MISSING)
    yield from _values("arguments", "as the model wrote it", a.original_input, b.original_input)
    yield from _result(a, b)
    yield from _values("result", "error", _or_missing(a.error), _or_missing(b.error))
    yield from _values("state", "state", a.state.value, b.state.value)
    if a.seconds is not None and b.seconds is not None and is_other_time(a.seconds, b.seconds):
        yield FieldChange("timings", "seconds", a.seconds, b.seconds)
    yield from _values("other", "printed", a.log or MISSING, b.log or MISSING)
    yield from _values("other", "told to the model", _or_missing(a.model_text), _or_missing(b.model_text))
    yield from _values("other", "traceback", _or_missing(a.traceback), _or_missing(b.traceback))
    if a.contents != b.contents and _is_same(a.output, b.output) and a.error == b.error:
        yield FieldChange("other", "contents", note="the result has other texts or pictures beside it")
    if a.display != b.display and _is_same(a.output, b.output):
        yield FieldChange("other", "display", note="the result is displayed in another way")
    for name in ("title", "open", "provider_executed", "dynamic"):
        yield from _values("other", name, _or_missing(getattr(a, name)), _or_missing(getattr(b, name)))
    yield from _values("other", "approval", _approval(a), _approval(b))
    yield from _values("other", "tool_metadata", _tool_metadata(a), _tool_metadata(b))
    yield from _values("other", "extra", a.extra, b.extra)
    yield from _values("ids", "id", a.id, b.id)
    yield from _values("ids", "approval", _approval_ids(a), _approval_ids(b))
    yield from _values("ids", "provider_metadata", a.provider_metadata or {}, b.provider_metadata or {})


def _or_missing(value: Any) -> Any:
    """Returns the value; `MISSING` instead of None, which is no difference to show."""
    return MISSING if value is None else value


def _approval(call: ToolCall) -> dict[str, Any]:
    approval = call.approval
    if approval is None:
        return {}
    answer = {"approved": approval.approved, "reason": approval.reason, "is_automatic": approval.is_automatic}
    question = {name: getattr(approval, name) for name in QUESTION_FIELDS if name != "signature"}
    return answer | {name: value for name, value in question.items() if value is not None}


def _approval_ids(call: ToolCall) -> list[Any]:
    return [] if call.approval is None else [call.approval.id, call.approval.signature]


def _tool_metadata(call: ToolCall) -> dict[str, Any]:
    """Returns the metadata without the parent: the rows of a comparison are nested already."""
    return {key: value for key, value in (call.tool_metadata or {}).items() if key != "parent"}


def _result(a: ToolCall, b: ToolCall) -> Iterator[FieldChange]:
    """Yields the change of the result, by line. Ids that a provider put into the result of its own tool are ids."""
    if _is_same(a.output, b.output):
        return
    if a.provider_executed and b.provider_executed and _is_same(_without_ids(a.output), _without_ids(b.output)):
        yield FieldChange("ids", "result", note="only ids of the provider differ in the result")
        return
    if not _has_lines(a.output) and not _has_lines(b.output):
        yield FieldChange("result", "", a.output, b.output)
    else:
        yield _by_line("result", "", _result_text(a.output), _result_text(b.output))


def _has_lines(value: Json) -> bool:
    """Whether the value takes more than one line, or a long one."""
    return isinstance(value, dict | list) or (isinstance(value, str) and (len(value) > _LINE or "\n" in value))


def _result_text(output: Json) -> str | None:
    """Returns a result as a card shows it, in lines; a text as it is; None if there is none."""
    if output is MISSING:
        return None
    if isinstance(output, str):
        return output
    return "\n".join(entry.text for entry in draw_value(output, _BOUNDS))


def _by_line(aspect: Aspect, path: str, a: str | None, b: str | None) -> FieldChange:
    lengths = [len(text or "") for text in (a, b)]
    if max(lengths) > MAX_COMPARED:
        sizes = " and ".join(format_count(length, "characters") for length in lengths)
        return FieldChange(aspect, path, note=f"differs, and is too long to be compared by line: {sizes}")
    lines = compare_lines(a, b)
    return FieldChange(aspect, path, lines=lines, note="" if lines else "differs, though it looks alike")


# Values ---------------------------------------------------------------------------------------------------------


def _values(aspect: Aspect, path: str, a: Json, b: Json) -> Iterator[FieldChange]:
    """Yields the differences of two JSON values by path. Lists are compared item by item, without their equal ends.

    Ids and times have their own aspects within values of the aspect "other", which are metadata and the like.
    """
    if a is b:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            inner = _name_aspect(key) or aspect if aspect == "other" else aspect
            yield from _values(inner, _joined(path, key), a.get(key, MISSING), b.get(key, MISSING))
    elif isinstance(a, list) and isinstance(b, list):
        head = _equal_items(a, b, min(len(a), len(b)))
        tail = _equal_items(a[::-1], b[::-1], min(len(a), len(b)) - head)
        end_a, end_b = len(a) - tail, len(b) - tail
        for number in range(head, max(end_a, end_b)):
            one = a[number] if number < end_a else MISSING
            other = b[number] if number < end_b else MISSING
            yield from _values(aspect, f"{path}[{number}]", one, other)
    elif not _is_same(a, b):
        if aspect == "other":
            aspect = _value_aspect(path, a, b) or aspect
        texts = [None if value is MISSING else value for value in (a, b)]
        is_text = all(text is None or isinstance(text, str) for text in texts)
        if is_text and any(map(_has_lines, texts)):
            yield _by_line(aspect, path, *texts)
        else:
            yield FieldChange(aspect, path, a, b)


def _joined(path: str, key: str) -> str:
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def _equal_items(a: Sequence[Json], b: Sequence[Json], most: int) -> int:
    """Returns how many items at the beginning are equal."""
    return next((number for number in range(most) if not _is_same(a[number], b[number])), most)


def _is_same(a: Json, b: Json) -> bool:
    """Whether two JSON values are equal, as JSON is: 1 is not true."""
    if a is b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and _is_same(item, b[key]) for key, item in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


# Ids and times in metadata ----------------------------------------------------------------------------------------


def _name_aspect(name: str) -> Aspect | None:
    """Returns "ids" or "timings" for a field that holds an id or a time, whatever its value; None for any other."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not _ID_WORDS.isdisjoint(words) and _MODEL_WORDS.isdisjoint(words):
        return "ids"
    return "timings" if words and words[-1] in _TIME_WORDS else None


def _value_aspect(name: str, a: Json, b: Json) -> Aspect | None:
    """Returns "ids" or "timings" where two values of a field differ only in ids or times; None where in more.

    ``name`` is that of the field, or the path to it; each value is no object or list.
    """
    texts = [value for value in (a, b) if isinstance(value, str)]
    words = _WORD.findall(name)
    if texts and words and words[-1].lower() in _ID_OWNERS and not any(" " in text for text in texts):
        return "ids"
    if len(texts) < 2 or len({VOLATILE.sub("*", text) for text in texts}) > 1:
        return None
    return "timings" if len({re.sub(TIME_OF_DAY, "*", text) for text in texts}) == 1 else "ids"


def _without_ids(value: Json) -> Json:
    """Returns a JSON value without the fields that hold ids, at any depth."""
    if isinstance(value, list):
        return [_without_ids(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_ids(item) for name, item in value.items() if _name_aspect(name) != "ids"}
    return value


_CHANGES: dict[str, Callable[[Any, Any], Iterator[FieldChange]]] = {
    "run": _of_run,
    "message": _of_message,
    "call": _of_call,
    "text": _of_text,
    "reasoning": _of_text,
    "part": _of_part,
}
"""By the kind of item."""
