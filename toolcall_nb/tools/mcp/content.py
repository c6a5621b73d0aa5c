"""Converts the answer of an MCP server to the result of a tool call: `result_of`.

The content blocks are those of the Model Context Protocol, 2025-11-25, "Tool Result".
"""

from __future__ import annotations

import base64
from typing import Any

from toolcall_nb.core.events import Json, Object
from toolcall_nb.tools.results.failures import ToolFailed
from toolcall_nb.tools.results.result import Result

__all__ = ["result_of"]

_MEDIA = ("image/", "audio/")
"""The media types that a card shows or plays."""


def result_of(answer: Any) -> Result:
    """Converts a `CallToolResult`.

    The output is the structured content, or else the texts of the blocks, with a line that names each picture or sound.
    The display is the first picture or sound of each type. Raises `ToolFailed` with the server's text for a failure.
    """
    texts = [_text(block) for block in answer.content]
    if answer.is_error:
        text = "\n".join(texts).strip() or "The MCP server says that the call failed, and no more."
        raise ToolFailed(text, output=answer.structured_content)
    media: Object = {}
    for kind, data in filter(None, map(_media, answer.content)):
        media.setdefault(kind, _svg(data) if kind == "image/svg+xml" else data)
    output: Json = "\n".join(texts) if answer.structured_content is None else answer.structured_content
    return Result(output, display=media or None)


def _text(block: Any) -> str:
    """Returns the text of a block; for one of another type, a line that names it."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource_link":
        return f"<{block.title or block.name}: {block.uri}>"
    if block.type == "resource":
        return str(getattr(block.resource, "text", None) or _named(block.resource.mime_type, block.resource.blob))
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


def _svg(data: str) -> str:
    """Decodes an SVG image to text, as notebooks store it."""
    return base64.b64decode(data).decode("utf-8", "replace")
