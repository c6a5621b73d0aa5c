"""Converts parts of a transcript into pydantic-ai's parts, with the metadata that their provider needs back."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    Citation,
    CompactionPart,
    DocumentUrl,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    VideoUrl,
)
from pydantic_ai.messages import FilePart as ModelFilePart
from pydantic_ai.messages import TextPart as ModelTextPart

from toolcall_nb.core.call_display import sent_contents
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import CustomPart, FilePart, Part, ReasoningPart, State, TextPart, ToolCall

_NOT_IN_PYDANTIC_AI_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME = 64
_NAMED_TEXT = re.compile(r"data:(?:text/[\w.+-]+|application/json);name=([^;,]{1,600})[;,]")
_EMPTY_RESULT = "(The result is an empty text.)"
_OUTCOMES = {
    State.OUTPUT_AVAILABLE: "success",
    State.OUTPUT_ERROR: "failed",
    State.OUTPUT_DENIED: "denied",
}


def provider_of_part(part: Part) -> str | None:
    """Returns the provider of a part, by its name in pydantic-ai; None if unknown."""
    metadata = getattr(part, "provider_metadata", None)
    return next((name for name, value in metadata.items() if isinstance(value, Mapping)), None) if metadata else None


def text_part(part: TextPart) -> ModelTextPart:
    """Returns the text part of a model, with its citations."""
    fields, details = _provider_metadata(part)
    citations = _citations(details.pop("cited", None))
    return ModelTextPart(part.text, id=_pop_text(details, "id"), citations=citations, **fields(details))


def thinking_part(part: ReasoningPart) -> ThinkingPart:
    """Returns the thinking part with its signature. Raw reasoning goes into the details, not into the text."""
    fields, details = _provider_metadata(part)
    text = part.text
    if details.get("raw_content") is True:
        text, details["raw_content"] = "", [part.text]
    part_id, signature = _pop_text(details, "id"), _pop_text(details, "signature")
    return ThinkingPart(text, id=part_id, signature=signature, **fields(details))


def joined_reasoning(parts: Iterable[ModelResponsePart]) -> list[ModelResponsePart]:
    """Returns the parts; the raw reasoning of an item and its first summary become one part again."""
    joined: list[ModelResponsePart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, ThinkingPart) and isinstance(last, ThinkingPart) and last.id == part.id:
            is_raw = not last.content and bool(_raw(last))
            if is_raw:
                part.provider_details = {**(part.provider_details or {}), "raw_content": [*_raw(last), *_raw(part)]}
                part.signature = part.signature or last.signature
                joined.pop()
        joined.append(part)
    return joined


def _raw(thought: ThinkingPart) -> list[str]:
    return (thought.provider_details or {}).get("raw_content") or []


def tool_call_part(call: ToolCall) -> ToolCallPart:
    """Returns the call of one of our tools. A name that no provider accepts is changed to a similar valid one."""
    fields, details = _provider_metadata(call)
    return ToolCallPart(_name(call), _arguments(call), call.id, **_call_fields(details), **fields(details))


def model_file_part(part: FilePart) -> ModelFilePart:
    """Returns a file that the model made."""
    fields, details = _provider_metadata(part)
    content = BinaryContent.narrow_type(BinaryContent(_data(part.url), media_type=part.media_type))
    return ModelFilePart(content, id=_pop_text(details, "id"), **fields(details))


def compaction_part(part: CustomPart) -> CompactionPart | None:
    """Returns a provider's summary of earlier messages; None for other custom parts."""
    provider = provider_of_part(part)
    if provider is None or not part.kind.endswith(".compaction"):
        return None
    metadata = _metadata_of(part, provider)
    details = metadata.get("provider_details")
    return CompactionPart(
        _pop_text(metadata, "content"),
        id=_pop_text(metadata, "id"),
        provider_name=provider,
        provider_details=details if isinstance(details, dict) else None,
    )


def result_part(call: ToolCall, provider: str | None, *, pictures: bool) -> ToolReturnPart:
    """Returns the result of a call. Anthropic refuses an empty text: "text content blocks must be non-empty".

    With ``pictures``, those that the call says were sent are among its texts. Anthropic refuses pictures in an error:
    "all content must be type "text" if "is_error" is true", also behind Bedrock.
    """
    outcome: Any = _OUTCOMES.get(call.state, "interrupted")
    of_errors = provider not in ("anthropic", "bedrock")
    sent = sent_contents(call, of_errors=of_errors) if pictures else [format_result(call)]
    content: Any = [
        file_content(item) if isinstance(item, FilePart) else item if item.strip() else _EMPTY_RESULT for item in sent
    ]
    is_text = len(content) == 1 and isinstance(content[0], str)
    return ToolReturnPart(_name(call), content[0] if is_text else content, call.id, outcome=outcome)


