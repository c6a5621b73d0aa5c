"""Messages that are being collected from a trace: `MessageDraft`, and `finish_drafts`, which makes them messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.core.transcript import Message, Part, Role
from toolcall_nb.core.usage import RequestUsage, estimate_result_tokens, to_metadata
from toolcall_nb.runs.formats.spans.joining import JoinedCall


class MessageDraft(Struct, eq=False):
    """A message that is not complete."""

    role: Role
    parts: list[Part | JoinedCall] = field(default_factory=list)
    requests: list[RequestDraft] = field(default_factory=list)
    cut: str | None = None


class RequestDraft(Struct, eq=False):
    """A request to a model, with the calls that its answer asked for."""

    usage: RequestUsage
    calls: list[JoinedCall] = field(default_factory=list)


def finish_drafts(
    drafts: Iterable[MessageDraft], conversations: Iterable[Sequence[RequestDraft]]
) -> tuple[Message, ...]:
    """Returns the messages. ``conversations`` are the requests of each conversation, in order."""
    kept = [draft for draft in drafts if draft.parts or draft.requests]
    for draft in kept:
        draft.parts = _nested(draft.parts)
    _give_ids(part for draft in kept for part in draft.parts if isinstance(part, JoinedCall))
    for requests in conversations:
        _estimate_tokens(requests)
    return tuple(map(_message, kept))


def _nested(parts: list[Part | JoinedCall]) -> list[Part | JoinedCall]:
    """Returns the parts, each call followed by those that ran inside of it."""
    inner = [part for part in parts if isinstance(part, JoinedCall) and part.parent is not None]
    if not inner:
        return parts
    inside: dict[int, list[JoinedCall]] = {}
    here = {id(part) for part in parts}
    for call in inner:
        if id(call.parent) in here:
            inside.setdefault(id(call.parent), []).append(call)
    nested = {id(call) for calls in inside.values() for call in calls}
    found: list[Part | JoinedCall] = []
    waiting = [part for part in reversed(parts) if id(part) not in nested]
    while waiting:
        found.append(part := waiting.pop())
        waiting += reversed(inside.get(id(part), ()))
    return found


def _give_ids(calls: Iterable[JoinedCall]) -> None:
    """Gives each call an id that no other has: its own, else that of its span, else a number."""
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    for call in calls:
        own = [each for each in (call.id, call.run.id if call.run is not None else None) if each and each.strip()]
        found = next((each for each in own if each not in taken), None)
        stem = own[0] if own else "tool-call"
        while found is None or found in taken:
            numbers[stem] += 1
            found = f"{stem}-{numbers[stem]}"
        call.final_id = found
        taken.add(found)


def _estimate_tokens(requests: Sequence[RequestDraft]) -> None:
    for before, after in pairwise(requests):
        ended = [part for call in before.calls if (part := call.tool_call()).is_final and not part.provider_executed]
        added = estimate_result_tokens(ended, before.usage.usage, after.usage.usage)
        before.usage = replace(before.usage, added=added)
        for call in before.calls:
            call.tool_call().record.tokens = added.get(call.final_id)


def _message(draft: MessageDraft) -> Message:
    usages = [request.usage for request in draft.requests]
    model = next((usage.model for usage in reversed(usages) if usage.model), None)
    metadata: Mapping[str, Any] = {**({"model": model} if model else {}), **to_metadata(usages)}
    parts = tuple(part.tool_call() if isinstance(part, JoinedCall) else part for part in draft.parts)
    return Message(draft.role, parts, metadata=dict(metadata), finish_reason=draft.cut)
