"""Content that both of OpenAI's APIs have in common: texts, files, citations, sound, token counts."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import custom_part_event, file_event, usage_of
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import get, nonempty, object_fields

ERROR_SENDER = "The model's provider"
"""Names the sender of an error, since many providers use these formats."""

_COUNTS = {
    "inputTokens": ("prompt_tokens", "input_tokens"),
    "outputTokens": ("completion_tokens", "output_tokens"),
    "totalTokens": ("total_tokens",),
    "cachedInputTokens": (
        *("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
        *("prompt_cache_hit_tokens", "cached_tokens"),  # DeepSeek, Moonshot
    ),
    "cacheWriteTokens": ("prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens"),
    "reasoningTokens": (
        *("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"),
        "reasoning_tokens",  # Perplexity
    ),
}
"""Our token counts and the providers' paths to them; the first path that exists counts."""

USED_OF_USAGE = in_use(
    "prompt_tokens input_tokens completion_tokens output_tokens total_tokens prompt_cache_hit_tokens cached_tokens "
    "reasoning_tokens prompt_cache_miss_tokens",
    snapshot=True,
    prompt_tokens_details=in_use("cached_tokens cache_write_tokens"),
    input_tokens_details=in_use("cached_tokens cache_write_tokens"),
    completion_tokens_details=in_use("reasoning_tokens"),
    output_tokens_details=in_use("reasoning_tokens"),
)
_SOUNDS = (("UklGR", "audio/wav"), ("SUQz", "audio/mpeg"), ("//", "audio/mpeg"), ("T2dn", "audio/ogg"))
TEXTS = frozenset({"text", "input_text", "output_text", "reasoning_text", "summary_text"})


def counts_of(reported: Mapping[str, Any]) -> Object:
    """Returns the ``usage`` of either API under our names.

    xAI leaves reasoning out of ``completion_tokens``, as its total shows; there it is added.
    """
    if not reported:
        return {}
    counts: Object = {}
    for name, paths in _COUNTS.items():
        values = (count for path in paths for count in usage_of(reported, {name: path}).values())
        if (count := next(values, None)) is not None:
            counts[name] = count
    reasoning, total = counts.get("reasoningTokens", 0), counts.get("totalTokens")
    if reasoning and total == counts.get("inputTokens", 0) + counts.get("outputTokens", 0) + reasoning:
        counts["outputTokens"] = counts.get("outputTokens", 0) + reasoning
    return counts


def text_in(part: Any) -> str | None:
    """Returns the text of a content part that is text or a refusal; None for other parts."""
    if isinstance(part, str):
        return part
    kind = get(part, "type", str)
    name = "refusal" if kind == "refusal" else "text"
    text: str | None = get(part, name, str)
    return text if kind in (None, "refusal") or kind in TEXTS else None


def _media_type(url: str, otherwise: str) -> str:
    """Returns the media type in a ``data:`` URL."""
    head = url[5:100].partition(",")[0].partition(";")[0] if url.startswith("data:") else ""
    return head or otherwise


def image_event(image: Any) -> Event | None:
    """Returns the event of an image, given as a URL or as a mapping with ``url``; None for anything else."""
    url = image if isinstance(image, str) else nonempty(image, "url")
    return file_event(_media_type(url, "image/*"), url=url) if url else None


def file_part_event(file: Mapping[str, Any]) -> Event | None:
    """Returns the event of a content part's ``file``, by its content or URL; None if it only has an id."""
    data, url = nonempty(file, "file_data"), nonempty(file, "file_url")
    name = nonempty(file, "filename")
    media_type = "application/pdf" if name and name.lower().endswith(".pdf") else "application/octet-stream"
    if data and not data.startswith("data:"):
        return file_event(media_type, data, filename=name)
    address = data or url
    return file_event(_media_type(address, media_type), url=address, filename=name) if address else None


def part_file_event(part: Mapping[str, Any]) -> Event | None:
    """Returns the event of a content part that is an image, sound or a file; None for any other."""
    sound = object_fields(part.get("input_audio"))
    name = nonempty(sound, "format") or "wav"
    return (
        image_event(object_fields(part.get("image_url")) or part.get("image_url"))
        or file_part_event(object_fields(part.get("file")) or part)
        or (file_event(f"audio/{'mpeg' if name == 'mp3' else name}", sound.get("data")) if sound else None)
    )


def cite(message: Assembler, annotation: Any) -> list[Event]:
    """Adds the source of an annotation when it is new: a page or a file; an unknown kind is kept as it is."""
    fields, sources = object_fields(annotation), message.sources
    kind = get(fields, "type", str) or "unknown"
    inner = object_fields(fields.get(kind)) or fields
    if kind == "url_citation":
        more = {name: value for name, value in inner.items() if name not in ("type", "url", "title") and value}
        source = sources.page(inner.get("url"), inner.get("title"), {"openai": more} if more else None)
    elif key := nonempty(inner, "file_id") or nonempty(inner, "filename"):
        more = {name: value for name, value in inner.items() if name not in ("type", "file_id", "filename") and value}
        source = sources.document(key, "text/plain", inner.get("filename") or key, {"openai": {"fileId": key, **more}})
    else:
        return message.after_block(custom_part_event("openai", kind, fields)) if fields else []
    return message.cite("openai", fields, source)


class AudioPieces:
    """Collects sound: base64 text in pieces, each of which may be encoded on its own."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, piece: str | None) -> None:
        """Adds a piece."""
        if piece:
            self._pieces.append(piece)

    def close(self) -> Event | None:
        """Returns the file if there was any sound. Without a known header it is raw samples."""
        text = "".join(self._pieces)
        if not text:
            return None
        if any(piece.endswith("=") for piece in self._pieces[:-1]):
            with contextlib.suppress(binascii.Error, ValueError):
                text = base64.b64encode(b"".join(map(base64.b64decode, self._pieces))).decode("ascii")
        media_type = next((name for head, name in _SOUNDS if text.startswith(head)), "audio/pcm")
        return file_event(media_type, text)
