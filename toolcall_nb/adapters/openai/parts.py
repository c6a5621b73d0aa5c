"""What OpenAI's two APIs, and the many that speak like them, have in common: counts, files, sources, sound."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from toolcall_nb.adapters.assembling import usage_of
from toolcall_nb.adapters.parts import Sources, custom, file_event
from toolcall_nb.adapters.plain import get, mapping, plain
from toolcall_nb.core.events import Event, File, Object

__all__ = [
    "PROVIDER",
    "WHO",
    "Sound",
    "add_up",
    "cited",
    "counts_of",
    "file_given",
    "image_event",
    "mapped",
    "media_type_of",
    "nonempty",
    "said",
]

PROVIDER = "openai"
WHO = "The model's provider"

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
"""Our counts, and where the providers have them: the first that is there stands for all."""

_SOUNDS = (("UklGR", "audio/wav"), ("SUQz", "audio/mpeg"), ("//", "audio/mpeg"), ("T2dn", "audio/ogg"))
_TEXTS = frozenset({"text", "input_text", "output_text", "reasoning_text", "summary_text"})


def counts_of(reported: Mapping[str, Any]) -> Object:
    """The ``usage`` of either API under our names.

    xAI leaves the reasoning out of ``completion_tokens``, which the total tells: it is added there.
    """
    if not reported:
        return {}
    counts: Object = {}
    for own, paths in _COUNTS.items():
        found = [count for path in paths for count in usage_of(reported, {path: own}).values()]
        counts.update({own: found[0]} if found else {})
    reasoning, total = counts.get("reasoningTokens", 0), counts.get("totalTokens")
    if reasoning and total == counts.get("inputTokens", 0) + counts.get("outputTokens", 0) + reasoning:
        counts["outputTokens"] = counts.get("outputTokens", 0) + reasoning
    return counts


def add_up(counts: list[Object]) -> Object:
    """The counts of several requests in one."""
    return {name: sum(each.get(name, 0) for each in counts) for name in _COUNTS if any(name in each for each in counts)}


def mapped(value: Any) -> Mapping[str, Any]:
    """A mapping, or an SDK object as one; anything else as an empty one."""
    return mapping(plain(value))


def nonempty(value: Any, name: str) -> str | None:
    """The string ``value[name]``, unless it is empty, as some send where there is none."""
    found: str | None = get(value, name, str)
    return found or None


def said(part: Any) -> str | None:
    """The text of a content part that is nothing but text, or a refusal."""
    if isinstance(part, str):
        return part
    kind = get(part, "type", str)
    name = "refusal" if kind == "refusal" else "text"
    found: str | None = get(part, name, str)
    return found if kind in (None, "refusal") or kind in _TEXTS else None


def media_type_of(url: str, otherwise: str) -> str:
    """The media type that a ``data:`` URL names."""
    head = url[5:100].partition(",")[0].partition(";")[0] if url.startswith("data:") else ""
    return head or otherwise


def image_event(given: Any) -> Event | None:
    """An image by its URL: the URL, or a mapping that holds it; None for anything else."""
    url = given if isinstance(given, str) else nonempty(given, "url")
    return file_event(media_type_of(url, "image/*"), url=url) if url else None


def file_given(given: Mapping[str, Any]) -> Event | None:
    """The ``file`` of a content part, by its content or its URL; None for one that only an id names."""
    data, url = nonempty(given, "file_data"), nonempty(given, "file_url")
    name = nonempty(given, "filename")
    media_type = "application/pdf" if name and name.lower().endswith(".pdf") else "application/octet-stream"
    if data and not data.startswith("data:"):
        event = file_event(media_type, data)
    else:
        found = data or url
        event = file_event(media_type_of(found, media_type), url=found) if found else None
    if isinstance(event, File) and name:
        return replace(event, provider_metadata={PROVIDER: {"filename": name}})
    return event


def cited(sources: Sources, annotation: Any) -> Iterator[Event]:
    """The source of an annotation, the first time: a page, or a file of the provider's; of another kind, itself."""
    given = mapped(annotation)
    kind = get(given, "type", str) or "unknown"
    inner = mapped(given.get(kind)) or given
    event: Event | None
    if kind == "url_citation":
        event = sources.page(inner.get("url"), inner.get("title"))
    elif key := nonempty(inner, "file_id") or nonempty(inner, "filename"):
        event = sources.document(key, "text/plain", inner.get("filename") or key, {PROVIDER: {"fileId": key}})
    else:
        event = custom(PROVIDER, kind, dict(given)) if given else None
    if event is not None:
        yield event


class Sound:
    """What was spoken: base64 text in pieces, each of which may be encoded for itself."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, piece: str | None) -> None:
        """More of it."""
        if piece:
            self._pieces.append(piece)

    def close(self) -> Event | None:
        """The file, if there was any sound. Without a header that tells, it is taken for raw samples."""
        text = "".join(self._pieces)
        if not text:
            return None
        if any(piece.endswith("=") for piece in self._pieces[:-1]):
            text = _rejoined(self._pieces)
        media_type = next((name for head, name in _SOUNDS if text.startswith(head)), "audio/pcm")
        return file_event(media_type, text)


def _rejoined(pieces: list[str]) -> str:
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece) for piece in pieces)).decode("ascii")
    except (binascii.Error, ValueError):
        return "".join(pieces)
