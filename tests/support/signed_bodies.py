"""Replies with signatures that must be sent back, written by hand from each provider's documentation."""

from __future__ import annotations

import json
from typing import Any

from tests.support.second_requests import Target

__all__ = ["ANTHROPIC", "CALLED", "GOOGLE", "OPENAI", "SECRETS", "SIGNED", "chat", "function"]

_Json = dict[str, Any]

SECRETS = ("c2VjcmV0", "c2Vjb25k")
"""Placeholders for signatures and encrypted content, in base64 like real ones."""


def _named(items: list[_Json]) -> bytes:
    return "".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in items).encode()


def _lines(items: list[_Json], end: str = "") -> bytes:
    return ("".join(f"data: {json.dumps(item)}\n\n" for item in items) + end).encode()


# Anthropic ----------------------------------------------------------------------------------------------------

_USAGE = {"input_tokens": 7, "output_tokens": 5}


def anthropic(*blocks: tuple[_Json, list[_Json]], reason: str = "end_turn") -> bytes:
    """Returns a reply with these blocks, each given as its start and its deltas."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": []}
    items: list[_Json] = [{"type": "message_start", "message": {**message, "stop_reason": None, "usage": _USAGE}}]
    for index, (block, deltas) in enumerate(blocks):
        items.append({"type": "content_block_start", "index": index, "content_block": block})
        items += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        items.append({"type": "content_block_stop", "index": index})
    items.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
    return _named([*items, {"type": "message_stop"}])


def _thinking(text: str, signature: str) -> tuple[_Json, list[_Json]]:
    deltas = [{"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": signature}]
    return {"type": "thinking", "thinking": "", "signature": ""}, deltas


def _said(text: str, *citations: _Json) -> tuple[_Json, list[_Json]]:
    cited = [{"type": "citations_delta", "citation": citation} for citation in citations]
    return {"type": "text", "text": ""}, [*cited, {"type": "text_delta", "text": text}]


def _used(kind: str, call_id: str, name: str, **given: Any) -> tuple[_Json, list[_Json]]:
    delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    return {"type": kind, "id": call_id, "name": name, "input": {}}, [delta]


def _found(call_id: str, secret: str) -> tuple[_Json, list[_Json]]:
    page = {"type": "web_search_result", "url": "https://example.org/", "title": "A page", "page_age": None}
    content = [{**page, "encrypted_content": secret}]
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": content}, []


_CITATION = {
    **{"type": "web_search_result_location", "url": "https://example.org/", "title": "A page"},
    **{"cited_text": "It is so.", "encrypted_index": SECRETS[1]},
}
_REDACTED: tuple[_Json, list[_Json]] = ({"type": "redacted_thinking", "data": SECRETS[0]}, [])


# Responses ----------------------------------------------------------------------------------------------------


def responses(*items: tuple[_Json, _Json, list[_Json]]) -> bytes:
    """Returns a reply with these items, each given as added, as done, and with the events in between."""
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "tools": [], "output": []}
    events: list[_Json] = [{"type": "response.created", "response": {**response, "status": "in_progress"}}]
    for index, (added, done, between) in enumerate(items):
        place = {"output_index": index, "item_id": done["id"]}
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**done, **added}})
        events += [{**event, **place} for event in between]
        events.append({"type": "response.output_item.done", "output_index": index, "item": done})
    output = [done for _, done, _ in items]
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {**_USAGE, "total_tokens": 12, **details}
    events.append(
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": output, "usage": usage},
        }
    )
    return _named([{**event, "sequence_number": number} for number, event in enumerate(events)])


def _summary(*texts: str, raw: str = "") -> tuple[_Json, _Json, list[_Json]]:
    done = {"type": "reasoning", "id": "rs_1", "encrypted_content": SECRETS[0], "status": "completed"}
    done["summary"] = [{"type": "summary_text", "text": text} for text in texts]  # type: ignore[assignment]
    events: list[_Json] = []
    if raw:
        done["content"] = [{"type": "reasoning_text", "text": raw}]  # type: ignore[assignment]
        cut = len(raw) // 2
        deltas = (raw[:cut], raw[cut:])
        events += [{"type": "response.reasoning_text.delta", "content_index": 0, "delta": part} for part in deltas]
    for number, text in enumerate(texts):
        empty = {"type": "summary_text", "text": ""}
        events.append({"type": "response.reasoning_summary_part.added", "summary_index": number, "part": empty})
        events.append({"type": "response.reasoning_summary_text.delta", "summary_index": number, "delta": text})
    return {"summary": [], "encrypted_content": None, "content": None}, done, events


def _answer(text: str, **more: Any) -> tuple[_Json, _Json, list[_Json]]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    done = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content, **more}
    return {"content": []}, done, [{"type": "response.output_text.delta", "content_index": 0, "delta": text}]


def _call(name: str, arguments: str) -> tuple[_Json, _Json, list[_Json]]:
    done = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": arguments}
    return {"arguments": ""}, done, [{"type": "response.function_call_arguments.delta", "delta": arguments}]


def _search() -> tuple[_Json, _Json, list[_Json]]:
    action = {"type": "search", "query": "What is so?", "queries": ["What is so?"]}
    return (
        {"status": "in_progress", "action": None},
        {**{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}},
        [],
    )


# Google and chat completions ----------------------------------------------------------------------------------


def google(*parts: _Json) -> bytes:
    """Returns a reply with one chunk per part."""
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}
    ends: list[_Json] = [{}] * (len(parts) - 1) + [{"finishReason": "STOP"}]
    return _lines(
        [
            {
                "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0, **end}],
                **{"usageMetadata": usage, "modelVersion": "gemini-2.5-flash", "responseId": "g-1"},
            }
            for part, end in zip(parts, ends, strict=True)
        ]
    )


def chat(*deltas: _Json, reason: str = "stop") -> bytes:
    """Returns a reply with these deltas of one choice."""
    head = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "provider": "P"}
    choices: list[_Json] = [{"index": 0, "delta": {"role": "assistant", **delta}} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason, "native_finish_reason": reason})
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    chunks = [{**head, "choices": [{"finish_reason": None, **choice}]} for choice in choices]
    return _lines([*chunks, {**head, "choices": [], "usage": usage}], "data: [DONE]\n\n")


def function(name: str, arguments: str, call_id: str = "call_1") -> _Json:
    """Returns the delta of a tool call."""
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": function}]}


def _detail(**fields: Any) -> _Json:
    return {"reasoning_details": [{"format": "anthropic-claude-v1", "index": 0, **fields}]}


# Replies by name ------------------------------------------------------------------------------------------------

ANTHROPIC = Target("anthropic:claude-sonnet-5", "", {"native_tools": ["web_search", "code_execution"]})
OPENAI = Target("openai:gpt-5", "/v1")
GOOGLE = Target("google:gemini-3-pro-preview", "")

SIGNED: dict[str, tuple[Target, bytes]] = {
    "anthropic thinking": (ANTHROPIC, anthropic(_thinking("Hm", SECRETS[0]), _said("So it is."))),
    "anthropic hidden thinking": (ANTHROPIC, anthropic(_thinking("", SECRETS[0]), _said("So it is."))),
    "anthropic redacted thinking": (ANTHROPIC, anthropic(_REDACTED, _thinking("Hm", SECRETS[1]), _said("So it is."))),
    "anthropic thinking before a call": (
        ANTHROPIC,
        anthropic(_thinking("Hm", SECRETS[0]), _used("tool_use", "toolu_1", "capital", country="France")),
    ),
    "anthropic search with citations": (
        ANTHROPIC,
        anthropic(
            _thinking("Hm", SECRETS[0]),
            _used("server_tool_use", "srvtoolu_1", "web_search", query="What is so?"),
            _found("srvtoolu_1", SECRETS[1]),
            _said("I looked: "),
            _said("it is so.", _CITATION),
        ),
    ),
    "anthropic parallel searches": (
        ANTHROPIC,
        anthropic(
            _used("server_tool_use", "srvtoolu_1", "web_search", query="a"),
            _said("And"),
            _used("server_tool_use", "srvtoolu_2", "web_search", query="b"),
            _found("srvtoolu_2", SECRETS[1]),
            _thinking("Hm", SECRETS[0]),
            _found("srvtoolu_1", SECRETS[0]),
            _said("So it is."),
        ),
    ),
    "openai one summary": (OPENAI, responses(_summary("Hm"), _answer("So it is.", phase="final_answer"))),
    "openai several summaries": (OPENAI, responses(_summary("Hm", "Ah", "So"), _answer("So it is."))),
    "openai no summary": (OPENAI, responses(_summary(), _call("capital", '{"country": "France"}'))),
    "openai raw reasoning": (OPENAI, responses(_summary(raw="Let me see."), _answer("So it is."))),
    "openai raw reasoning and summaries": (
        OPENAI,
        responses(_summary("Hm", "Ah", raw="Let me see."), _call("capital", '{"country": "France"}')),
    ),
    "openai search": (OPENAI, responses(_summary("Hm"), _search(), _answer("So it is.", phase="commentary"))),
    "openai text after a call": (OPENAI, responses(_call("capital", '{"country": "France"}'), _answer("I ask."))),
    "google signed call": (
        GOOGLE,
        google(
            {"text": "Hm", "thought": True},
            {"functionCall": {"id": "f1", "name": "capital", "args": {}}, "thoughtSignature": SECRETS[0]},
        ),
    ),
    "google signed text": (GOOGLE, google({"text": "So "}, {"text": "it is.", "thoughtSignature": SECRETS[0]})),
    "google signed empty text": (GOOGLE, google({"text": "So it is."}, {"text": "", "thoughtSignature": SECRETS[0]})),
    "google only an empty text": (
        GOOGLE,
        google({"text": "Hm", "thought": True}, {"text": "", "thoughtSignature": SECRETS[0]}),
    ),
    "google signed picture": (
        GOOGLE,
        google(
            {"text": "See:"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": SECRETS[0]}
        ),
    ),
    "google code": (
        Target(GOOGLE.name, "", {"native_tools": ["code_execution"]}),
        google(
            {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": SECRETS[0]},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "So it is."},
        ),
    ),
    "openrouter signed reasoning": (
        Target("openrouter:minimax/minimax-m2", "/v1"),
        chat(
            _detail(type="reasoning.text", text="Hm", signature=None),
            _detail(type="reasoning.text", text="", signature=SECRETS[0]),
            {"content": "So it is."},
        ),
    ),
    "openrouter encrypted reasoning": (
        Target("openrouter:minimax/minimax-m2", "/v1"),
        chat(_detail(type="reasoning.encrypted", id="r1", data=SECRETS[0]), function("capital", "{}")),
    ),
    "deepseek reasoning": (
        Target("deepseek:deepseek-reasoner"),
        chat({"reasoning_content": "Hm"}, {"reasoning_content": " so"}, function("capital", "{}")),
    ),
    "groq reasoning": (Target("groq:openai/gpt-oss-120b"), chat({"reasoning": "Hm"}, {"content": "So it is."})),
    "mistral thinking": (
        Target("mistral:magistral-medium-latest"),
        chat(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]},
            {"content": "So it is."},
        ),
    ),
    "zai reasoning": (Target("zai:glm-4.7"), chat({"reasoning_content": "Hm"}, {"content": "So it is."})),
}
"""By name, the model and its reply."""

CALLED: dict[str, tuple[Target, list[bytes]]] = {
    "anthropic": (
        ANTHROPIC,
        [
            anthropic(_thinking("Hm", SECRETS[0]), _used("tool_use", "toolu_1", "capital", country="France")),
            anthropic(_used("tool_use", "toolu_2", "capital", country="Spain")),
            anthropic(_thinking("Ah", SECRETS[1]), _said("So it is.")),
        ],
    ),
    "openai": (
        OPENAI,
        [
            responses(_summary("Hm", "Ah"), _call("capital", '{"country": "France"}')),
            responses(_answer("So it is.")),
        ],
    ),
    "google": (
        GOOGLE,
        [
            google({"functionCall": {"id": "f1", "name": "capital", "args": {}}, "thoughtSignature": SECRETS[0]}),
            google({"functionCall": {"id": "f2", "name": "capital", "args": {}}, "thoughtSignature": SECRETS[1]}),
            google({"text": "So it is."}),
        ],
    ),
    "deepseek": (
        Target("deepseek:deepseek-reasoner"),
        [
            chat({"reasoning_content": "Hm"}, function("capital", "{}")),
            chat({"reasoning_content": "Ah"}, function("capital", "{}", "call_2")),
            chat({"content": "So it is."}),
        ],
    ),
}
"""By name, the model and its replies in one turn; each reply but the last has calls whose results are sent back."""
