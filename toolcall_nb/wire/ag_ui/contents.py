"""The parts of a result of AG-UI: `content_part` writes a piece of it, `result_event` reads the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.contents import file_data, piece_text, read_contents
from toolcall_nb.core.events import Event, Object, from_dict
from toolcall_nb.wire.ag_ui.terms import extension_of
from toolcall_nb.wire.base import JsonText, object_or_empty

_MEDIA = ("image", "audio", "video")


def content_part(piece: Mapping[str, Any]) -> Object:
    """Returns a piece of a result as a part; what AG-UI has no part for is text."""
    if piece.get("type") != "file":
        return {"type": "text", "text": piece_text(piece)}
    media_type = str(piece.get("mediaType") or "")
    kind, data = media_type.partition("/")[0], file_data(piece)
    source = {"type": "url", "value": str(piece.get("url"))} if data is None else {"type": "data", "value": data.data}
    return {"type": kind if kind in _MEDIA else "document", "source": {**source, "mimeType": media_type}}


def read_media(part: Mapping[str, Any]) -> ev.File | None:
    """Returns an image, a sound, a film or a document by its URL; data becomes a data URL.

    None for anything else, and for a file that only its provider has.
    """
    source = object_or_empty(part.get("source")) or part
    media_type = str(source.get("mimeType") or f"{part.get('type')}/*")
    name = object_or_empty(part.get("metadata")).get("filename")
    filename = name if isinstance(name, str) and name else None
    if isinstance(url := source.get("url"), str):
        return ev.File(url, media_type, filename=filename)
    value = source.get("value", source.get("data"))
    if not isinstance(value, str) or source.get("type") == "file":
        return None
    url = value if source.get("type") == "url" else f"data:{media_type};base64,{value}"
    return ev.File(url, media_type, filename=filename)


def result_event(event: Mapping[str, Any], call_id: str) -> Event:
    """Returns the end of a call, from a ``TOOL_CALL_RESULT`` or the message that it makes."""
    content, extra = event.get("content"), extension_of(event)
    error = event.get("error")
    kind = extra.get("type", "tool-output-error" if isinstance(error, str) and error else "tool-output-available")
    fields: Object = {"toolCallId": call_id}
    if kind == "tool-output-available" and extra.get("json") is True and isinstance(content, str):
        parsed = JsonText(content).event(call_id, "")
        fields["output"] = parsed.input if isinstance(parsed, ev.ToolInputAvailable) else content
    elif kind == "tool-output-available":
        read = read_contents(content, read_media) if isinstance(content, list) else None
        fields |= {"output": content} if read is None else {"output": read.output, "contents": read.contents}
    elif kind in ("tool-output-error", "tool-input-error"):
        fields["errorText"] = error or content
    elif "data" in extra:
        fields = {}  # a chunk of this package, whose fields are all in its data
    more = {name: value for name, value in extra.items() if name not in ("json", "type", "toolCallId")}
    return from_dict({"type": kind, **fields, **more})
