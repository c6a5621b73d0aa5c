"""Formats inputs and results for stage logs: as JSON, in one line, as the last lines, and as images."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

from toolcall_nb.core.call_display import displayed_bundles
from toolcall_nb.core.contents import file_data, file_piece, output_contents
from toolcall_nb.core.events import MISSING, Json, Missing, Object
from toolcall_nb.core.json_text import from_extended_json, json_text
from toolcall_nb.core.transcript import ToolCall

_MAX_SUMMARY = 160
_MAX_VALUE = 80
_MAX_LINES = 5
_MAX_LINE = 200
_SVG = "image/svg+xml"  # the only image type that a MIME bundle holds as text


def parse_json(text: str) -> Json | Missing:
    """Returns the value of a JSON text; MISSING if it is not JSON."""
    try:
        return from_extended_json(json.loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return MISSING


def _refuse(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def parameters_text(value: Json) -> str:
    """Returns an input as text that `parse_json` reads back; text that is not JSON stays as it is."""
    if isinstance(value, str) and value.strip() and parse_json(value) is MISSING:
        return value
    return json_text(value)


def compact_params(value: Json) -> str:
    """Returns the input in one line of at most 160 characters, like ``city: Lyon, days: 7``; "" for no arguments."""
    if not isinstance(value, dict):
        return _cut(_brief(value), _MAX_SUMMARY)
    pieces: list[str] = []
    for key, item in value.items():
        pieces.append(f"{_cut(_flat(key), _MAX_VALUE)}: {_brief(item)}")
        if sum(map(len, pieces)) > _MAX_SUMMARY:
            break
    return _cut(", ".join(pieces), _MAX_SUMMARY)


def _brief(value: Json) -> str:
    return _cut(_flat(value if isinstance(value, str) else json_text(value)), _MAX_VALUE)


def _flat(text: str) -> str:
    return " ".join(text[: 2 * _MAX_SUMMARY].split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def short_result(text: str) -> str:
    """Returns the last five lines of a text, each cut at 200 characters, without blank lines at the end."""
    return "\n".join(_cut(line, _MAX_LINE) for line in text.rstrip().rsplit("\n", _MAX_LINES)[-_MAX_LINES:])


def images_of(call: ToolCall) -> list[Object]:
    """Returns the images of a call's output: those of its MIME bundles and of its contents."""
    images: list[Object] = [
        {"data": base64.b64encode(data.encode()).decode() if kind == _SVG else data, "mediaType": kind}
        for bundle in (call.display or {}, *displayed_bundles(call.display))
        for kind, data in bundle.items()
        if kind.startswith("image/") and isinstance(data, str) and data
    ]
    for file in filter(None, map(file_data, call.contents or output_contents(call.output) or ())):
        if file.media_type.startswith("image/"):
            kind = {} if file.media_type == "image/*" else {"mediaType": file.media_type}
            images.append({"data": file.data, **kind})
    return images


def image_fields(images: Json) -> Object:
    """Returns the ``display`` of an update's images, or their ``contents`` where two have one media type."""
    files: list[tuple[str, str]] = []
    for image in images if isinstance(images, (list, tuple)) else ():
        if isinstance(image, Mapping) and isinstance(image.get("data"), str):
            kind = image.get("mediaType")
            kind = kind if isinstance(kind, str) else "image/png"
            files.append((kind, _svg_source(image["data"]) if kind == _SVG else image["data"]))
    if len(dict(files)) < len(files):
        return {"contents": [file_piece(kind, data.encode() if kind == _SVG else data) for kind, data in files]}
    return {"display": dict(files) or None}


def _svg_source(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):  # it is the SVG text itself
        return data
