"""Templates of what a hostile provider sends: JSON of every format, with a placeholder wherever text is possible.

These characters are placeholders for the text, in values and keys, alone and inside other text:

    §       the text
    ¶       the text, escaped for a JSON string
    ← →     its first and its second half, for text that arrives in two pieces
    « »     the same halves, escaped for a JSON string
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["ARGUMENTS", "ITEMS", "NESTED", "WHOLES", "filled"]

_PLACE = re.compile("[§¶←→«»]")


def filled(form: Any, text: str) -> Any:
    """Returns the template with its placeholders replaced by the text."""
    written = json.dumps(text)[1:-1]
    half, quarter = len(text) // 2, len(written) // 2
    stands = {"§": text, "¶": written, "←": text[:half], "→": text[half:]}
    stands |= {"«": written[:quarter], "»": written[quarter:]}

    def fill(form: Any) -> Any:
        if isinstance(form, str):
            return _PLACE.sub(lambda place: stands[place[0]], form)
        if isinstance(form, dict):
            return {fill(key): fill(value) for key, value in form.items()}
        return [fill(value) for value in form] if isinstance(form, list | tuple) else form

    return fill(form)


Json = dict[str, Any]
ARGUMENTS = '{"¶": "¶", "a": ["¶", {"¶": "¶"}]}'
NESTED = {"§": "§", "a": ["§", {"§": "§"}]}
_FUNCTION = {"name": "§", "arguments": ARGUMENTS}
_CALL = {"id": "§", "type": "function", "function": _FUNCTION}


def _chunk(**delta: Any) -> Json:
    choices = [{"index": 0, "delta": delta, "finish_reason": None}]
    return {"id": "§", "object": "chat.completion.chunk", "model": "§", "choices": choices}


def _piece(arguments: str) -> Json:
    return _chunk(tool_calls=[{"index": 0, "function": {"arguments": arguments}}])


def _block(index: int, start: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _candidate(*parts: Json, **more: Any) -> Json:
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}, **more}], "modelVersion": "§"}


def _grow(index: int, **delta: Any) -> Json:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}


def _cohere(kind: str, index: int = 0, **message: Any) -> Json:
    return {"type": kind, "index": index, "delta": {"message": message}}


def _step(index: int, step: Json, *deltas: Json) -> list[Json]:
    return [
        {"event_type": "step.start", "index": index, "step": step},
        *({"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas),
        {"event_type": "step.stop", "index": index},
    ]


_IMAGE = "data:image/png;base64,§"
_USED = {"type": "server_tool_use", "id": "s§", "name": "§", "input": NESTED}
_PAGE = {"type": "web_search_result", "url": "https://§", "title": "§"}
_CITED = {"type": "web_search_result_location", "url": "§", "title": "§", "cited_text": "§"}
_DOCUMENT = {"type": "page_location", "document_index": 0, "document_title": "§", "start_page_number": 3}
_OUTPUT = [
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "§"}]},
    {"type": "message", "id": "m", "role": "assistant", "content": [
        {"type": "output_text", "text": "§", "annotations": [{"type": "url_citation", "url": "§", "title": "§"}]},
        {"type": "refusal", "refusal": "§"},
    ]},
    {"type": "function_call", "id": "f", "call_id": "§", "name": "§", "arguments": ARGUMENTS},
    {"type": "custom_tool_call", "id": "c", "call_id": "c§", "name": "§", "input": "§"},
    {"type": "mcp_call", "id": "§", "name": "§", "server_label": "§", "arguments": ARGUMENTS, "output": "§"},
    {"type": "mcp_call", "id": "e§", "name": "§", "server_label": "§", "arguments": "§", "error": "§"},
    {"type": "code_interpreter_call", "id": "i§", "code": "§", "outputs": [{"type": "logs", "logs": "§"}]},
    {"type": "§", "id": "§", "§": "§"},
]  # fmt: skip

ITEMS: Mapping[str, list[Any]] = {
    "openai-chat": [
        _chunk(role="assistant", reasoning_content="←"),
        _chunk(reasoning_content="→"),
        _chunk(content="←"),
        _chunk(content="→"),
        _chunk(refusal="§"),
        _chunk(annotations=[{"type": "url_citation", "url_citation": {"url": "§", "title": "§"}}]),
        _chunk(images=[{"type": "image_url", "image_url": {"url": _IMAGE}}, {"image_url": {"url": "§"}}]),
        _chunk(tool_calls=[{"index": 0, "id": "§", "function": {"name": "§", "arguments": '{"¶": "«'}}]),
        _piece('»"'),
        _piece(', "list": [["¶"]]}'),
        {"id": "§", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "§"}]},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "§", "model": "§", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"}},
        {"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "content_index": 0, "delta": "←"},
        {"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "content_index": 0, "delta": "→"},
        *({"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate(_OUTPUT, 1)),
        {"type": "response.§", "§": "§"},
        {"type": "error", "code": "§", "message": "§", "param": "§"},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "§", "role": "assistant", "model": "§", "content": []}},
        *_block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "←"},
                {"type": "thinking_delta", "thinking": "→"}, {"type": "signature_delta", "signature": "§"}),
        *_block(1, {"type": "text", "text": "§"}, {"type": "text_delta", "text": "←"},
                {"type": "text_delta", "text": "→"}, {"type": "citations_delta", "citation": _CITED},
                {"type": "citations_delta", "citation": _DOCUMENT}),
        *_block(2, {"type": "tool_use", "id": "§", "name": "§", "input": {}},
                {"type": "input_json_delta", "partial_json": '{"¶": "«'},
                {"type": "input_json_delta", "partial_json": '»", "x": {"¶": ["¶"]}}'}),
        *_block(3, _USED),
        *_block(4, {"type": "web_search_tool_result", "tool_use_id": "s§", "content": [_PAGE]}),
        *_block(5, {"type": "§", "§": "§"}),
        {"type": "error", "error": {"type": "§", "message": "§"}},
        {"type": "message_delta", "delta": {"stop_reason": "§", "stop_sequence": "§"}, "usage": {"output_tokens": 1}},
    ],
    "google": [
        _candidate({"text": "←", "thought": True}),
        _candidate({"text": "→", "thought": True}),
        _candidate({"text": "←"}),
        _candidate({"text": "→"}),
        _candidate({"functionCall": {"name": "§", "args": NESTED, "id": "§"}}),
        _candidate({"executableCode": {"language": "§", "code": "§"}}),
        _candidate({"codeExecutionResult": {"outcome": "§", "output": "§"}}),
        _candidate({"inlineData": {"mimeType": "§", "data": "§"}}, {"fileData": {"mimeType": "§", "fileUri": "§"}}),
        _candidate(finishReason="§", groundingMetadata={"groundingChunks": [{"web": {"uri": "§", "title": "§"}}]}),
    ],
    "google-interactions": [
        {"event_type": "interaction.created", "interaction": {"id": "§", "model": "§"}},
        *_step(0, {"type": "thought"}, {"type": "thought_summary", "content": {"type": "text", "text": "§"}}),
        *_step(1, {"type": "model_output"}, {"type": "text", "text": "←"}, {"type": "text", "text": "→"}),
        *_step(2, {"type": "function_call", "id": "§", "name": "§", "arguments": NESTED}),
        {"event_type": "§", "§": "§"},
        {"event_type": "error", "error": {"code": "§", "message": "§"}},
    ],
    "bedrock": [
        {"messageStart": {"role": "assistant"}},
        _grow(0, reasoningContent={"text": "§"}),
        _grow(1, text="←"),
        _grow(1, text="→"),
        _grow(1, citation={"title": "§", "location": {"web": {"url": "§"}}}),
        {"contentBlockStart": {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "§", "name": "§"}}}},
        _grow(2, toolUse={"input": '{"¶": "«'}),
        _grow(2, toolUse={"input": '»"}'}),
        {"messageStop": {"stopReason": "§"}},
    ],
    "cohere": [
        {"type": "message-start", "id": "§", "delta": {"message": {"role": "assistant"}}},
        _cohere("tool-plan-delta", tool_plan="§"),
        _cohere("tool-call-start", tool_calls={"id": "§", "function": {"name": "§", "arguments": '{"¶": "«'}}),
        _cohere("tool-call-delta", tool_calls={"function": {"arguments": '»"}'}}),
        _cohere("content-start", content={"type": "text", "text": ""}),
        _cohere("content-delta", content={"text": "←"}),
        _cohere("content-delta", content={"text": "→"}),
        _cohere("citation-start", citations={"start": 0, "end": 1, "text": "§", "sources": [
            {"type": "document", "id": "§", "document": {"id": "§", "title": "§", "url": "§"}}]}),
        {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "§"}},
    ],
    "mistral": [
        {"type": "conversation.response.started", "conversation_id": "§"},
        {"type": "message.output.delta", "id": "m", "content": "§", "model": "§", "role": "assistant"},
        {"type": "function.call.delta", "id": "f", "name": "§", "tool_call_id": "§", "arguments": ARGUMENTS},
        {"type": "tool.execution.started", "id": "t", "name": "§", "arguments": ARGUMENTS},
        {"type": "conversation.response.error", "message": "§", "code": 1},
    ],
    "ollama": [
        {"model": "§", "created_at": "§", "message": {"role": "assistant", "thinking": "§"}, "done": False},
        {"model": "§", "created_at": "§", "message": {"role": "assistant", "content": "←"}, "done": False},
        {"model": "§", "created_at": "§", "message": {"role": "assistant", "content": "→", "tool_calls": [
            {"function": {"name": "§", "arguments": NESTED}}]}, "done": True, "done_reason": "§"},
    ],
    "ui-chunks": [
        {"type": "start", "messageId": "§", "messageMetadata": {"model": "§", "§": NESTED}},
        {"type": "tool-input-start", "toolCallId": "§", "toolName": "§", "title": "§", "§": "§"},
        {"type": "tool-input-available", "toolCallId": "§", "toolName": "§", "input": NESTED},
        {"type": "tool-output-error", "toolCallId": "§", "errorText": "§"},
        {"type": "finish", "finishReason": "§"},
    ],
    "ag-ui": [
        {"type": "RUN_STARTED", "threadId": "§", "runId": "§"},
        {"type": "TOOL_CALL_START", "toolCallId": "§", "toolCallName": "§"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "§", "delta": "§"},
        {"type": "TOOL_CALL_RESULT", "messageId": "§", "toolCallId": "§", "content": "§"},
        {"type": "CUSTOM", "name": "§", "value": NESTED},
    ],
    "chat": [
        {"type": "tool_usage", "tools": ["§"]},
        {"type": "chunk", "content": "←"},
        {"type": "chunk", "content": "→"},
        {"type": "end", "thread_id": "§"},
    ],
    "provider": [
        {"type": "provider-event", "data": {"type": "text-delta", "textDelta": "←"}},
        {"type": "provider-event", "data": {"type": "text-delta", "textDelta": "→"}},
        {"type": "latitude-event", "data": {"type": "tools-started", "tools": [
            {"id": "§", "name": "§", "arguments": NESTED}]}},
        {"type": "latitude-event", "data": {"type": "chain-error", "error": {"message": "§"}}},
    ],
    "stages": [
        {"stage": "start", "id": "§", "name": "§", "parameters": ""},
        {"stage": "running", "id": "§", "name": "§", "parameters": "§", "shortResult": "§"},
        {"stage": "end", "id": "§", "name": "§", "parameters": "§", "result": "§", "error": "§"},
    ],
    "text": ["§", "←", "→"],
}  # fmt: skip
"""Streams, by the name of their format."""


def _message(role: str, *content: Json, **more: Any) -> Json:
    return {"role": role, "content": [*content], **more}


def _ui(role: str, *parts: Json) -> Json:
    return {"id": "§", "role": role, "parts": [*parts], "metadata": {"model": "§", "§": "§"}}


def _tool(state: str, kind: str = "tool-§", **more: Any) -> Json:
    return {"type": kind, "toolCallId": f"{state}§", "state": state, "input": NESTED, **more}


_SHOWN = {
    "display": {"text/html": "§", "text/markdown": "§", "text/plain": "§", "§": "§"},
    "log": "§",
    "modelText": "§",
}
_ASKED = {"id": "§", "approved": False, "reason": "§"}

WHOLES: Mapping[str, Any] = {
    "openai-chat": {"object": "chat.completion", "model": "§", "choices": [
        {"message": {"role": "assistant", "content": "§", "reasoning": "§", "tool_calls": [_CALL]}}
    ]},
    "openai-responses": {"id": "§", "object": "response", "status": "§", "model": "§", "output": _OUTPUT},
    "openai-messages": [
        {"role": "system", "content": "§"},
        {"role": "user", "content": [{"type": "text", "text": "§"}, {"type": "image_url", "image_url": {"url": "§"}},
                                     {"type": "file", "file": {"filename": "§", "file_data": "§"}}]},
        {"role": "assistant", "content": "§", "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "§", "content": "§"},
        {"role": "user", "content": "§"},
    ],
    "anthropic": {"id": "§", "type": "message", "role": "assistant", "model": "§", "stop_reason": "§", "content": [
        {"type": "thinking", "thinking": "§", "signature": "§"}, {"type": "text", "text": "§", "citations": [_CITED]},
        {"type": "tool_use", "id": "§", "name": "§", "input": NESTED}, _USED, {"type": "§", "§": "§"}]},
    "anthropic-messages": [
        _message("user", {"type": "text", "text": "§"}, {"type": "image", "source": {"type": "url", "url": "§"}},
                 {"type": "image", "source": {"type": "base64", "media_type": "§", "data": "§"}}),
        _message("assistant", {"type": "tool_use", "id": "§", "name": "§", "input": NESTED}),
        _message("user", {"type": "tool_result", "tool_use_id": "§", "is_error": True, "content": "§"}),
    ],
    "google": {"candidates": [{"content": {"role": "model", "parts": [{"text": "§"}]}, "finishReason": "§"}],
               "modelVersion": "§", "responseId": "§", "promptFeedback": {"blockReasonMessage": "§"}},
    "google-contents": [
        {"role": "user", "parts": [{"text": "§"}, {"fileData": {"mimeType": "§", "fileUri": "§"}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "§", "args": NESTED}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "§", "response": NESTED}}]},
    ],
    "bedrock": {"output": {"message": {"role": "assistant", "content": [
        {"text": "§"}, {"toolUse": {"toolUseId": "§", "name": "§", "input": NESTED}}]}}, "stopReason": "§"},
    "bedrock-messages": [
        _message("user", {"text": "§"}),
        _message("assistant", {"toolUse": {"toolUseId": "§", "name": "§", "input": NESTED}}),
        _message("user", {"toolResult": {"toolUseId": "§", "content": [{"text": "§"}, {"json": NESTED}]}}),
    ],
    "cohere": {"id": "§", "finish_reason": "TOOL_CALL", "message": {
        "role": "assistant", "tool_plan": "§", "tool_calls": [_CALL]}},
    "mistral": {"object": "conversation.response", "conversation_id": "§", "outputs": [
        {"type": "message.output", "content": "§", "model": "§", "role": "assistant"},
        {"type": "function.call", "name": "§", "tool_call_id": "§", "arguments": ARGUMENTS}]},
    "langchain": [
        {"type": "human", "data": {"content": "§"}},
        {"type": "ai", "data": {"id": "§", "content": [
            {"type": "text", "text": "§", "annotations": [{"type": "citation", "url": "§", "title": "§"}]},
            {"type": "reasoning", "reasoning": "§"}, {"type": "image", "mime_type": "§", "base64": "§"},
            {"type": "image_url", "image_url": {"url": "§"}}, {"type": "§", "§": "§"}],
            "tool_calls": [{"name": "§", "args": NESTED, "id": "§", "type": "tool_call"}],
            "response_metadata": {"model_name": "§", "finish_reason": "§"}}},
        {"type": "tool", "data": {"content": "§", "tool_call_id": "§", "status": "error", "artifact": NESTED}},
    ],
    "langgraph": {"messages": [
        {"type": "human", "content": "§"},
        {"type": "ai", "content": "§", "tool_calls": [{"name": "§", "args": NESTED, "id": "§", "type": "tool_call"}]},
        {"type": "tool", "content": "§", "tool_call_id": "§"}]},
    "pydantic-ai": [
        {"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "§"},
                                      {"part_kind": "user-prompt", "content": ["§", {"kind": "image-url", "url": "§"}]},
                                      {"part_kind": "§", "§": "§"}]},
        {"kind": "response", "model_name": "§", "finish_reason": "§", "parts": [
            {"part_kind": "thinking", "content": "§", "signature": "§"}, {"part_kind": "text", "content": "§"},
            {"part_kind": "tool-call", "tool_name": "§", "args": ARGUMENTS, "tool_call_id": "§"},
            {"part_kind": "file", "content": {"kind": "binary", "media_type": "§", "data": "§"}}]},
        {"kind": "request", "parts": [
            {"part_kind": "retry-prompt", "tool_name": "§", "tool_call_id": "§", "content": "§"},
            {"part_kind": "tool-return", "tool_name": "§", "tool_call_id": "x§", "content": NESTED}]},
    ],
    "ui-messages": [
        _ui("user", {"type": "text", "text": "§"}, {"type": "file", "url": "§", "mediaType": "§", "filename": "§"}),
        _ui("assistant", {"type": "reasoning", "text": "§"}, {"type": "text", "text": "§"},
            {"type": "source-url", "sourceId": "§", "url": "§", "title": "§"},
            {"type": "source-document", "sourceId": "§", "mediaType": "§", "title": "§", "filename": "§"},
            {"type": "file", "url": _IMAGE, "mediaType": "§"}, {"type": "data-§", "id": "§", "data": NESTED},
            {"type": "custom", "kind": "§"}, {"type": "step-start", "toolcall": {"agent": "§", "model": "§"}},
            {"type": "data-toolcall", "data": {"type": "error", "text": "§", "details": "§"}},
            {"type": "data-toolcall", "data": {"type": "text", "text": "§", "toolcall": {"parent": "§"}}},
            _tool("input-streaming", title="§"), _tool("input-available", toolcall={"log": "§"}),
            _tool("approval-requested", approval={"id": "§", "requestReason": "§"},
                  toolcall={"approval": {"title": "§"}}),
            _tool("output-available", output=NESTED, toolcall=_SHOWN),
            _tool("output-error", errorText="§", toolcall={"traceback": "§", "log": "§"}),
            _tool("output-denied", kind="dynamic-tool", toolName="§", approval=_ASKED),
            {"type": "§", "§": "§"}),
    ],
}  # fmt: skip
"""Complete replies and lists of messages, by the name of their format."""
