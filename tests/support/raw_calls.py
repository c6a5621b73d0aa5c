"""A second, independent reading of the tool calls and text in a recorded stream.

Each reader is as short as possible, follows the provider's documentation and the recordings, and shares no code with
the package. The tests compare its results with the package's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = ["RawCall", "calls", "provider_calls", "text"]

Items = Iterable[Mapping[str, Any]]


class RawCall(NamedTuple):
    """A call. ``id`` is None if the provider sent none; ``arguments`` is the JSON value, or text that is not JSON."""

    id: str | None
    name: str
    arguments: Any


def calls(wire: str, items: Items) -> list[RawCall]:
    """Returns the calls of the caller's own tools, in the order in which they began."""
    return _CALLS[wire](list(items))


def provider_calls(wire: str, items: Items) -> list[RawCall]:
    """Returns the calls that the provider ran itself; the name is the provider's name of the tool or kind of call."""
    read = _PROVIDER_CALLS.get(wire)
    return read(list(items)) if read is not None else []


def text(wire: str, items: Items) -> str:
    """Returns the text of the model's first message, with refusals and without reasoning."""
    return "".join(_TEXT[wire](list(items)))


def _value(written: str) -> Any:
    """Parses a JSON text; the empty text means no arguments."""
    if not written.strip():
        return {}
    try:
        return json.loads(written)
    except ValueError:
        return written


# OpenAI chat completions: tool_calls[index] = {id, function: {name, arguments: more text}} --------------------


def _chat_calls(items: list[Mapping[str, Any]]) -> list[RawCall]:
    found: list[dict[str, Any]] = []
    for item in items:
        for choice in item.get("choices") or []:
            for news in (choice.get("delta") or {}).get("tool_calls") or []:
                place = (choice.get("index") or 0, news.get("index"))
                same = [one for one in found if one["place"] == place]
                function = news.get("function") or {}
                if not same or (news.get("id") and same[-1]["id"] and news["id"] != same[-1]["id"]):
                    found.append({"place": place, "id": None, "name": "", "text": ""})
                    same = found[-1:]
                one = same[-1]
                one["id"] = one["id"] or news.get("id")
                one["name"] = one["name"] or function.get("name") or ""
                arguments = function.get("arguments") or ""
                one["text"] += arguments if isinstance(arguments, str) else json.dumps(arguments)
    found.sort(key=lambda one: one["place"][0])
    return [RawCall(one["id"], one["name"], _value(one["text"])) for one in found]


def _chat_text(items: list[Mapping[str, Any]]) -> Iterable[str]:
    for item in items:
        for choice in item.get("choices") or []:
            if (choice.get("index") or 0) == 0:
                delta = choice.get("delta") or {}
                content = delta.get("content")
                if isinstance(content, str):
                    yield content
                else:  # Mistral sends a list of chunks, some of them thinking
                    yield from (chunk["text"] for chunk in content or [] if chunk.get("type") == "text")
                yield delta.get("refusal") or ""


# OpenAI responses: complete items at their end -----------------------------------------------------------------


def _response_items(items: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the last version of each output item, in the order in which they were added; response after response."""
    order: list[Any] = []
    last: dict[Any, Mapping[str, Any]] = {}
    response = 0
    for item in items:
        response += item.get("type") == "response.created"
        if item.get("type") in ("response.output_item.added", "response.output_item.done"):
            place = (response, item.get("output_index", len(order)))
            if place not in last:
                order.append(place)
            last[place] = item["item"]
    return [last[place] for place in order]


def _responses_calls(items: list[Mapping[str, Any]]) -> list[RawCall]:
    found = []
    for item in _response_items(items):
        if item["type"] == "function_call":
            found.append(RawCall(item["call_id"], item["name"], _value(item["arguments"])))
        elif item["type"] == "custom_tool_call" and not item["call_id"].startswith("xs_call"):  # xAI's own search tool
            found.append(RawCall(item["call_id"], item["name"], item["input"]))
    return found


def _responses_provider_calls(items: list[Mapping[str, Any]]) -> list[RawCall]:
    whole = _response_items(items)
    kinds = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
    return [RawCall(item.get("id"), item["type"], dict(item)) for item in whole if item["type"] in kinds]


def _responses_text(items: list[Mapping[str, Any]]) -> Iterable[str]:
    deltas: dict[Any, str] = {}
    for item in items:
        if item.get("type") in ("response.output_text.delta", "response.refusal.delta"):
            deltas[item["output_index"]] = deltas.get(item["output_index"], "") + item["delta"]
    for place, item in enumerate(_response_items(items)):
        if item["type"] == "message":  # complete at its end; some recordings are cut before it
            whole = "".join(part.get("text") or part.get("refusal") or "" for part in item.get("content") or [])
            said = deltas.get(place, "")
            yield whole if whole.startswith(said) else said


# Anthropic: content blocks, whose input grows as JSON text ---------------------------------------------------


def _blocks(items: list[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Returns the start and the deltas of each content block. Each message numbers its blocks from 0."""
    found: list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]] = []
    open_now: dict[int, list[Mapping[str, Any]]] = {}
    for item in items:
        if item.get("type") == "content_block_start":
            found.append((item["content_block"], []))
            open_now[item["index"]] = found[-1][1]
        elif item.get("type") == "content_block_delta":
            open_now[item["index"]].append(item["delta"])
    return found


def _anthropic(kinds: tuple[str, ...], items: list[Mapping[str, Any]]) -> list[RawCall]:
    found = []
    for block, deltas in _blocks(items):
        if block["type"] in kinds:
            written = "".join(delta.get("partial_json", "") for delta in deltas)
            arguments = _value(written) if written else block.get("input") or {}
            found.append(RawCall(block["id"], block["name"], arguments))
    return found


