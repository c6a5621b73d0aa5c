"""The pictures of a tool call's result, and whether the model was sent them: `sent_pictures`.

When a call ends, its ``tool_metadata`` notes under `SENT_AS` whether the model that called is sent pictures or text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from toolcall_nb.core.call_display import displayed_bundles
from toolcall_nb.core.events import Json, Object
from toolcall_nb.core.transcript import State, ToolCall

SENT_AS = "sentAs"
_PICTURE, _TEXT = "picture", "text"

_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What the providers take."""

_MAX_SENT = 4
_MAX_CHARACTERS = 5_000_000
"""Pictures of one result that are sent, and the base64 characters of each: Anthropic takes 5 MB."""


def result_pictures(display: Mapping[str, Json] | None) -> list[tuple[str, str]]:
    """Returns the media type and base64 data of the pictures that a result is or that its tool displayed."""
    found: list[tuple[str, str]] = []
    for bundle in (display or {}, *displayed_bundles(display)):
        kind = next((kind for kind in _KINDS if isinstance(bundle.get(kind), str)), None)
        data = str(bundle[kind]) if kind is not None else ""
        if kind is not None and data and len(data) <= _MAX_CHARACTERS and _is_base64(data):
            found.append((kind, data))
    return found


def with_sent_as(metadata: Object | None, display: Mapping[str, Json] | None, *, sees: bool) -> Object | None:
    """Returns the metadata of a call that ends, with what a model that ``sees`` is sent; the same without a picture."""
    if not result_pictures(display):
        return metadata
    return {**(metadata or {}), SENT_AS: _PICTURE if sees else _TEXT}


def sent_pictures(call: ToolCall) -> list[tuple[str, str]]:
    """Returns the pictures that the model was sent; none if it was sent text."""
    if call.state is not State.OUTPUT_AVAILABLE or (call.tool_metadata or {}).get(SENT_AS) != _PICTURE:
        return []
    return result_pictures(call.display)[:_MAX_SENT]


def sent_note(call: ToolCall) -> str:
    """Returns what a card says of it: ``sent as a picture``, ``sent as text``; empty for a result without pictures."""
    kind = (call.tool_metadata or {}).get(SENT_AS)
    if kind not in (_PICTURE, _TEXT) or call.state is not State.OUTPUT_AVAILABLE:
        return ""
    sent, there = len(sent_pictures(call)), len(result_pictures(call.display))
    if kind == _TEXT or not sent:
        return "sent as text" if there else ""
    count = f"{sent} pictures" if sent > 1 else "a picture"
    return f"sent as {count}" if sent == there else f"sent as {count} of {there}"


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data)
    except (binascii.Error, ValueError):
        return False
    return True
