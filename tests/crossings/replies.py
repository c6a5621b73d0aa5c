"""One reply of a model, as each provider sends it: `REPLY_FORMATS`, written from the providers' documentation.

Each writer takes a step of a transcript and shares no code with the package. Where a provider's own Python package is
installed, its types check what is written here (`tests.crossings.test_crossings`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from toolcall_nb.core.transcript import ErrorPart, ReasoningPart, SourceUrlPart, Step

__all__ = ["REPLY_FORMATS", "ReplyFormat"]

Item = dict[str, Any]


class ReplyFormat(NamedTuple):
    """The writers of a stream's items and of a whole reply."""

    title: str
    stream: Callable[[Step], list[Any]]
    whole: Callable[[Step], Any]


def _reasoning(step: Step) -> str:
    return "".join(part.text for part in step.parts if isinstance(part, ReasoningPart))


def _pages(step: Step) -> list[SourceUrlPart]:
    return [part for part in step.parts if isinstance(part, SourceUrlPart)]


def _error(step: Step) -> str | None:
    return next((part.text for part in step.parts if isinstance(part, ErrorPart)), None)


def _usage(step: Step) -> Mapping[str, int]:
    usage: Mapping[str, int] = {"inputTokens": 3, "outputTokens": 2, **(step.usage or {})}
    return {"cachedInputTokens": 0, "cacheWriteTokens": 0, "reasoningTokens": 0, **usage}


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _id(step: Step) -> str:
    return step.response_id or "resp-other"


def _model(step: Step) -> str:
    return step.model or "m-other"


def _arguments(value: Any) -> str:
    return json.dumps(value)


# OpenAI's chat completions ----------------------------------------------------------------------------------------

_CHAT_REASONS = {"tool-calls": "tool_calls", "content-filter": "content_filter"}


def _chat_usage(step: Step) -> Item:
    usage = _usage(step)
    return {
        "prompt_tokens": usage["inputTokens"],
        "completion_tokens": usage["outputTokens"],
        "total_tokens": usage["inputTokens"] + usage["outputTokens"],
        "prompt_tokens_details": {
            "cached_tokens": usage["cachedInputTokens"],
            "cache_write_tokens": usage["cacheWriteTokens"],
        },
        "completion_tokens_details": {"reasoning_tokens": usage["reasoningTokens"]},
    }


def _annotations(step: Step) -> list[Item]:
    place = {"start_index": 0, "end_index": 4}
    return [{"type": "url_citation", "url_citation": {"url": p.url, "title": p.title, **place}} for p in _pages(step)]


def chat_stream(step: Step) -> list[Item]:
    def chunk(reason: str | None = None, **delta: Any) -> Item:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**head, "choices": [choice]}

    head = {"id": _id(step), "object": "chat.completion.chunk", "created": 1, "model": _model(step)}
    chunks = [chunk(role="assistant", content="")]
    chunks += [chunk(reasoning_content=half) for half in _halves(_reasoning(step)) if half]
    chunks += [chunk(content=half) for half in _halves(step.text) if half]
    if pages := _annotations(step):
        chunks.append(chunk(annotations=pages))
    for index, call in enumerate(step.calls):
        begun = {"index": index, "id": call.provider_id or call.id, "type": "function"}
        first, second = _halves(_arguments(call.input))
        chunks.append(chunk(tool_calls=[{**begun, "function": {"name": call.name, "arguments": first}}]))
        chunks.append(chunk(tool_calls=[{"index": index, "function": {"arguments": second}}]))
    if error := _error(step):
        return [*chunks, {"error": {"message": error, "type": "server_error", "code": 500}}]
    chunks.append(chunk(_CHAT_REASONS.get(step.finish_reason, step.finish_reason)))
    return [*chunks, {**head, "choices": [], "usage": _chat_usage(step)}]


def chat_message(step: Step) -> Item:
    calls = [
        {
            "id": call.provider_id or call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": _arguments(call.input)},
        }
        for call in step.calls
    ]
    return {
        "role": "assistant",
        "content": step.text or None,
        "refusal": None,
        **({"reasoning_content": _reasoning(step)} if _reasoning(step) else {}),
        **({"annotations": _annotations(step)} if _pages(step) else {}),
        **({"tool_calls": calls} if calls else {}),
    }


