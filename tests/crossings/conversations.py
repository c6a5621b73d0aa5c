"""A whole run as each SDK keeps it, in a list of messages: `MESSAGE_FORMATS`, from the SDKs' documentation.

Each writer takes a transcript, one message after the other, and shares no code with the package.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.crossings import replies
from tests.crossings.scenarios import arguments_of, id_of, turns_of
from toolcall_nb.core.transcript import FilePart, Message, SourceUrlPart, State, Step, TextPart, ToolCall, Transcript

__all__ = ["MESSAGE_FORMATS", "MessageFormat"]

Item = dict[str, Any]


class MessageFormat(NamedTuple):
    """The writer of a run as a list of messages."""

    title: str
    write: Callable[[Transcript], list[Any]]


def _files(message: Message) -> list[FilePart]:
    return [part for part in message.parts if isinstance(part, FilePart)]


def _base64(url: str) -> str:
    return url.partition(",")[2]


def _result_text(call: ToolCall) -> str:
    return call.error if call.error is not None else str(call.output)


def _done(step: Step) -> list[ToolCall]:
    return [call for call in step.calls if call.is_final]


# OpenAI -----------------------------------------------------------------------------------------------------------


def openai_messages(transcript: Transcript) -> list[Item]:
    messages: list[Item] = []
    for message, step in turns_of(transcript):
        if step is None:
            content: list[Item] = [{"type": "text", "text": message.text}]
            for file in _files(message):
                content.append({"type": "file", "file": {"filename": file.filename, "file_data": file.url}})
            messages.append({"role": "user", "content": content if len(content) > 1 else message.text})
            continue
        messages.append(replies.chat_message(step))
        for call in _done(step):
            messages.append({"role": "tool", "tool_call_id": id_of(call), "content": _result_text(call)})
    return messages


def responses_input(transcript: Transcript) -> list[Item]:
    def pieces(call: ToolCall) -> Any:
        if not call.contents:
            return _result_text(call)
        return [
            {"type": "input_text", "text": piece["text"]}
            if piece["type"] == "text"
            else {"type": "input_image", "image_url": piece["url"], "detail": "auto"}
            for piece in call.contents
        ]

    items: list[Item] = []
    for message, step in turns_of(transcript):
        if step is None:
            content: list[Item] = [{"type": "input_text", "text": message.text}]
            for file in _files(message):
                content.append({"type": "input_file", "filename": file.filename, "file_data": file.url})
            items.append({"type": "message", "role": "user", "content": content})
            continue
        items += replies.responses_items(step)
        for call in _done(step):
            items.append({"type": "function_call_output", "call_id": id_of(call), "output": pieces(call)})
    return items


# Anthropic --------------------------------------------------------------------------------------------------------


def anthropic_messages(transcript: Transcript) -> list[Item]:
    def image(url: str) -> Item:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _base64(url)}}

    def result(call: ToolCall) -> Item:
        content: Any = _result_text(call)
        if call.contents:
            content = [
                {"type": "text", "text": piece["text"]} if piece["type"] == "text" else image(piece["url"])
                for piece in call.contents
            ]
        is_error = call.error is not None
        return {"type": "tool_result", "tool_use_id": id_of(call), "content": content, "is_error": is_error}

    messages: list[Item] = []
    for message, step in turns_of(transcript):
        if step is None:
            pictures = [image(file.url) for file in _files(message)]
            messages.append({"role": "user", "content": [*pictures, {"type": "text", "text": message.text}]})
            continue
        messages.append({"role": "assistant", "content": replies.anthropic_blocks(step)})
        if results := [result(call) for call in _done(step)]:
            messages.append({"role": "user", "content": results})
    return messages


# Google -----------------------------------------------------------------------------------------------------------


def google_contents(transcript: Transcript) -> list[Item]:
    def data(url: str, name: str | None = None) -> Item:
        named = {"displayName": name} if name else {}
        return {"inlineData": {"mimeType": "image/png", "data": _base64(url), **named}}

    def result(call: ToolCall) -> Item:
        response = {"error": call.error} if call.error is not None else {"result": call.output}
        about: Item = {"id": id_of(call), "name": call.name, "response": response}
        if files := [piece["url"] for piece in call.contents or () if piece["type"] == "file"]:
            about["parts"] = [data(url) for url in files]
        return {"functionResponse": about}

    contents: list[Item] = []
    for message, step in turns_of(transcript):
        if step is None:
            files = [data(file.url, file.filename) for file in _files(message)]
            contents.append({"role": "user", "parts": [{"text": message.text}, *files]})
            continue
        contents.append({"role": "model", "parts": replies.google_parts(step)})
        if results := [result(call) for call in _done(step)]:
            contents.append({"role": "user", "parts": results})
    return contents


# Bedrock ----------------------------------------------------------------------------------------------------------


def bedrock_messages(transcript: Transcript) -> list[Item]:
    def image(url: str) -> Item:
        return {"image": {"format": "png", "source": {"bytes": base64.b64decode(_base64(url))}}}

    def result(call: ToolCall) -> Item:
        content = [
            {"text": piece["text"]} if piece["type"] == "text" else image(piece["url"]) for piece in call.contents or ()
        ]
        status = "success" if call.error is None else "error"
        about = {
            "toolUseId": id_of(call),
            "status": status,
            "content": content or [{"text": _result_text(call)}],
        }
        return {"toolResult": about}

    messages: list[Item] = []
    for message, step in turns_of(transcript):
        if step is None:
            pictures = [image(file.url) for file in _files(message)]
            messages.append({"role": "user", "content": [{"text": message.text}, *pictures]})
            continue
        messages.append({"role": "assistant", "content": replies.bedrock_content(step)})
        if results := [result(call) for call in _done(step)]:
            messages.append({"role": "user", "content": results})
    return messages


# LangChain --------------------------------------------------------------------------------------------------------


def langchain_messages(transcript: Transcript) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    def image(url: str, **more: Any) -> Item:
        return {"type": "image", "mime_type": "image/png", "base64": _base64(url), **more}

    messages: list[Any] = []
    for message, step in turns_of(transcript):
        if step is None:
            files = [image(file.url, extras={"filename": file.filename}) for file in _files(message)]
            content: Any = [{"type": "text", "text": message.text}, *files] if files else message.text
            messages.append(HumanMessage(content))
            continue
        messages.append(AIMessage(**langchain_fields(step)))
        for call in _done(step):
            told: Any = _result_text(call)
            if call.contents:
                told = [
                    {"type": "text", "text": piece["text"]} if piece["type"] == "text" else image(piece["url"])
                    for piece in call.contents
                ]
            status = "success" if call.error is None else "error"
            messages.append(ToolMessage(told, tool_call_id=id_of(call), name=call.name, status=status))
    return messages


def langchain_fields(step: Step) -> Item:
    """The fields of an ``AIMessage`` or of a chunk of one."""
    content: list[Item] = []
    if reasoning := "".join(part.text for part in step.parts if type(part).__name__ == "ReasoningPart"):
        content.append({"type": "reasoning", "reasoning": reasoning})
    pages = [part for part in step.parts if isinstance(part, SourceUrlPart)]
    cited = [{"type": "citation", "url": page.url, "title": page.title} for page in pages]
    if step.text:
        content.append({"type": "text", "text": step.text, **({"annotations": cited} if cited else {})})
    usage = {"inputTokens": 3, "outputTokens": 2, **(step.usage or {})}
    details = {"cache_read": usage.get("cachedInputTokens", 0), "cache_creation": usage.get("cacheWriteTokens", 0)}
    reason = {"tool-calls": "tool_calls", "content-filter": "content_filter"}.get(step.finish_reason)
    return {
        "content": content if reasoning or cited else step.text,
        "tool_calls": [
            {"name": call.name, "args": call.input, "id": id_of(call), "type": "tool_call"} for call in step.calls
        ],
        "id": step.response_id,
        "response_metadata": {
            "model_name": step.model or "m-other",
            "finish_reason": reason or step.finish_reason,
            **({"id": step.response_id} if step.response_id else {}),
        },
        "usage_metadata": {
            "input_tokens": usage["inputTokens"],
            "output_tokens": usage["outputTokens"],
            "total_tokens": usage["inputTokens"] + usage["outputTokens"],
            "input_token_details": details,
            "output_token_details": {"reasoning": usage.get("reasoningTokens", 0)},
        },
    }


# pydantic-ai ------------------------------------------------------------------------------------------------------


def pydantic_ai_messages(transcript: Transcript) -> list[Any]:
    from pydantic_ai import BinaryContent
    from pydantic_ai import messages as pm

    messages: list[Any] = []
    waiting: list[Any] = []
    for message, step in turns_of(transcript):
        if step is None:
            files = [
                BinaryContent(base64.b64decode(_base64(file.url)), media_type="image/png", identifier=file.filename)
                for file in _files(message)
            ]
            prompt = pm.UserPromptPart([message.text, *files] if files else message.text)
            messages.append(pm.ModelRequest([*waiting, prompt]))
            waiting = []
            continue
        if waiting:
            messages.append(pm.ModelRequest(waiting))
        messages.append(pydantic_ai_response(step))
        waiting = []
        for call in _done(step):
            told: Any = call.output
            if call.contents:
                told = [
                    piece["text"]
                    if piece["type"] == "text"
                    else BinaryContent(base64.b64decode(_base64(piece["url"])), media_type="image/png")
                    for piece in call.contents
                ]
            if call.state is State.OUTPUT_DENIED:
                reason = call.approval.reason if call.approval else None
                waiting.append(pm.ToolReturnPart(call.name, reason, id_of(call), outcome="denied"))
            elif call.error is not None:
                told = told if call.contents else call.error
                waiting.append(pm.ToolReturnPart(call.name, told, id_of(call), outcome="failed"))
            else:
                waiting.append(pm.ToolReturnPart(call.name, told, id_of(call)))
    return [*messages, *([pm.ModelRequest(waiting)] if waiting else [])]


def pydantic_ai_response(step: Step) -> Any:
    """The response of a step."""
    from pydantic_ai import messages as pm
    from pydantic_ai.usage import RequestUsage

    reasoning = "".join(part.text for part in step.parts if type(part).__name__ == "ReasoningPart")
    usage = {"inputTokens": 3, "outputTokens": 2, **(step.usage or {})}
    reason: Any = {"tool-calls": "tool_call", "content-filter": "content_filter"}.get(
        step.finish_reason, step.finish_reason
    )
    return pm.ModelResponse(
        [
            *([pm.ThinkingPart(reasoning)] if reasoning else []),
            *([pm.TextPart(step.text)] if step.text else []),
            *(pm.ToolCallPart(call.name, arguments_of(call), id_of(call)) for call in step.calls),
        ],
        model_name=step.model or "m-other",
        provider_response_id=step.response_id,
        finish_reason=reason,
        usage=RequestUsage(
            input_tokens=usage["inputTokens"],
            cache_read_tokens=usage.get("cachedInputTokens", 0),
            cache_write_tokens=usage.get("cacheWriteTokens", 0),
            output_tokens=usage["outputTokens"],
            details={"reasoning_tokens": usage.get("reasoningTokens", 0)},
        ),
    )


# The AI SDK -------------------------------------------------------------------------------------------------------


def ui_messages(transcript: Transcript) -> list[Item]:
    messages: list[Item] = []
    for number, message in enumerate(transcript):
        parts: list[Item] = []
        for step in message.steps if message.role == "assistant" else ():
            parts += [{"type": "step-start"}, *(_ui_part(part) for part in step.parts)]
        if message.role == "user":
            parts = [_ui_part(part) for part in message.parts]
        metadata: Item = {}
        steps = message.steps if message.role == "assistant" else ()
        if len(steps) == 1 and steps[0].usage:
            metadata = {"model": steps[0].model, "usage": steps[0].usage}
        messages.append({"id": f"m{number}", "role": message.role, "parts": parts, "metadata": metadata})
    return messages


def _ui_part(part: Any) -> Item:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text, "state": "done"}
        case FilePart():
            return {"type": "file", "url": part.url, "mediaType": part.media_type, "filename": part.filename}
        case SourceUrlPart():
            return {"type": "source-url", "sourceId": part.source_id, "url": part.url, "title": part.title}
        case ToolCall():
            return _ui_call(part)
    return {"type": "reasoning", "text": part.text, "state": "done"}


def _ui_call(call: ToolCall) -> Item:
    fields: Item = {"type": f"tool-{call.name}", "toolCallId": id_of(call), "state": call.state.value}
    fields["input"] = call.input
    if call.approval is not None:
        answer = {"approved": call.approval.approved, "reason": call.approval.reason}
        known = {name: value for name, value in answer.items() if value is not None}
        fields["approval"] = {"id": call.approval.id, **known}
    if call.error is not None:
        return {**fields, "errorText": call.error}
    if call.contents:
        pieces = [
            {"type": "text", "text": piece["text"]}
            if piece["type"] == "text"
            else {"type": "media", "data": _base64(piece["url"]), "mediaType": "image/png"}
            for piece in call.contents
        ]
        return {**fields, "output": {"type": "content", "value": pieces}}
    return {**fields, "output": call.output} if call.state is State.OUTPUT_AVAILABLE else fields


MESSAGE_FORMATS: Mapping[str, MessageFormat] = {
    "OpenAI messages": MessageFormat("a list of OpenAI's chat messages", openai_messages),
    "OpenAI items": MessageFormat("a list of items of OpenAI's Responses API", responses_input),
    "Anthropic messages": MessageFormat("a list of Anthropic's messages", anthropic_messages),
    "Google contents": MessageFormat("a list of Google's contents", google_contents),
    "Bedrock messages": MessageFormat("a list of Bedrock's messages", bedrock_messages),
    "LangChain messages": MessageFormat("a list of LangChain's messages", langchain_messages),
    "pydantic-ai messages": MessageFormat("a list of pydantic-ai's messages", pydantic_ai_messages),
    "UI messages": MessageFormat("a list of the AI SDK's UI messages", ui_messages),
}
"""All formats of message lists by their names."""


def as_json(messages: list[Any]) -> list[Any]:
    """The messages after a request: as JSON."""
    return json.loads(json.dumps(messages))  # type: ignore[no-any-return]
