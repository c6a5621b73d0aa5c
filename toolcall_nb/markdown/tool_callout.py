"""What a tool callout says: header and body together, by the rules of seed 000.

Header beats body for id and name; the aliases of each field are read in a fixed order. Scalars as id or name
become strings, as they are written. A ``state`` that is none of the known ones is reported and left out.
Whatever else the body holds is kept in ``extra``.

Beyond the seed, so that a transcript reads back whole: ``title``, ``approval``, ``inputText`` (the written form of an
input that never became complete), ``originalInput`` (before a person edited it), ``log``, ``display``, ``seen``,
``traceback`` (see `toolcall_nb.transcript.ToolCall`), ``preliminaryOutput``, ``providerExecuted``, ``dynamic``,
``providerMetadata``, ``toolMetadata``; and the states of approval, denial and interruption.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from toolcall_nb.events import MISSING, Json, Missing, Object
from toolcall_nb.markdown.callout import Header
from toolcall_nb.markdown.yaml_body import Body, BodyError, load_body
from toolcall_nb.transcript import Approval, State

__all__ = ["FIELDS", "SEED_FIELDS", "CallIds", "ToolCallout", "header_id", "header_name", "read_tool_callout"]

_HEADER_NAMES = ("name", "tool", "toolname")
_HEADER_IDS = ("id", "toolcallid", "call", "callid")
_BODY_NAMES = ("toolName", "tool_name", "name", "tool")
_BODY_IDS = ("toolCallId", "tool_call_id", "callId", "id", "toolCall")
_BODY_ERRORS = ("errorText", "error_text", "error")
SEED_FIELDS = frozenset((*_BODY_NAMES, *_BODY_IDS, *_BODY_ERRORS, "state", "input", "output"))
"""The names that seed 000 gives a meaning to, with their aliases."""
_TYPED: dict[str, tuple[str, type]] = {
    "title": ("title", str),
    "inputText": ("input_text", str),
    "log": ("log", str),
    "display": ("display", dict),
    "seen": ("seen", str),
    "traceback": ("traceback", str),
    "providerExecuted": ("provider_executed", bool),
    "dynamic": ("dynamic", bool),
    "providerMetadata": ("provider_metadata", dict),
    "toolMetadata": ("tool_metadata", dict),
}
FIELDS = SEED_FIELDS.union((*_TYPED, "approval", "originalInput", "preliminaryOutput", "extra"))
"""Every name that the body of a tool callout gives a meaning to."""


class CallIds:
    """The ids of the callouts of one message, in order."""

    def __init__(self) -> None:
        self._count = 0
        self._taken: set[str] = set()

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._taken

    def fallback(self) -> str:
        """``tool-call-N`` for the next callout, N counting callouts and skipping ids that are taken."""
        number = self._count + 1
        while f"tool-call-{number}" in self._taken:
            number += 1
        return f"tool-call-{number}"

    def add(self, call_id: str | None) -> None:
        """One more callout; ``call_id`` is None where it turned out to be none."""
        self._count += 1
        if call_id is not None:
            self._taken.add(call_id)


class ToolCallout(Struct, frozen=True, kw_only=True):
    """One callout. ``problems`` tells, for a person, what in it was left out and why; ``fields`` is its whole body."""

    id: str
    name: str = "tool"
    state: State | None = None
    input: Json | Missing = MISSING
    output: Json | Missing = MISSING
    error: str | None = None
    title: str | None = None
    open: bool | None = None
    input_text: str | None = None
    original_input: Json | Missing = MISSING
    log: str | None = None
    display: Object | None = None
    seen: str | None = None
    traceback: str | None = None
    preliminary_output: Json | Missing = MISSING
    approval: Approval | None = None
    provider_executed: bool | None = None
    dynamic: bool | None = None
    provider_metadata: Object | None = None
    tool_metadata: Object | None = None
    extra: Object = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    fields: Object = field(default_factory=dict)

    @property
    def is_edited(self) -> bool:
        """Whether a person who was asked made another input of the model's."""
        return self.approval is not None and self.input is not MISSING and self.original_input is not MISSING