def chat_whole(step: Step) -> Item:
    reason = _CHAT_REASONS.get(step.finish_reason, step.finish_reason)
    choice = {"index": 0, "message": chat_message(step), "finish_reason": reason, "logprobs": None}
    head = {"id": _id(step), "object": "chat.completion", "created": 1, "model": _model(step)}
    return {**head, "choices": [choice], "usage": _chat_usage(step)}


# OpenAI's responses -----------------------------------------------------------------------------------------------


def responses_items(step: Step) -> list[Item]:
    items: list[Item] = []
    if _reasoning(step):
        items.append(
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": _reasoning(step)}]}
        )
    if step.text:
        place = {"start_index": 0, "end_index": 4}
        pages = [{"type": "url_citation", "url": p.url, "title": p.title, **place} for p in _pages(step)]
        content = [{"type": "output_text", "text": step.text, "annotations": pages, "logprobs": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
    for number, call in enumerate(step.calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": call.provider_id or call.id,
                "name": call.name,
                "arguments": _arguments(call.input),
                "status": "completed",
            }
        )
    return items


def responses_whole(step: Step) -> Item:
    usage = _usage(step)
    status: Item = {"status": "completed", "error": None, "incomplete_details": None}
    if step.finish_reason in ("length", "content-filter"):
        reason = {"length": "max_output_tokens", "content-filter": "content_filter"}[step.finish_reason]
        status = {"status": "incomplete", "error": None, "incomplete_details": {"reason": reason}}
    if error := _error(step):
        status = {"status": "failed", "error": {"code": "server_error", "message": error}, "incomplete_details": None}
    return {
        "id": _id(step),
        "object": "response",
        "created_at": 1,
        "model": _model(step),
        "output": responses_items(step),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **status,
        "usage": {
            "input_tokens": usage["inputTokens"],
            "output_tokens": usage["outputTokens"],
            "total_tokens": usage["inputTokens"] + usage["outputTokens"],
            "input_tokens_details": {
                "cached_tokens": usage["cachedInputTokens"],
                "cache_write_tokens": usage["cacheWriteTokens"],
            },
            "output_tokens_details": {"reasoning_tokens": usage["reasoningTokens"]},
        },
    }


def responses_stream(step: Step) -> list[Item]:
    whole = responses_whole(step)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "error": None, "incomplete_details": None}
    events: list[Item] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "reasoning":
                events.append(
                    {"type": "response.output_item.added", "output_index": index, "item": {**item, "summary": []}}
                )
                for half in _halves(_reasoning(step)):
                    delta = {"summary_index": 0, "delta": half}
                    events.append({"type": "response.reasoning_summary_text.delta", **place, **delta})
            case "message":
                events.append(
                    {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}}
                )
                for half in _halves(step.text):
                    delta = {"content_index": 0, "delta": half, "logprobs": []}
                    events.append({"type": "response.output_text.delta", **place, **delta})
                for number, page in enumerate(item["content"][0]["annotations"]):
                    more = {"content_index": 0, "annotation_index": number, "annotation": page}
                    events.append({"type": "response.output_text.annotation.added", **place, **more})
            case "function_call":
                events.append(
                    {"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": ""}}
                )
                for half in _halves(item["arguments"]):
                    events.append({"type": "response.function_call_arguments.delta", **place, "delta": half})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


# Anthropic --------------------------------------------------------------------------------------------------------

_CLAUDE_REASONS = {"stop": "end_turn", "tool-calls": "tool_use", "length": "max_tokens", "content-filter": "refusal"}


def anthropic_blocks(step: Step) -> list[Item]:
    blocks: list[Item] = []
    if _reasoning(step):
        blocks.append({"type": "thinking", "thinking": _reasoning(step), "signature": "c2ln"})
    if step.text:
        pages = [
            {
                "type": "web_search_result_location",
                "url": page.url,
                "title": page.title,
                "cited_text": "ice",
                "encrypted_index": "x",
            }
            for page in _pages(step)
        ]
        blocks.append({"type": "text", "text": step.text, "citations": pages or None})
    for call in step.calls:
        blocks.append({"type": "tool_use", "id": call.provider_id or call.id, "name": call.name, "input": call.input})
    return blocks