def native_parts(call: ToolCall) -> tuple[NativeToolCallPart, int, NativeToolReturnPart] | None:
    """Returns a call that the provider ran, the number of parts between it and its result, and the result.

    Only both together are sent back: None if one of them is missing.
    """
    provider = provider_of_part(call)
    if provider is None or call.output is MISSING or call.state is not State.OUTPUT_AVAILABLE:
        return None
    if _PYDANTIC_AI_NAMES.keys() & (call.provider_metadata or {})[provider].keys():
        return None  # read from another SDK: pydantic-ai has other names for these tools, and other results
    fields, details = _provider_metadata(call)
    result, after = details.pop("result", None), details.pop("result_after", 0)
    kind = _call_fields(details)
    arguments = None if call.input is MISSING or call.input in (None, {}) else _arguments(call)
    call_part = NativeToolCallPart(call.name, arguments, call.id, **kind, **fields(details))
    result_details = dict(result) if isinstance(result, dict) else {}
    kind["tool_kind"] = _pop_text(result_details, "tool_kind") or kind["tool_kind"]
    kind.pop("id")
    output = to_strict_json(call.output)
    return_part = NativeToolReturnPart(call.name, output, call.id, **kind, **fields(result_details))
    between = after if isinstance(after, int) else 0
    return NativeToolCallPart.narrow_type(call_part), between, NativeToolReturnPart.narrow_type(return_part)


def _provider_metadata(part: Part) -> tuple[Callable[[Object], Object], Object]:
    """A function that makes pydantic-ai's fields of what is unused of the metadata, and the provider's metadata."""
    provider = provider_of_part(part)
    if provider is None:
        return lambda _: {}, {}
    metadata = _metadata_of(part, provider)
    return lambda unused: {"provider_name": provider, "provider_details": dict(unused) or None}, metadata


def _metadata_of(part: Part, provider: str) -> Object:
    """The provider's metadata of the part, under pydantic-ai's names."""
    saved: Any = getattr(part, "provider_metadata", None)
    metadata: Object = {_PYDANTIC_AI_NAMES.get(name, name): value for name, value in saved[provider].items()}
    redacted = metadata.pop("redactedData", None)
    if redacted is not None:
        metadata |= {"id": "redacted_thinking", "signature": redacted}
    return metadata


_PYDANTIC_AI_NAMES = {
    **{"itemId": "id", "encryptedContent": "signature", "reasoningEncryptedContent": "signature"},
    "thoughtSignature": "thought_signature",
}
"""Names in `toolcall_nb.adapters` and the AI SDK's providers: names in pydantic-ai."""


def _pop_text(metadata: Object, name: str) -> str | None:
    """Removes and returns the text under this name."""
    value = metadata.pop(name, None)
    return value if isinstance(value, str) else None


def _call_fields(metadata: Object) -> Object:
    metadata.pop("signature", None)
    return {"id": _pop_text(metadata, "id"), "tool_kind": _pop_text(metadata, "tool_kind")}


def _citations(saved: Any) -> list[Citation] | None:
    """The citations as pydantic-ai's; None if they are invalid, as in an edited file."""
    if not saved:
        return None
    part = {"part_kind": "text", "content": "", "citations": saved}
    try:
        [message] = ModelMessagesTypeAdapter.validate_python([{"kind": "response", "parts": [part]}])
    except ValueError:
        return None
    citations: list[Citation] | None = getattr(message.parts[0], "citations", None)
    return citations


def _name(call: ToolCall) -> str:
    return _NOT_IN_PYDANTIC_AI_NAMES.sub("_", call.name)[:_MAX_NAME]


def _arguments(call: ToolCall) -> str | dict[str, Any]:
    """The arguments as an object; a text stays a text, and pydantic-ai wraps it for providers that need an object."""
    if call.input is MISSING or call.input is None:
        return {}
    if isinstance(call.input, dict | str):
        return to_strict_json(call.input)  # type: ignore[no-any-return]  # as is what went in
    return {"input": to_strict_json(call.input)}


# Files ------------------------------------------------------------------------------------------------------


def file_content(part: FilePart) -> UserContent:
    """Returns a file of the user: its bytes, or its URL; a text with a name, as users attach it, as text.

    Few providers take other documents than PDF, and Anthropic refuses CSV.
    """
    if (named := _NAMED_TEXT.match(part.url)) is not None:
        text = _data(part.url).decode("utf-8", "replace")
        return f'The content of the file "{unquote(named[1])}" ({part.media_type}):\n\n{text}'
    if part.url.startswith("data:"):
        return BinaryContent(_data(part.url), media_type=part.media_type)
    family, _, subtype = part.media_type.partition("/")
    media_type = None if subtype == "*" else part.media_type
    match family:
        case "image":
            return ImageUrl(part.url, media_type=media_type)
        case "audio":
            return AudioUrl(part.url, media_type=media_type)
        case "video":
            return VideoUrl(part.url, media_type=media_type)
    return DocumentUrl(part.url, media_type=media_type)


def _data(url: str) -> bytes:
    """The bytes of a ``data:`` URL (RFC 2397); of a broken one, none."""
    head, _, body = url.partition(",")
    if not head.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote_to_bytes(body))
    except binascii.Error:
        return b""
