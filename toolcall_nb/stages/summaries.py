"""What a stage log says of a call's input and result in texts: whole, in a line, in the last lines, and in pictures."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping

from toolcall_nb.core.call_display import displayed_bundles
from toolcall_nb.core.events import MISSING, Json, Missing, Object
from toolcall_nb.core.json_text import from_extended, json_text
from toolcall_nb.core.transcript import ToolCall

__all__ = ["bundle_of", "compact_params", "images_of", "json_value", "parameters_text", "short_result"]

_SUMMARY = 160
_VALUE = 80
_LINES = 5
_LINE = 200
_SVG = "image/svg+xml"  # the one image type that a MIME bundle holds as text


# Values to text and back ------------------------------------------------------------------------------------


def json_value(text: str) -> Json | Missing:
    """The value that a text of JSON stands for; MISSING where it is not JSON."""
    try:
        return from_extended(json.loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return MISSING


def _refuse(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def parameters_text(value: Json) -> str:
    """An input as the text that `json_value` reads back; written text that is no JSON stands as it is."""
    if isinstance(value, str) and value.strip() and json_value(value) is MISSING:
        return value
    return json_text(value)


# One line, the last lines -----------------------------------------------------------------------------------


def compact_params(value: Json) -> str:
    """The input in one line of at most 160 characters: ``city: Lyon, days: 7``; of no arguments, nothing."""
    if not isinstance(value, dict):
        return _cut(_brief(value), _SUMMARY)
    pieces: list[str] = []
    for key, item in value.items():
        pieces.append(f"{_cut(_flat(key), _VALUE)}: {_brief(item)}")
        if sum(map(len, pieces)) > _SUMMARY:
            break
    return _cut(", ".join(pieces), _SUMMARY)


def _brief(value: Json) -> str:
    return _cut(_flat(value if isinstance(value, str) else json_text(value)), _VALUE)


def _flat(text: str) -> str:
    return " ".join(text[: 2 * _SUMMARY].split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def short_result(text: str) -> str:
    """The last five lines of a text, each cut at 200 characters; blank lines at the end don't count."""
    return "\n".join(_cut(line, _LINE) for line in text.rstrip().rsplit("\n", _LINES)[-_LINES:])


# Pictures ---------------------------------------------------------------------------------------------------


def images_of(call: ToolCall) -> list[Object]:
    """The pictures of a call's output: those of its MIME bundle, else those of a list of content blocks."""
    shown = [
        {"data": _base64(kind, data), "mediaType": kind}
        for bundle in (call.display or {}, *displayed_bundles(call.display))
        for kind, data in bundle.items()
        if kind.startswith("image/") and isinstance(data, str) and data
    ]
    return shown or list(_content_images(call.output))


def _base64(kind: str, data: str) -> str:
    return base64.b64encode(data.encode()).decode() if kind == _SVG else data


def _content_images(output: Json) -> Iterator[Object]:
    """``{"type": "image", "data": …, "mimeType": …}`` in a list, or in the ``content`` of a result (as in MCP)."""
    blocks = output.get("content") if isinstance(output, dict) else output
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and block.get("type") == "image" and isinstance(block.get("data"), str):
            kind = block.get("mediaType", block.get("mimeType"))
            yield {"data": block["data"], **({"mediaType": kind} if isinstance(kind, str) else {})}


def bundle_of(images: Json) -> Object | None:
    """The MIME bundle of an update's images, of each media type the first; None where there is none."""
    bundle: Object = {}
    for image in images if isinstance(images, (list, tuple)) else ():
        if isinstance(image, Mapping) and isinstance(image.get("data"), str):
            kind = image.get("mediaType")
            kind = kind if isinstance(kind, str) else "image/png"
            bundle.setdefault(kind, _source(image["data"]) if kind == _SVG else image["data"])
    return bundle or None


def _source(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):  # it was the picture's own text
        return data