def _anthropic_usage(step: Step) -> Item:
    usage = _usage(step)
    cached, written = usage["cachedInputTokens"], usage["cacheWriteTokens"]
    return {
        "input_tokens": usage["inputTokens"] - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": usage["outputTokens"],
        "output_tokens_details": {"thinking_tokens": usage["reasoningTokens"]},
    }


def anthropic_whole(step: Step) -> Item:
    return {
        "id": _id(step),
        "type": "message",
        "role": "assistant",
        "model": _model(step),
        "content": anthropic_blocks(step),
        "stop_reason": _CLAUDE_REASONS.get(step.finish_reason),
        "stop_sequence": None,
        "usage": _anthropic_usage(step),
    }


def anthropic_stream(step: Step) -> list[Item]:
    whole = anthropic_whole(step)
    usage = {**whole["usage"], "output_tokens": 1}
    events: list[Item] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
    ]
    for index, block in enumerate(whole["content"]):
        match block["type"]:
            case "thinking":
                begun = {**block, "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": half} for half in _halves(block["thinking"])]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "text":
                begun = {"type": "text", "text": "", "citations": None}
                deltas = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
                deltas += [{"type": "citations_delta", "citation": page} for page in block["citations"] or ()]
            case _:
                begun = {**block, "input": {}}
                halves = _halves(_arguments(block["input"]))
                deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves]
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if error := _error(step):
        return [*events, {"type": "error", "error": {"type": "api_error", "message": error}}]
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": delta, "usage": whole["usage"]}, {"type": "message_stop"}]


# Google -----------------------------------------------------------------------------------------------------------

_GOOGLE_REASONS = {"length": "MAX_TOKENS", "content-filter": "SAFETY"}


def google_parts(step: Step) -> list[Item]:
    parts: list[Item] = []
    if _reasoning(step):
        parts.append({"text": _reasoning(step), "thought": True})
    if step.text:
        parts.append({"text": step.text})
    for call in step.calls:
        parts.append({"functionCall": {"id": call.provider_id or call.id, "name": call.name, "args": call.input}})
    return parts


def _google_usage(step: Step) -> Item:
    usage = _usage(step)
    return {
        "promptTokenCount": usage["inputTokens"],
        "cachedContentTokenCount": usage["cachedInputTokens"],
        "candidatesTokenCount": usage["outputTokens"] - usage["reasoningTokens"],
        "thoughtsTokenCount": usage["reasoningTokens"],
        "totalTokenCount": usage["inputTokens"] + usage["outputTokens"],
    }


