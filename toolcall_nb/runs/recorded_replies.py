"""Tells the replies apart that one file holds, each as chunks of a stream or as a whole: `split_replies`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from toolcall_nb.core.sdk_objects import as_mapping, get


class _Choice(Struct, frozen=True):
    """A part of a record: one of the answers that were asked for, which are told apart by their index."""

    index: int
    has_content: bool
    reason: str | None


def split_replies(records: Sequence[Any]) -> list[Sequence[Any]]:
    """Returns the records of each reply. Records of formats whose streams cannot be told apart are one reply.

    A reply of OpenAI or Ollama ends with its last chunk; only that has a reason. Chunks without content may follow,
    such as one with the usage. Replies of Google are told apart by their ids, and so are AG-UI's threads. Older
    streams of Google have no ids and a reason in each chunk; they repeat the number of the prompt's tokens.
    """
    replies: list[list[Any]] = []
    reply_id: str | None = None
    reasons: dict[int, str] = {}
    for record in records:
        fields = as_mapping(record)
        choices = list(_choices(fields))
        record_id = _id_of(fields)
        if reply_id and record_id:
            begins = reply_id != record_id
        else:
            begins = any(_begins(choice, reasons) for choice in choices)
        if not replies or begins:
            replies.append([])
            reply_id, reasons = None, {}
        replies[-1].append(record)
        reply_id = reply_id or record_id
        reasons |= {choice.index: choice.reason for choice in choices if choice.reason is not None}
    return [*replies] or [records]


def _id_of(fields: Mapping[str, Any]) -> str | None:
    if fields.get("type") == "RUN_STARTED":
        name = _field(fields, "threadId", "thread_id")
    else:
        usage = as_mapping(_field(fields, "usageMetadata", "usage_metadata"))
        name = _field(fields, "responseId", "response_id") or _field(usage, "promptTokenCount", "prompt_token_count")
    return None if name is None else str(name)


def _begins(choice: _Choice, reasons: Mapping[int, str]) -> bool:
    """Whether an answer begins anew: it has ended, and has content again, or ends for another reason."""
    ended = reasons.get(choice.index)
    return ended is not None and (choice.has_content or choice.reason not in (None, ended))


def _choices(fields: Mapping[str, Any]) -> Iterator[_Choice]:
    feedback = as_mapping(_field(fields, "promptFeedback", "prompt_feedback"))
    if (blocked := _field(feedback, "blockReason", "block_reason")) is not None:
        yield _Choice(0, has_content=True, reason=str(blocked))
    if isinstance(fields.get("done"), bool):  # Ollama's lines end with the one that says so
        yield _Choice(0, has_content=True, reason="done" if fields["done"] else None)
    for position, item in enumerate(get(fields, "candidates", list) or get(fields, "choices", list) or []):
        choice = as_mapping(item)
        index = get(choice, "index", int)
        reason = _field(choice, "finishReason", "finish_reason")
        content = _field(choice, "content", "delta", "message", "text")
        parts = get(content, "parts", list) or [content]
        has_content = any(_is_content(part) for part in parts)
        yield _Choice(position if index is None else index, has_content, None if reason is None else str(reason))


def _field(fields: Mapping[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _is_content(part: Any) -> bool:
    """Whether a part of Google's, a delta or a text holds anything but its role."""
    if isinstance(part, Mapping):
        return any(value for name, value in part.items() if name != "role" and name != "parts")
    return bool(part)
