"""The contents of a tool's result: its pieces in order, where it has several or is not only a value.

Each piece is one of four JSON objects. A picture is a file; ``url`` is a ``data:`` URL or an address.

    {"type": "text", "text": …}
    {"type": "file", "mediaType": …, "url": …, "filename"?: …}
    {"type": "json", "value": …}
    {"type": "resource", "uri": …, "name"?: …, "mediaType"?: …, "text"?: …}

`read_contents` reads the content blocks of a provider's result, and `contents_text` writes pieces as text.
`value_beside` says what a result is beside its contents, since its output may be the same as their text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from toolcall_nb.core.events import MISSING, File, Json, Missing, Object
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.sdk_objects import as_json_value, get, joined_text, nonempty, object_fields

_ADDRESS = 200
"""The number of characters of an address in a text."""
_UNKNOWN = "application/octet-stream"
_FILES = frozenset({"image", "audio", "media", "file", "file-data", "file-url", "image-data", "image-url"})
"""The types of the blocks of MCP and the AI SDK that are files."""

_PICTURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
PICTURE_TYPES = tuple(_PICTURES)
"""The media types that `picture_type` knows."""


def picture_type(content: bytes) -> str | None:
    """Returns the media type of a picture by its first twelve bytes; None for anything else."""
    return next((kind for kind, beginning in _PICTURES.items() if beginning.match(content)), None)


def text_piece(text: str) -> Object:
    """Returns a piece of text."""
    return {"type": "text", "text": text}


def json_piece(value: Json) -> Object:
    """Returns the piece of a value; a string is a piece of text."""
    return text_piece(value) if isinstance(value, str) else {"type": "json", "value": value}


def file_piece(
    media_type: str | None, data: str | bytes | None = None, url: str | None = None, filename: str | None = None
) -> Object | None:
    """Returns the piece of a file, given by its content (bytes or base64 text) or its address; None for neither."""
    media_type = media_type or _UNKNOWN
    if data is not None:
        encoded = base64.b64encode(data).decode("ascii") if isinstance(data, bytes) else data
        url = f"data:{media_type};base64,{encoded}"
    return None if url is None else event_piece(File(url, media_type, filename=filename))


def event_piece(file: File) -> Object:
    """Returns the piece of the file of an event."""
    named = {"filename": file.filename} if file.filename else {}
    return {"type": "file", "mediaType": file.media_type, "url": file.url, **named}


class FileData(NamedTuple):
    """The content of a file in a ``data:`` URL: its media type and base64 text."""

    media_type: str
    data: str


def file_data(piece: Mapping[str, Any]) -> FileData | None:
    """Returns the content of a file; None for another piece, and for a file that is elsewhere."""
    head, _, data = (get(piece, "url", str) or "").partition(";base64,")
    if piece.get("type") != "file" or not head.startswith("data:"):
        return None
    return FileData(get(piece, "mediaType", str) or head.removeprefix("data:"), data)


def is_contents(value: Any) -> bool:
    """Whether a value, as it stands in a file, is a list of objects, and so can be contents."""
    return isinstance(value, list) and all(isinstance(piece, dict) for piece in value)


# Reading --------------------------------------------------------------------------------------------------------


class ResultContent(NamedTuple):
    """The content of a result: its output, or the text of its error, and its pieces if it has several."""

    output: Json
    contents: list[Object] | None = None

    @property
    def error(self) -> str:
        """The text of an error with this content."""
        return joined_text(self.output)


def read_contents(content: Any, read_block: Callable[[Mapping[str, Any]], Any]) -> ResultContent:
    """Reads the content of a provider's result: a string, one content block or a list of them, or any other value.

    ``read_block`` returns the piece or the `File` event of a block that is neither text nor known only to the provider;
    else None. A list of texts alone is one text. Where no block is a piece, the value stays as it is.
    """
    is_list = isinstance(content, list | tuple)
    blocks = content if is_list else [content]
    pieces = [_read_piece(item, read_block) for item in blocks]
    kinds = {piece and piece["type"] for piece in pieces}
    if kinds == {"text"} and is_list:
        return ResultContent("\n\n".join(piece["text"] for piece in pieces if piece))
    if kinds <= {"text", None}:
        return ResultContent(as_json_value(content))
    if len(pieces) == 1 and pieces[0] and pieces[0]["type"] == "json":
        return ResultContent(pieces[0]["value"])
    contents = [piece or json_piece(as_json_value(item)) for piece, item in zip(pieces, blocks, strict=True)]
    return ResultContent(contents_text(contents), contents)


def _read_piece(item: Any, read_block: Callable[[Mapping[str, Any]], Any]) -> Object | None:
    if isinstance(item, str):
        return text_piece(item)
    block = object_fields(item)
    text = block_text(block)
    if text is not None:
        return text_piece(text)
    piece = read_block(block)
    return event_piece(piece) if isinstance(piece, File) else piece if isinstance(piece, dict) else None


def block_text(block: Mapping[str, Any]) -> str | None:
    """Returns the text of a content block of any provider; None for a block that is no text."""
    is_text = (get(block, "type", str) or "text").endswith("text")
    return get(block, "text", str) if is_text else None


def read_mcp_block(block: Mapping[str, Any]) -> Object | None:
    """Returns the piece of a content block of MCP, or of the AI SDK's ``{"type": "content", "value": […]}``."""
    kind, resource = get(block, "type", str), get(block, "resource", Mapping)
    if kind == "resource" and resource is not None:
        uri, media_type = nonempty(resource, "uri"), get(resource, "mimeType", str)
        if (blob := get(resource, "blob", str)) is not None:
            return file_piece(media_type, blob, filename=uri)
        return _resource(uri, None, media_type, get(resource, "text", str))
    if kind == "resource_link":
        name = nonempty(block, "title") or nonempty(block, "name")
        return _resource(nonempty(block, "uri"), name, get(block, "mimeType", str), None)
    if kind == "json" and "value" in block:
        return json_piece(block["value"])
    if kind not in _FILES:
        return None
    inner = get(block, "data", Mapping) or block
    media_type = nonempty(block, "mediaType") or nonempty(block, "mimeType")
    if media_type is None and kind.startswith("image"):
        media_type = "image/*"
    return file_piece(media_type, get(inner, "data", str), get(inner, "url", str), nonempty(block, "filename"))