def google_stream(step: Step) -> list[Item]:
    head = {"responseId": _id(step), "modelVersion": _model(step)}
    parts = google_parts(step)
    chunks: list[Item] = [
        {**head, "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts
    ]
    last: Item = {"index": 0, "finishReason": _GOOGLE_REASONS.get(step.finish_reason, "STOP")}
    if pages := [{"web": {"uri": page.url, "title": page.title}} for page in _pages(step)]:
        last["groundingMetadata"] = {"groundingChunks": pages}
    return [*chunks, {**head, "candidates": [last], "usageMetadata": _google_usage(step)}]


def google_whole(step: Step) -> Item:
    last = google_stream(step)[-1]
    [candidate] = last["candidates"]
    return {**last, "candidates": [{**candidate, "content": {"role": "model", "parts": google_parts(step)}}]}


# Google's interactions --------------------------------------------------------------------------------------------


def _interaction_steps(step: Step) -> list[Item]:
    steps: list[Item] = []
    if _reasoning(step):
        steps.append({"type": "thought", "summary": [{"type": "text", "text": _reasoning(step)}]})
    if step.text:
        pages = [{"type": "url_citation", "url": page.url, "title": page.title} for page in _pages(step)]
        content = {"type": "text", "text": step.text, **({"annotations": pages} if pages else {})}
        steps.append({"type": "model_output", "content": [content]})
    for call in step.calls:
        call_id = call.provider_id or call.id
        steps.append({"type": "function_call", "id": call_id, "name": call.name, "arguments": call.input})
    return steps


def interactions_whole(step: Step) -> Item:
    usage = _usage(step)
    status = {"tool-calls": "requires_action", "stop": "completed"}.get(step.finish_reason, "incomplete")
    return {
        "id": _id(step),
        "object": "interaction",
        "model": _model(step),
        "status": status,
        "steps": _interaction_steps(step),
        "usage": {
            "total_input_tokens": usage["inputTokens"],
            "total_cached_tokens": usage["cachedInputTokens"],
            "total_output_tokens": usage["outputTokens"] - usage["reasoningTokens"],
            "total_thought_tokens": usage["reasoningTokens"],
            "total_tokens": usage["inputTokens"] + usage["outputTokens"],
        },
    }


def interactions_stream(step: Step) -> list[Item]:
    whole = interactions_whole(step)
    begun = {"id": whole["id"], "model": whole["model"], "status": "in_progress"}
    events: list[Item] = [{"event_type": "interaction.created", "interaction": begun}]
    for index, each in enumerate(whole["steps"]):
        match each["type"]:
            case "thought":
                start: Item = {"type": "thought"}
                deltas: list[Item] = [{"type": "thought_summary", "content": each["summary"][0]}]
            case "model_output":
                start = {"type": "model_output"}
                text = each["content"][0]
                deltas = [{"type": "text", "text": half} for half in _halves(text["text"])]
                if "annotations" in text:
                    deltas.append({"type": "text_annotation_delta", "annotations": text["annotations"]})
            case _:
                start = {**each, "arguments": {}}
                deltas = [
                    {"type": "arguments_delta", "arguments": half} for half in _halves(_arguments(each["arguments"]))
                ]
        events.append({"event_type": "step.start", "index": index, "step": start})
        events += [{"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"event_type": "step.stop", "index": index})
    if error := _error(step):
        return [*events, {"event_type": "error", "error": {"code": "internal", "message": error}}]
    finished = {name: value for name, value in whole.items() if name != "steps"}
    return [*events, {"event_type": "interaction.completed", "interaction": finished}]


# Bedrock ----------------------------------------------------------------------------------------------------------

_BEDROCK_REASONS = {
    "stop": "end_turn",
    "tool-calls": "tool_use",
    "length": "max_tokens",
    "content-filter": "content_filtered",
}


def bedrock_content(step: Step) -> list[Item]:
    content: list[Item] = []
    if _reasoning(step):
        content.append({"reasoningContent": {"reasoningText": {"text": _reasoning(step), "signature": "c2ln"}}})
    if pages := _pages(step):
        cited = [{"title": page.title, "location": {"web": {"url": page.url}}} for page in pages]
        content.append({"citationsContent": {"content": [{"text": step.text}], "citations": cited}})
    elif step.text:
        content.append({"text": step.text})
    for call in step.calls:
        content.append({"toolUse": {"toolUseId": call.provider_id or call.id, "name": call.name, "input": call.input}})
    return content


def _bedrock_usage(step: Step) -> Item:
    usage = _usage(step)
    cached, written = usage["cachedInputTokens"], usage["cacheWriteTokens"]
    return {
        "inputTokens": usage["inputTokens"] - cached - written,
        "cacheReadInputTokens": cached,
        "cacheWriteInputTokens": written,
        "outputTokens": usage["outputTokens"],
        "totalTokens": usage["inputTokens"] + usage["outputTokens"],
    }


def bedrock_whole(step: Step) -> Item:
    return {
        "ResponseMetadata": {"RequestId": _id(step), "HTTPStatusCode": 200},
        "output": {"message": {"role": "assistant", "content": bedrock_content(step)}},
        "stopReason": _BEDROCK_REASONS[step.finish_reason],
        "usage": _bedrock_usage(step),
        "metrics": {"latencyMs": 10},
    }


def bedrock_stream(step: Step) -> list[Item]:
    def grow(index: int, **delta: Any) -> Item:
        return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}

    events: list[Item] = [{"messageStart": {"role": "assistant"}}]
    index = 0
    if _reasoning(step):
        events += [grow(index, reasoningContent={"text": half}) for half in _halves(_reasoning(step))]
        events += [grow(index, reasoningContent={"signature": "c2ln"}), {"contentBlockStop": {"contentBlockIndex": 0}}]
        index += 1
    if step.text:
        events += [grow(index, text=half) for half in _halves(step.text)]
        for page in _pages(step):
            events.append(grow(index, citation={"title": page.title, "location": {"web": {"url": page.url}}}))
        events.append({"contentBlockStop": {"contentBlockIndex": index}})
        index += 1
    for number, call in enumerate(step.calls, index):
        use = {"toolUseId": call.provider_id or call.id, "name": call.name}
        events.append({"contentBlockStart": {"contentBlockIndex": number, "start": {"toolUse": use}}})
        events += [grow(number, toolUse={"input": half}) for half in _halves(_arguments(call.input))]
        events.append({"contentBlockStop": {"contentBlockIndex": number}})
    if error := _error(step):
        return [*events, {"modelStreamErrorException": {"message": error}}]
    events.append({"messageStop": {"stopReason": _BEDROCK_REASONS[step.finish_reason]}})
    return [*events, {"metadata": {"usage": _bedrock_usage(step), "metrics": {"latencyMs": 10}}}]


# Cohere -----------------------------------------------------------------------------------------------------------

_COHERE_REASONS = {"stop": "COMPLETE", "tool-calls": "TOOL_CALL", "length": "MAX_TOKENS"}


def _cohere_usage(step: Step) -> Item:
    usage = _usage(step)
    counts = {"input_tokens": usage["inputTokens"], "output_tokens": usage["outputTokens"]}
    return {"billed_units": counts, "tokens": counts, "cached_tokens": usage["cachedInputTokens"]}


def _cohere_citations(step: Step) -> list[Item]:
    return [
        {
            "start": 0,
            "end": 4,
            "text": "ice",
            "sources": [
                {"type": "document", "id": "d1", "document": {"id": "d1", "title": page.title, "url": page.url}}
            ],
        }
        for page in _pages(step)
    ]


def cohere_whole(step: Step) -> Item:
    content: list[Item] = [{"type": "thinking", "thinking": _reasoning(step)}] if _reasoning(step) else []
    content += [{"type": "text", "text": step.text}] if step.text else []
    calls = [
        {
            "id": call.provider_id or call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": _arguments(call.input)},
        }
        for call in step.calls
    ]
    message: Item = {"role": "assistant", "content": content or None}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"citations": _cohere_citations(step)} if _pages(step) else {}
    reason = _COHERE_REASONS.get(step.finish_reason, "ERROR")
    return {"id": _id(step), "finish_reason": reason, "message": message, "usage": _cohere_usage(step)}


def cohere_stream(step: Step) -> list[Item]:
    def event(kind: str, index: int | None = None, **message: Any) -> Item:
        place = {} if index is None else {"index": index}
        return {"type": kind, **place, "delta": {"message": message}}

    events: list[Item] = [
        {"type": "message-start", "id": _id(step), "delta": {"message": {"role": "assistant", "content": []}}}
    ]
    index = 0
    for kind, text in (("thinking", _reasoning(step)), ("text", step.text)):
        if text:
            events.append(event("content-start", index, content={"type": kind, kind: ""}))
            events += [event("content-delta", index, content={kind: half}) for half in _halves(text)]
            events += [{"type": "content-end", "index": index}]
            index += 1
    events += [event("citation-start", 0, citations=each) for each in _cohere_citations(step)]
    for number, call in enumerate(step.calls):
        function = {"name": call.name, "arguments": ""}
        begun = {"id": call.provider_id or call.id, "type": "function", "function": function}
        events.append(event("tool-call-start", number, tool_calls=begun))
        for half in _halves(_arguments(call.input)):
            events.append(event("tool-call-delta", number, tool_calls={"function": {"arguments": half}}))
        events.append({"type": "tool-call-end", "index": number})
    reason = _COHERE_REASONS.get(step.finish_reason, "ERROR")
    delta: Item = {"finish_reason": reason, "usage": _cohere_usage(step)}
    if error := _error(step):
        delta = {"finish_reason": "ERROR", "error": error}
    return [*events, {"type": "message-end", "delta": delta}]


# Mistral's conversations ------------------------------------------------------------------------------------------


def _mistral_usage(step: Step) -> Item:
    usage = _usage(step)
    tokens = {"prompt_tokens": usage["inputTokens"], "completion_tokens": usage["outputTokens"]}
    return {**tokens, "total_tokens": usage["inputTokens"] + usage["outputTokens"]}


def _references(step: Step) -> list[Item]:
    return [{"type": "tool_reference", "tool": "web_search", "title": p.title, "url": p.url} for p in _pages(step)]


def mistral_stream(step: Step) -> list[Item]:
    events: list[Item] = [{"type": "conversation.response.started", "conversation_id": _id(step)}]
    said = {"type": "message.output.delta", "id": "m", "model": _model(step), "role": "assistant"}
    if _reasoning(step):
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": _reasoning(step)}]}
        events.append({**said, "content": thought})
    events += [{**said, "content": half} for half in _halves(step.text) if half]
    events += [{**said, "content": reference} for reference in _references(step)]
    for number, call in enumerate(step.calls):
        begun = {"id": f"f{number}", "name": call.name, "tool_call_id": call.provider_id or call.id}
        for half in _halves(_arguments(call.input)):
            events.append({"type": "function.call.delta", **begun, "arguments": half})
    if error := _error(step):
        return [*events, {"type": "conversation.response.error", "message": error, "code": 500}]
    return [*events, {"type": "conversation.response.done", "usage": _mistral_usage(step)}]


def mistral_whole(step: Step) -> Item:
    outputs: list[Item] = []
    content: list[Item] = []
    if _reasoning(step):
        content.append({"type": "thinking", "thinking": [{"type": "text", "text": _reasoning(step)}]})
    if step.text:
        content += [{"type": "text", "text": step.text}, *_references(step)]
    if content:
        outputs.append({"type": "message.output", "id": "m", "model": _model(step), "content": content})
    for number, call in enumerate(step.calls):
        about = {"id": f"f{number}", "tool_call_id": call.provider_id or call.id, "name": call.name}
        outputs.append({"type": "function.call", **about, "arguments": _arguments(call.input)})
    usage = _mistral_usage(step)
    return {"object": "conversation.response", "conversation_id": _id(step), "outputs": outputs, "usage": usage}


# Ollama -----------------------------------------------------------------------------------------------------------


def ollama_whole(step: Step) -> Item:
    usage = _usage(step)
    message: Item = {"role": "assistant", "content": step.text}
    message |= {"thinking": _reasoning(step)} if _reasoning(step) else {}
    calls = [{"function": {"name": call.name, "arguments": call.input}} for call in step.calls]
    message |= {"tool_calls": calls} if calls else {}
    reason = {"length": "length"}.get(step.finish_reason, "stop")
    counts = {"prompt_eval_count": usage["inputTokens"], "eval_count": usage["outputTokens"]}
    head = {"model": _model(step), "created_at": "2026-01-01T00:00:00Z"}
    return {**head, "message": message, "done": True, "done_reason": reason, **counts}


def ollama_stream(step: Step) -> list[Item]:
    whole = ollama_whole(step)
    head = {"model": whole["model"], "created_at": whole["created_at"]}
    fields: list[Item] = [{"thinking": half, "content": ""} for half in _halves(_reasoning(step)) if half]
    fields += [{"content": half} for half in _halves(step.text) if half]
    fields += [{"content": "", "tool_calls": [call]} for call in whole["message"].get("tool_calls", ())]
    lines: list[Item] = [{**head, "message": {"role": "assistant", **each}, "done": False} for each in fields]
    if error := _error(step):
        return [*lines, {"error": error}]
    return [*lines, {**whole, "message": {"role": "assistant", "content": ""}}]


REPLY_FORMATS: Mapping[str, ReplyFormat] = {
    "OpenAI chat": ReplyFormat("OpenAI's chat completions", chat_stream, chat_whole),
    "OpenAI responses": ReplyFormat("OpenAI's responses", responses_stream, responses_whole),
    "Anthropic": ReplyFormat("Anthropic's messages", anthropic_stream, anthropic_whole),
    "Google": ReplyFormat("Google's `generateContent`", google_stream, google_whole),
    "Google interactions": ReplyFormat("Google's interactions", interactions_stream, interactions_whole),
    "Bedrock": ReplyFormat("Bedrock's Converse", bedrock_stream, bedrock_whole),
    "Cohere": ReplyFormat("Cohere's chat", cohere_stream, cohere_whole),
    "Mistral": ReplyFormat("Mistral's conversations", mistral_stream, mistral_whole),
    "Ollama": ReplyFormat("Ollama's chat", ollama_stream, ollama_whole),
}
"""All formats of replies by their names."""
