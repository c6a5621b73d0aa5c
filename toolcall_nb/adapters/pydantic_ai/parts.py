"""The parts of pydantic-ai's messages: their metadata, their files, how a call ended, what a person said.

Source: pydantic_ai/messages.py, version 2.68. A part is one of its dataclasses as a mapping of its fields, or its
JSON as ``ModelMessagesTypeAdapter`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.adapters.parts import custom, file_event, json_text
from toolcall_nb.adapters.plain import get, json_value, mapping, plain
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object

__all__ = ["Told", "citation_sources", "fields", "file_of", "is_own", "outcome_event", "provider_of", "spoken"]


def fields(thing: Any) -> Mapping[str, Any]:
    """The fields of one of pydantic-ai's own objects, or of its JSON; of anything else, none."""
    if isinstance(thing, Mapping):
        return thing
    return mapping(plain(thing)) if is_own(type(thing)) else {}


def is_own(cls: type) -> bool:
    """Whether the class is one of pydantic-ai's, or made from one."""
    return any(base.__module__.startswith("pydantic_ai.") for base in cls.__mro__)


def provider_of(part: Mapping[str, Any]) -> str:
    """Whose part it is."""
    return get(part, "provider_name", str) or "pydantic_ai"


class Told:
    """What the provider wants back with a part, collected from the part, its deltas and the whole part at its end.

    Only the first of these needs to name the provider: pydantic-ai leaves out a name that it has said before.
    """

    def __init__(self) -> None:
        self._provider: str | None = None
        self._own: Object = {}
        self._details: Object = {}

    def add(self, news: Mapping[str, Any]) -> None:
        """Takes in a part, or a delta of one; its details may be a function that makes the new ones of the old."""
        self._provider = get(news, "provider_name", str) or self._provider
        details = news.get("provider_details")
        self._details |= mapping(details(dict(self._details)) if callable(details) else details)
        given = {**news, "signature": get(news, "signature", str) or news.get("signature_delta")}
        self._own |= {name: given[name] for name in _OWN if get(given, name, str)}
        citations = news.get("citations") or news.get("citations_delta")
        self._own |= {"cited": json_value(citations)} if citations else {}

    @property
    def raw(self) -> list[str]:
        """The model's reasoning itself, of which the text of the part is a summary."""
        texts = self._details.get("raw_content")
        return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []

    def metadata(self, **more: Any) -> Object | None:
        """All of it, and ``more``, under the provider's name; None where there is nothing."""
        details = {name: json_value(value) for name, value in self._details.items() if name != "raw_content"}
        found = {**details, **self._own, **more}
        return {self._provider or "pydantic_ai": found} if found or self._provider else None


_OWN = ("id", "signature", "tool_kind")
"""What pydantic-ai's parts have for the provider besides their details."""


def file_of(content: Any, metadata: Object | None = None) -> Event | None:
    """``BinaryContent`` or one of the URL classes as a file, with its provider's metadata; None for what is neither."""
    known = fields(content)
    kind = get(known, "kind", str) or ""
    if kind == "binary":
        data = known.get("data")  # in JSON it is base64 text in the alphabet for URLs
        encoded = data.replace("-", "+").replace("_", "/") if isinstance(data, str) else data
        return file_event(get(known, "media_type", str), encoded, metadata=metadata)
    if kind.endswith("-url"):
        return file_event(_media_type(content, known, kind), url=get(known, "url", str), metadata=metadata)
    return None


def _media_type(content: Any, known: Mapping[str, Any], kind: str) -> str:
    given = get(known, "media_type", str) or get(known, "_media_type", str)
    if given is None and not isinstance(content, Mapping):
        try:
            given = content.media_type  # a property: it looks at the URL, and raises where that says nothing
        except Exception:
            given = None
    family = kind.removesuffix("-url")
    return given or ("application/octet-stream" if family == "document" else f"{family}/*")


def citation_sources(citations: Any) -> Iterator[Mapping[str, Any]]:
    """The sources of a text part's ``citations``."""
    for citation in citations if isinstance(citations, list | tuple) else ():
        sources = fields(citation).get("sources")
        yield from (fields(source) for source in (sources if isinstance(sources, list | tuple) else ()))


def outcome_event(call_id: str, part: Mapping[str, Any], metadata: Object | None = None) -> Event:
    """How a call ended, of a part that returns it or asks for it anew. The call ran elsewhere where it is a native one.

    A retry answers its call with what was wrong; so does a failure. A denial has no text of its own. ``metadata`` is
    the call's, where its result adds to that.
    """
    about: Object = {"provider_executed": True} if part.get("part_kind") == "builtin-tool-return" else {}
    about |= {"provider_metadata": metadata} if metadata else {}
    content = part.get("content")
    outcome = "retried" if part.get("part_kind") == "retry-prompt" else part.get("outcome")
    match outcome:
        case "failed" | "retried":
            text = content if isinstance(content, str) else json_text(json_value(content))
            return ev.ToolOutputError(call_id, text, **about)
        case "denied":
            return ev.ToolOutputDenied(call_id)
        case "interrupted":
            return ev.ToolInterrupted(call_id)
    file = file_of(content)
    if isinstance(file, ev.File) and file.media_type.startswith("image/") and file.url.startswith("data:"):
        about["display"] = {file.media_type: file.url.partition(",")[2]}
    return ev.ToolOutputAvailable(call_id, json_value(content), **about)


def spoken(content: Any) -> Iterator[str | Event]:
    """What a person said, part by part: texts, files; other things under pydantic-ai's name for them."""
    for item in content if isinstance(content, list | tuple) else [content]:
        known = fields(item)
        text = item if isinstance(item, str) else get(known, "content", str)
        file = file_of(item)
        if text:
            yield text
        elif file is not None:
            yield file
        elif text is None and known and known.get("kind") != "cache-point":
            yield custom("pydantic_ai", get(known, "kind", str) or "content", json_value(known))