def _resource(uri: str | None, name: str | None, media_type: str | None, text: str | None) -> Object:
    fields = {"uri": uri or "", "name": name, "mediaType": media_type, "text": text}
    return {"type": "resource", **{key: value for key, value in fields.items() if value is not None}}


def output_contents(output: Json | Missing) -> list[Object] | None:
    """Returns the pieces of an output that is itself a list of content blocks; None for any other output.

    Tools of the AI SDK give a result of MCP (``{"content": […]}``), its list, or ``{"type": "content", "value": […]}``.
    """
    blocks: Any = output
    if isinstance(output, dict):
        blocks = output.get("value") if output.get("type") == "content" else output.get("content")
    if not isinstance(blocks, list) or not all(isinstance(get(block, "type"), str) for block in blocks):
        return None
    return read_contents(blocks, read_mcp_block).contents


# As text --------------------------------------------------------------------------------------------------------


def contents_text(contents: Iterable[Mapping[str, Any]]) -> str:
    """Returns the pieces as text: each file is a line that names it, each value is JSON."""
    return "\n".join(map(piece_text, contents))


def piece_text(piece: Mapping[str, Any]) -> str:
    """Returns one piece as text."""
    match piece.get("type"):
        case "file":
            return f"<{describe_file(piece)}>"
        case "json":
            return json.dumps(to_strict_json(piece.get("value")), ensure_ascii=False, separators=(",", ":"))
        case "resource" if get(piece, "text", str) is None:
            return f"<{': '.join(filter(None, (nonempty(piece, 'name'), nonempty(piece, 'uri'))))}>"
    return get(piece, "text", str) or ""


def describe_file(piece: Mapping[str, Any]) -> str:
    """Describes a file: its name, its media type, and its size or its address."""
    name, kind, content = get(piece, "filename", str), get(piece, "mediaType", str) or _UNKNOWN, file_data(piece)
    kind = "data" if kind == _UNKNOWN else kind
    if content is None:
        description = f"{kind}: {get(piece, 'url', str) or ''}"[:_ADDRESS]
    else:
        description = f"{kind}, {len(content.data.rstrip('=')) * 3 // 4:,} bytes"
    return f"{name}: {description}" if name else description


def value_beside(value: Json | Missing, contents: Sequence[Mapping[str, Any]]) -> Json | Missing:
    """Returns an output or an error that says more than its contents; `MISSING` where they are all of it.

    They are if it has their words, with or without the lines that name the files.
    """
    if value is MISSING or value is None or output_contents(value) == contents:
        return MISSING
    words = piece_text(json_piece(value)).split()
    unnamed = [piece for piece in contents if piece.get("type") != "file"]
    is_same = not words or words in (contents_text(contents).split(), contents_text(unnamed).split())
    return MISSING if is_same else value
