"""Parts of a transcript as pydantic-ai's, with what their provider wants back."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from toolcall_nb.events import MISSING, Object
from toolcall_nb.json_text import for_models
from toolcall_nb.told import told_text
from toolcall_nb.transcript import FilePart, Part, ReasoningPart, State, TextPart, ToolCall

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        ModelResponsePart,
        ThinkingPart,
        ToolCallPart,
        ToolReturnPart,
        UserContent,
    )
    from pydantic_ai.messages import TextPart as SaidPart

__all__ = [
    "call_part",
    "file_content",
    "native_parts",
    "provider_of",
    "result_part",
    "said_part",
    "thought_part",
]

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_NO_TEXT = "(The result is an empty text.)"
_OUTCOMES = {
    State.OUTPUT_AVAILABLE: "success",
    State.OUTPUT_ERROR: "failed",
    State.OUTPUT_DENIED: "denied",
}


def provider_of(part: Part) -> str | None:
    """Whose part it is, in pydantic-ai's name for the provider; None where nothing is known."""
    metadata = getattr(part, "provider_metadata", None)
    return next((name for name, own in metadata.items() if isinstance(own, Mapping)), None) if metadata else None


def said_part(part: TextPart) -> SaidPart:
    """Text of the model."""
    from pydantic_ai.messages import TextPart as SaidPart

    about = _about(part)
    about.pop("signature", None)
    return SaidPart(part.text, **about)


def thought_part(part: ReasoningPart) -> ThinkingPart:
    """Reasoning, with its signature."""
    from pydantic_ai.messages import ThinkingPart

    return ThinkingPart(part.text, **_about(part))


def call_part(call: ToolCall) -> ToolCallPart:
    """A call of one of the caller's tools. A name that no provider would take is told as near to it as they take."""
    from pydantic_ai.messages import ToolCallPart

    about = _about(call)
    about.pop("signature", None)
    return ToolCallPart(_name(call), _arguments(call), call.id, **about)


def result_part(call: ToolCall) -> ToolReturnPart:
    """What came of a call, as text. Anthropic refuses an empty one: "text content blocks must be non-empty"."""
    from pydantic_ai.messages import ToolReturnPart

    outcome: Any = _OUTCOMES.get(call.state, "interrupted")
    text = told_text(call)
    return ToolReturnPart(_name(call), text if text.strip() else _NO_TEXT, call.id, outcome=outcome)


def native_parts(call: ToolCall) -> list[ModelResponsePart]:
    """A call that the provider ran, and its result: only both together, and only back to whoever ran it."""
    from pydantic_ai.messages import NativeToolCallPart, NativeToolReturnPart

    provider = provider_of(call)
    if provider is None or call.output is MISSING or call.state is not State.OUTPUT_AVAILABLE:
        return []
    about = _about(call)
    about.pop("signature", None)
    return [
        NativeToolCallPart(call.name, _arguments(call), call.id, **about),
        NativeToolReturnPart(call.name, for_models(call.output), call.id, provider_name=provider),
    ]


def _about(part: TextPart | ReasoningPart | ToolCall) -> Object:
    """The provider's name, and what it said of the part; the reverse of what `toolcall_nb.adapters` keeps."""
    provider = provider_of(part)
    own: Object = dict((part.provider_metadata or {})[provider]) if provider is not None else {}
    known = {name: own.pop(name) for name in ("id", "signature") if isinstance(own.get(name), str)}
    return {"provider_name": provider, "provider_details": own or None, **known} if provider is not None else {}


def _name(call: ToolCall) -> str:
    return _NO_NAME.sub("_", call.name)[:_LONGEST_NAME]


def _arguments(call: ToolCall) -> str | dict[str, Any]:
    """An object; what was written instead of one stays what it is, and pydantic-ai wraps it for who needs one."""
    if call.input is MISSING or call.input is None:
        return {}
    if isinstance(call.input, dict | str):
        return for_models(call.input)  # type: ignore[no-any-return]  # as is what went in
    return {"input": for_models(call.input)}


# Files ------------------------------------------------------------------------------------------------------


def file_content(part: FilePart) -> UserContent:
    """A file that a person sends along: its bytes, or where it is to be had."""
    from pydantic_ai import messages

    if part.url.startswith("data:"):
        return messages.BinaryContent(_data(part.url), media_type=part.media_type)
    family = part.media_type.partition("/")[0]
    if family == "image":
        return messages.ImageUrl(part.url, media_type=_exact(part.media_type))
    if family == "audio":
        return messages.AudioUrl(part.url, media_type=_exact(part.media_type))
    if family == "video":
        return messages.VideoUrl(part.url, media_type=_exact(part.media_type))
    return messages.DocumentUrl(part.url, media_type=_exact(part.media_type))


def _exact(media_type: str) -> str | None:
    return None if media_type.endswith("/*") else media_type


def _data(url: str) -> bytes:
    """The bytes of a ``data:`` URL (RFC 2397); of one that is broken, what there is."""
    head, _, body = url.partition(",")
    if not head.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote_to_bytes(body))
    except binascii.Error:
        return b""
