"""Reads a tool callout, header and body together, by the rules of seed 000.

Header beats body for id and name; the aliases of each field are read in a fixed order. Scalars as id, name or error
become strings, as they are written; an error that is a list or a mapping becomes its JSON text. Nothing is lost: what
no field takes (a state that is none, a list as a name, an id beside the header's, a name that means nothing) is kept
in ``extra``, and where its name means something, a diagnostic says so.

Beyond the seed, so that a transcript reads back whole: ``title``, ``approval``, ``inputText`` (the written form of an
input that never became complete), ``originalInput`` (before a person edited it), ``log``, ``display``, ``seen``,
``traceback`` (see `toolcall_nb.core.transcript.ToolCall`), ``preliminaryOutput``, ``providerExecuted``, ``dynamic``,
``providerMetadata``, ``toolMetadata``; and the states of approval, denial and interruption.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct, field

from toolcall_nb.core.events import MISSING, Json, Missing, Object
from toolcall_nb.core.transcript import Approval, State
from toolcall_nb.markdown.callout import Header
from toolcall_nb.markdown.yaml_body import Body, BodyError, load_body

__all__ = [
    "CALLOUT_FIELDS",
    "SEED_CALLOUT_FIELDS",
    "CalloutIds",
    "ToolCallout",
    "header_id",
    "header_name",
    "read_tool_callout",
]

_HEADER_NAMES = ("name", "tool", "toolname")
_HEADER_IDS = ("id", "toolcallid", "call", "callid")
_BODY_NAMES = ("toolName", "tool_name", "name", "tool")
_BODY_IDS = ("toolCallId", "tool_call_id", "callId", "id", "toolCall")
_BODY_ERRORS = ("errorText", "error_text", "error")
SEED_CALLOUT_FIELDS = frozenset((*_BODY_NAMES, *_BODY_IDS, *_BODY_ERRORS, "state", "input", "output"))
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
_APPROVAL: dict[str, tuple[str, type]] = {
    "id": ("id", str),
    "approved": ("approved", bool),
    "reason": ("reason", str),
    "isAutomatic": ("is_automatic", bool),
    "signature": ("signature", str),
}
CALLOUT_FIELDS = SEED_CALLOUT_FIELDS.union((*_TYPED, "approval", "originalInput", "preliminaryOutput", "extra"))
"""Every name that the body of a tool callout gives a meaning to."""


class CalloutIds:
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
    """One callout. ``problems`` tells, for a person, what in it had no place; ``fields`` is its whole body."""

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


def read_tool_callout(header: Header, body: str, ids: CalloutIds) -> ToolCallout:
    """Read a callout and count it in ``ids``.

    Raises `BodyError` where the body is no mapping; the callout is then text, and is counted all the same.
    """
    try:
        read = load_body(body)
    except BodyError:
        ids.add(None)
        raise
    fields = _Fields(header, read)
    call_id = fields.text(_HEADER_IDS, header_id(header), _BODY_IDS) or ids.fallback()
    ids.add(call_id)
    name = fields.text(_HEADER_NAMES, header_name(header), _BODY_NAMES)
    state = fields.state()
    error = fields.error(blank=state is State.OUTPUT_ERROR)
    typed = {own: value for key, (own, kind) in _TYPED.items() if (value := fields.take(key, kind)) is not MISSING}
    return ToolCallout(
        id=call_id,
        name=name or "tool",
        state=state,
        input=fields.take("input"),
        output=fields.take("output"),
        error=error,
        original_input=fields.take("originalInput"),
        preliminary_output=fields.take("preliminaryOutput"),
        approval=fields.approval(call_id, state),
        extra=fields.rest(),
        problems=tuple(fields.problems),
        open=header.open,
        fields=read.fields,
        **typed,
    )


class _Fields:
    """The fields of a callout, from which its call takes those that it has a place for; `rest` is what is left."""

    def __init__(self, header: Header, body: Body) -> None:
        self._written = body.written
        self._left: Object = dict(body.fields)
        self._assigned = dict(header.assigned)
        self._title = header.title
        self.problems: list[str] = []
        assigned = (_first(header.assigned, _HEADER_NAMES), _first(header.assigned, _HEADER_IDS))
        self._unread = [*header.positional[assigned.count(None) :]]

    def take(self, key: str, kind: type = object) -> Any:
        """The value under ``key``, if it is of this kind; else `MISSING`. The header's title beats the body's."""
        said = self._title if key == "title" else None
        value = self._left.get(key, MISSING)
        if value is not MISSING and isinstance(value, kind) and said in (None, value):
            return self._left.pop(key)
        return MISSING if said is None else said

    def text(self, assigned: tuple[str, ...], said: str | None, keys: tuple[str, ...]) -> str | None:
        """What the header has ``said``, or the first of the body's single values under ``keys``, as it is written."""
        for key in assigned:
            if self._assigned.get(key) == said:
                self._assigned.pop(key, None)
        for key in keys:
            written = self._written.get(key) if self._left.get(key) is not None else None
            if written is not None and written.strip() and said in (None, written):
                said = written
                del self._left[key]
        return said

    def error(self, blank: bool) -> str | None:
        """The first value that says what went wrong; a list or a mapping as JSON. A ``blank`` text may say it too."""
        for key in _BODY_ERRORS:
            value = self._left.get(key)
            is_single = not isinstance(value, dict | list)
            written = self._written.get(key) if is_single else json.dumps(value, ensure_ascii=False)
            if value is not None and written is not None and (blank or written.strip()):
                del self._left[key]
                return written
        return None

    def state(self) -> State | None:
        """The state, if it is one."""
        value = self._left.get("state")
        if isinstance(value, str) and value in tuple(State):
            del self._left["state"]
            return State(value)
        if value is not None:
            self.problems.append(f"the state {value!r:.80} is none of: {', '.join(State)}")
        return None

    def approval(self, call_id: str, state: State | None) -> Approval | None:
        """The approval, or the one that the state speaks of. What it does not take of a mapping is left."""
        value = self.take("approval", dict)
        if value is MISSING:
            asked = state in (State.APPROVAL_REQUESTED, State.APPROVAL_RESPONDED)
            approved = True if state is State.APPROVAL_RESPONDED else None
            return Approval(id=f"{call_id}-approval", approved=approved) if asked else None
        known = {key: value[key] for key, (_, kind) in _APPROVAL.items() if isinstance(value.get(key), kind)}
        if len(known) < len(value):
            self._left["approval"] = {key: item for key, item in value.items() if key not in known}
        given = {own: known[key] for key, (own, _) in _APPROVAL.items() if key in known}
        return Approval(**{"id": f"{call_id}-approval", **given})

    def rest(self) -> Object:
        """The fields that the call has no place for."""
        extra = {key: value for key, value in self._left.items() if key != "extra"}
        nested = self._left.get("extra")
        if isinstance(nested, dict) and nested and extra.keys().isdisjoint(nested):
            extra |= nested
        elif "extra" in self._left:
            extra["extra"] = nested
        for key, value in self._left.items():
            if key in CALLOUT_FIELDS and key not in ("state", "extra") and value is not None:
                self.problems.append(f"the field {key!r} has no place for the value {value!r:.80}")
        for key, text in self._assigned.items():
            if extra.setdefault(key, text) != text:
                self._unread.append(f"{key}={text}")
        self.problems += [f"the value {value!r} of the header has no meaning" for value in self._unread]
        return extra


def _first(mapping: dict[str, str], keys: tuple[str, ...]) -> str | None:
    return next((mapping[key] for key in mapping if key in keys), None)
