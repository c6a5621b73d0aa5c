"""The content blocks of Anthropic's Messages API, by their types: calls, what tools of theirs gave, citations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.assembling import Assembler
from toolcall_nb.adapters.parts import Sources, json_text, text_of
from toolcall_nb.adapters.plain import get, json_value, mapping
from toolcall_nb.core.events import Event, Object

__all__ = ["PROVIDER", "citation_source", "name_of_call", "result_events"]

PROVIDER = "anthropic"


def name_of_call(block: Mapping[str, Any]) -> str | None:
    """The tool's name, if the block is a call: ``tool_use``, ``server_tool_use``, ``mcp_tool_use`` and what follows."""
    kind = get(block, "type", str) or ""
    return get(block, "name", str) if kind == "tool_use" or kind.endswith("_tool_use") else None


def result_events(message: Assembler, block: Mapping[str, Any]) -> list[Event]:
    """What a tool gave (``web_search_tool_result``, ``tool_result``); of a call that is not known, nothing."""
    call_id, content = get(block, "tool_use_id", str), block.get("content")
    if call_id is None or not str(block.get("type")).endswith("tool_result"):
        return []
    about: Object = {} if block.get("type") == "tool_result" else {"provider_executed": True}
    if block.get("is_error") is True:
        return message.failure(call_id, text_of(content), **about)
    if (get(content, "type", str) or "").endswith("_error"):
        return message.failure(call_id, _complaint(mapping(content)), **about)
    return message.output(call_id, _value(content), **about)


def _value(content: Any) -> Any:
    """A result as a value: one that is only text is that text."""
    if isinstance(content, list) and content and all(get(part, "type") == "text" for part in content):
        return text_of(content)
    return json_value(content)


def _complaint(error: Mapping[str, Any]) -> str:
    said = get(error, "error_message", str) or get(error, "message", str)
    code = get(error, "error_code", str)
    return ": ".join(part for part in (code, said) if part) or json_text(dict(error))


def citation_source(sources: Sources, citation: Mapping[str, Any]) -> Event | None:
    """The source of a citation, the first time: a page, or a document of the request."""
    metadata = {PROVIDER: dict(citation)}
    url = get(citation, "url", str) or get(citation, "source", str)
    if url and "://" in url:
        return sources.page(url, citation.get("title"), metadata)
    title = get(citation, "document_title", str) or get(citation, "title", str)
    number = citation.get("document_index", citation.get("search_result_index"))
    media_type = "application/pdf" if citation.get("type") == "page_location" else "text/plain"
    return sources.document([number, title, url], media_type, title, metadata)
