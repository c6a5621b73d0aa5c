"""Converts the answer of an MCP server to the result of a tool call: `result_of`.

The content blocks are those of the Model Context Protocol, 2025-11-25, "Tool Result".
"""

from __future__ import annotations

import base64
import json
from typing import Any

from toolcall_nb.core.events import Json, Object
from toolcall_nb.core.json_text import json_text
from toolcall_nb.tools.results.failures import ToolFailed
from toolcall_nb.tools.results.result import Result

_MEDIA = ("image/", "audio/")
"""The media types that a card shows or plays."""


def result_of(answer: Any) -> Result:
    """Converts a `CallToolResult`.

    The output is the structured content, or else the texts of the blocks, with a line that names each picture or sound.
    The model is sent both, but for a text that only repeats the structured content. The display is the first picture or
    sound of each type; of others, and of those of a failed call, the line says that they are not kept. Raises
    `ToolFailed` with the server's text for a failure.
    """
    media: Object = {}
    texts: list[str] = []
    for block in answer.content:
        kind, data = _media(block) or ("", "")
        is_kept = not kind or (kind not in media and not answer.is_error)
        texts.append(_text(block) if is_kept else f"{_text(block)[:-1]}, not kept>")
        if kind and is_kept:
            is_svg = kind == "image/svg+xml"  # which notebooks store as text
            media[kind] = base64.b64decode(data).decode("utf-8", "replace") if is_svg else data
    if answer.is_error:
        text = "\n".join(texts).strip() or "The MCP server says that the call failed, and no more."
        raise ToolFailed(text, output=answer.structured_content)
    if answer.structured_content is None:
        return Result("\n".join(texts), display=media or None)
    structured = answer.structured_content
    others = [text for text in texts if not _repeats(text, structured)]
    to_model = "\n".join([json_text(structured), *others]) if others else None
    return Result(structured, display=media or None, model=to_model)


def _repeats(text: str, structured: Json) -> bool:
    """Whether a text is the structured content again, whole or as the only value of its object."""
    values = [structured]
    if isinstance(structured, dict) and len(structured) == 1:
        values += structured.values()
    if text in values:
        return True
    try:
        return json.loads(text) in values
    except (ValueError, RecursionError):
        return False


def _text(block: Any) -> str:
    """Returns the text of a block; for one of another type, a line that names it."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource_link":
        return f"<{block.title or block.name}: {block.uri}>"
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        return _named(block.resource.mime_type, block.resource.blob) if text is None else str(text)
    return _named(block.mime_type, block.data)


def _named(kind: str | None, data: str) -> str:
    return f"<{kind or 'data'}, {len(data.rstrip('=')) * 3 // 4:,} bytes>"


def _media(block: Any) -> tuple[str, str] | None:
    """Returns the MIME type and the base64 text of a picture or a sound; None for another block."""
    if block.type == "resource":
        kind, data = block.resource.mime_type, getattr(block.resource, "blob", None)
    else:
        kind, data = getattr(block, "mime_type", None), getattr(block, "data", None)
    return (kind, data) if data and kind and kind.startswith(_MEDIA) else None