def header_name(header: Header) -> str | None:
    """The tool's name as the header gives it: assigned, or the first positional value."""
    return _first(header.assigned, _HEADER_NAMES) or (header.positional[0] if header.positional else None)


def header_id(header: Header) -> str | None:
    """The call's id as the header gives it: assigned, or the next positional value after the name."""
    place = 0 if _first(header.assigned, _HEADER_NAMES) else 1
    positional = header.positional[place] if len(header.positional) > place else None
    return _first(header.assigned, _HEADER_IDS) or positional


def read_tool_callout(header: Header, body: str, ids: CallIds) -> ToolCallout:
    """Read a callout and count it in ``ids``.

    Raises `BodyError` where the body is no mapping; the callout is then text, and is counted all the same.
    """
    try:
        read = load_body(body)
    except BodyError:
        ids.add(None)
        raise
    problems: list[str] = []
    call_id = header_id(header) or _scalar(read, _BODY_IDS, problems) or ids.fallback()
    ids.add(call_id)
    state = _state(read.fields, problems)
    typed, extra = _typed(read.fields)
    return ToolCallout(
        id=call_id,
        name=header_name(header) or _scalar(read, _BODY_NAMES, problems) or "tool",
        state=state,
        input=read.fields.get("input", MISSING),
        output=read.fields.get("output", MISSING),
        error=_scalar(read, _BODY_ERRORS, problems, blank=state is State.OUTPUT_ERROR),
        original_input=read.fields.get("originalInput", MISSING),
        preliminary_output=read.fields.get("preliminaryOutput", MISSING),
        approval=_approval(call_id, state, read.fields.get("approval")),
        extra=extra,
        problems=tuple(problems),
        open=header.open,
        fields=read.fields,
        **{**typed, "title": header.title or typed.get("title")},
    )


def _first(mapping: dict[str, str], keys: tuple[str, ...]) -> str | None:
    return next((mapping[key] for key in mapping if key in keys), None)


def _scalar(body: Body, keys: tuple[str, ...], problems: list[str], blank: bool = False) -> str | None:
    """The first of ``keys`` that has a value, as it is written."""
    for key in keys:
        value = body.fields.get(key)
        written = body.written.get(key)
        if isinstance(value, (dict, list)):
            problems.append(f"{key!r} should be a single value")
        elif value is not None and written is not None and (blank or written.strip()):
            return written
    return None


def _state(fields: Object, problems: list[str]) -> State | None:
    value = fields.get("state")
    if value is None:
        return None
    try:
        return State(value)
    except ValueError:
        known = ", ".join(State)
        problems.append(f"the state {value!r:.80} is none of: {known}")
        return None


def _typed(fields: Object) -> tuple[Object, Object]:
    """The fields with a meaning and the type for it, and all that are left."""
    typed: Object = {}
    extra: Object = {}
    for key, value in fields.items():
        name, kind = _TYPED.get(key, ("", object))
        if name and isinstance(value, kind):
            typed[name] = value
        elif key == "extra" and isinstance(value, dict):
            extra.update(value)
        elif key not in FIELDS or name:
            extra[key] = value
    return typed, extra


def _approval(call_id: str, state: State | None, value: Any) -> Approval | None:
    if not isinstance(value, dict):
        asked = state in (State.APPROVAL_REQUESTED, State.APPROVAL_RESPONDED)
        if not asked:
            return None
        return Approval(id=f"{call_id}-approval", approved=True if state is State.APPROVAL_RESPONDED else None)
    given = value.get("id")
    return Approval(
        id=given if isinstance(given, str) else f"{call_id}-approval",
        approved=_typed_or_none(value.get("approved"), bool),
        reason=_typed_or_none(value.get("reason"), str),
        is_automatic=_typed_or_none(value.get("isAutomatic"), bool),
        signature=_typed_or_none(value.get("signature"), str),
    )


def _typed_or_none(value: Any, kind: type) -> Any:
    return value if isinstance(value, kind) else None
