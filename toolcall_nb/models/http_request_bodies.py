"""Builds the body of a request in a server's wire: `request_body`.

- ``chat``: the contract of seed 003;
- ``ui``: as the AI SDK's chat sends it (vercel/ai, packages/ai/src/ui/http-chat-transport.ts);
- ``ag-ui``: AG-UI's run input (ag-ui-protocol 1.0, RunAgentInput);
- None: the first two in one, since servers of either ignore the other's fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from toolcall_nb.adapters.ai_sdk.messages import to_ui
from toolcall_nb.adapters.openai.messages import to_openai
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.transcript import FilePart, Message, State, ToolCall
from toolcall_nb.errors import ModelError

if TYPE_CHECKING:
    from toolcall_nb.tools import Tool

REQUEST_WIRES = ("chat", "ui", "ag-ui")
"""The wires that a request can be in."""

_REQUEST_SETTINGS = ("extra_body", "extra_headers", "timeout")
"""Settings of the request itself, which are not sent to the model."""

_NO_PROMPT = "The chat contract cannot send the result of a tool, or an approval. Ask with wire='ui'."


def request_body(
    wire: str | None,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    conversation: str,
    run: str,
    settings: Mapping[str, Any],
) -> Object:
    """Returns the body of one request, in ``wire``.

    ``settings`` become fields of their own names (in AG-UI within ``forwardedProps``), and so do the fields of
    ``extra_body``. Raises `ModelError` if the wire cannot express the request.
    """
    extra = settings.get("extra_body")
    own = {name: value for name, value in settings.items() if name not in _REQUEST_SETTINGS and value is not None}
    more = {**own, **(extra if isinstance(extra, Mapping) else {})}
    if wire == "ag-ui":
        return {**_ag_ui(messages, tools, conversation, run), "forwardedProps": more}
    if wire == "chat" and (not messages or messages[-1].role != "user"):
        raise ModelError(_NO_PROMPT)
    asked = {} if wire == "ui" else _chat(messages, conversation)
    return {**more, **asked, **({} if wire == "chat" else _ui(messages, conversation))}


def answered_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Returns the calls of the last message that the server asked about, and that have an answer now."""
    calls = messages[-1].calls if messages and messages[-1].role == "assistant" else ()
    return [call for call in calls if call.state is State.APPROVAL_RESPONDED and call.approval is not None]


def _chat(messages: Sequence[Message], conversation: str) -> Object:
    asked = messages[-1] if messages and messages[-1].role == "user" else None
    if asked is None:
        return {"conversationId": conversation}
    images = [part.url for part in asked.parts if isinstance(part, FilePart)]
    found: Object = {"message": asked.text, "conversationId": conversation}
    return {**found, "images": images} if images else found


def _ui(messages: Sequence[Message], conversation: str) -> Object:
    written = to_ui(messages)
    edited = {call.id: call.input for call in answered_calls(messages) if call.original_input is not MISSING}
    for part in written[-1]["parts"] if edited else ():
        if part.get("toolCallId") in edited:
            part["approval"] = {**part["approval"], "input": edited[part["toolCallId"]]}
    return {"id": conversation, "messages": written, "trigger": "submit-message"}


# AG-UI ------------------------------------------------------------------------------------------------------------


def _ag_ui(messages: Sequence[Message], tools: Sequence[Tool], conversation: str, run: str) -> Object:
    answers = [*map(_answer, answered_calls(messages))]
    offered = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools]
    sent = [*map(_without_open_calls, messages)] if answers else messages
    return {
        "threadId": conversation,
        "runId": run,
        "state": {},
        "messages": [*_ag_ui_messages(sent)],
        "tools": offered,
        "context": [],
        **({"resume": answers} if answers else {}),
    }


def _answer(call: ToolCall) -> Object:
    assert call.approval is not None
    given = {"approved": bool(call.approval.approved), "reason": call.approval.reason}
    payload: Object = {name: value for name, value in given.items() if value is not None}
    if call.original_input is not MISSING and isinstance(call.input, dict):
        payload["input"] = call.input
    return {"interruptId": call.approval.id, "status": "resolved", "payload": payload}


def _without_open_calls(message: Message) -> Message:
    """Returns the message without calls that have no result yet."""
    parts = (part for part in message.parts if not (isinstance(part, ToolCall) and not part.is_final))
    return replace(message, parts=tuple(parts))


def _ag_ui_messages(messages: Sequence[Message]) -> Iterator[Object]:
    for number, message in enumerate(to_openai(messages), 1):
        content = message["content"]
        written: Object = {"id": f"message-{number}", "role": message["role"]}
        if content is not None:
            written["content"] = content if isinstance(content, str) else [*map(_content, content)]
        if "tool_calls" in message:
            written["toolCalls"] = message["tool_calls"]
        if "tool_call_id" in message:
            written["toolCallId"] = message["tool_call_id"]
        yield written


def _content(part: Object) -> Object:
    """Returns a part of OpenAI's content as AG-UI's. A file that is no image becomes a note."""
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return {"type": "image", "source": _source(url)}
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
    return {"type": "text", "text": f"(A file of the kind {part.get('type')!r:.40} is left out.)"}


def _source(url: str) -> Object:
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        return {"type": "url", "value": url}
    return {"type": "data", "value": data, "mimeType": head.removeprefix("data:").removesuffix(";base64")}