def _anthropic_text(items: list[Mapping[str, Any]]) -> Iterable[str]:
    for block, deltas in _blocks(items):
        if block["type"] == "text":
            yield block.get("text") or ""
            yield from (delta["text"] for delta in deltas if delta["type"] == "text_delta")


# Google: complete calls, or arguments by JSON path ---------------------------------------------------------------


def _google_parts(items: list[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    for item in items:
        for candidate in (item.get("candidates") or [])[:1]:
            yield from (candidate.get("content") or {}).get("parts") or []


def _google_calls(items: list[Mapping[str, Any]]) -> list[RawCall]:
    found: list[RawCall] = []
    for part in _google_parts(items):
        call = part.get("functionCall")
        if call is None:
            continue
        if call.get("name"):
            found.append(RawCall(call.get("id"), call["name"], dict(call.get("args") or {})))
        for piece in call.get("partialArgs") or []:
            _put(found[-1].arguments, piece)
    return found


def _put(target: Any, piece: Mapping[str, Any]) -> None:
    """Sets the value at the path of a ``partialArgs`` item, or appends to it."""
    names = [int(number) if number else name for name, number in re.findall(r"(\w+)|\[(\d+)\]", piece["jsonPath"][1:])]
    for name, following in pairwise(names):
        target = _at(target, name, [] if isinstance(following, int) else {})
    value = next((piece[key] for key in ("numberValue", "boolValue") if key in piece), None)
    if "stringValue" in piece:
        value = str(_at(target, names[-1], "")) + piece["stringValue"]
    _at(target, names[-1], None)
    target[names[-1]] = value


def _at(target: Any, name: str | int, default: Any) -> Any:
    if isinstance(name, str):
        return target.setdefault(name, default)
    while len(target) <= name:
        target.append(default)
    return target[name]


def _google_text(items: list[Mapping[str, Any]]) -> Iterable[str]:
    return (part["text"] for part in _google_parts(items) if "text" in part and not part.get("thought"))


# Other providers ---------------------------------------------------------------------------------------------------


def _bedrock_calls(items: list[Mapping[str, Any]]) -> list[RawCall]:
    found: dict[int, dict[str, str]] = {}
    for item in items:
        start, delta = item.get("contentBlockStart"), item.get("contentBlockDelta")
        tool = (start or {}).get("start", {}).get("toolUse")
        if start and tool:
            found[start["contentBlockIndex"]] = {"id": tool["toolUseId"], "name": tool["name"], "text": ""}
        elif delta and "toolUse" in delta["delta"]:
            found[delta["contentBlockIndex"]]["text"] += delta["delta"]["toolUse"].get("input", "")
    return [RawCall(one["id"], one["name"], _value(one["text"])) for one in found.values()]


def _bedrock_text(items: list[Mapping[str, Any]]) -> Iterable[str]:
    return (item["contentBlockDelta"]["delta"].get("text", "") for item in items if "contentBlockDelta" in item)


def _cohere_calls(items: list[Mapping[str, Any]]) -> list[RawCall]:
    found: dict[int, dict[str, str]] = {}
    for item in items:
        if item["type"] in ("tool-call-start", "tool-call-delta"):
            call = item["delta"]["message"]["tool_calls"]
            one = found.setdefault(item["index"], {"id": call.get("id", ""), "name": "", "text": ""})
            one["name"] += call["function"].get("name", "")
            one["text"] += call["function"].get("arguments", "")
    return [RawCall(one["id"], one["name"], _value(one["text"])) for one in found.values()]


def _cohere_text(items: list[Mapping[str, Any]]) -> Iterable[str]:
    for item in items:
        if item["type"] == "content-delta":
            yield item["delta"]["message"]["content"].get("text", "")


def _interaction_calls(items: list[Mapping[str, Any]]) -> list[RawCall]:
    found: dict[int, dict[str, Any]] = {}
    for item in items:
        if item.get("event_type") == "step.start" and item["step"]["type"] == "function_call":
            found[item["index"]] = {**item["step"], "text": ""}
        elif item.get("event_type") == "step.delta" and item["index"] in found:
            found[item["index"]]["text"] += item["delta"].get("arguments", "")
    return [RawCall(one["id"], one["name"], _value(one["text"]) or one["arguments"]) for one in found.values()]


def _interaction_text(items: list[Mapping[str, Any]]) -> Iterable[str]:
    for item in items:
        if item.get("event_type") == "step.delta" and item["delta"].get("type") == "text":
            yield item["delta"].get("text", "")


_CALLS: Mapping[str, Callable[[list[Mapping[str, Any]]], list[RawCall]]] = {
    "openai_chat": _chat_calls,
    "openai_responses": _responses_calls,
    "anthropic": lambda items: _anthropic(("tool_use",), items),
    "google": _google_calls,
    "google_interactions": _interaction_calls,
    "bedrock": _bedrock_calls,
    "cohere": _cohere_calls,
}
_PROVIDER_CALLS: Mapping[str, Callable[[list[Mapping[str, Any]]], list[RawCall]]] = {
    "openai_responses": _responses_provider_calls,
    "anthropic": lambda items: _anthropic(("server_tool_use", "mcp_tool_use"), items),
}
_TEXT: Mapping[str, Callable[[list[Mapping[str, Any]]], Iterable[str]]] = {
    "openai_chat": _chat_text,
    "openai_responses": _responses_text,
    "anthropic": _anthropic_text,
    "google": _google_text,
    "google_interactions": _interaction_text,
    "bedrock": _bedrock_text,
    "cohere": _cohere_text,
}
