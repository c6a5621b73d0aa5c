"""Content blocks of Anthropic's Messages API by type: tool calls, results of Anthropic's own tools, citations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import Sources
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_json_text, as_json_value, as_mapping, get, joined_text


def tool_use_name(block: Mapping[str, Any]) -> str | None:
    """Returns the tool's name, if the block is a call: ``tool_use``, ``server_tool_use``, ``mcp_tool_use`` …"""
    kind = get(block, "type", str) or ""
    return get(block, "name", str) if kind == "tool_use" or kind.endswith("_tool_use") else None


def result_events(message: Assembler, block: Mapping[str, Any]) -> list[Event]:
    """Returns the events of a tool's result (``tool_result``, ``web_search_tool_result`` …) for a known call."""
    call_id, content = get(block, "tool_use_id", str) or "", block.get("content")
    if not str(block.get("type")).endswith("tool_result"):
        return []
    about: Object = {} if block.get("type") == "tool_result" else {"provider_executed": True}
    if block.get("is_error") is True:
        return message.failure(call_id, joined_text(content), **about)
    if (get(content, "type", str) or "").endswith("_error"):
        return message.failure(call_id, _error_text(as_mapping(content)), **about)
    is_text = isinstance(content, list) and content and all(get(part, "type") == "text" for part in content)
    return message.output(call_id, joined_text(content) if is_text else as_json_value(content), **about)


def _error_text(error: Mapping[str, Any]) -> str:
    message = get(error, "error_message", str) or get(error, "message", str)
    code = get(error, "error_code", str)
    return ": ".join(part for part in (code, message) if part) or as_json_text(dict(error))


def citation_source(sources: Sources, citation: Mapping[str, Any]) -> Event | None:
    """Returns the source of a citation when it is new: a web page, or a document of the request."""
    metadata = {"anthropic": dict(citation)}
    url = get(citation, "url", str) or get(citation, "source", str)
    if url and "://" in url:
        return sources.page(url, citation.get("title"), metadata)
    title = get(citation, "document_title", str) or get(citation, "title", str)
    number = citation.get("document_index", citation.get("search_result_index"))
    media_type = "application/pdf" if citation.get("type") == "page_location" else "text/plain"
    return sources.document([number, title, url], media_type, title, metadata)
