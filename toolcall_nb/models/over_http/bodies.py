"""What a server is asked, as its wire has it.

- ``chat``: the contract of seed 003;
- ``ui``: as the AI SDK's chat sends it (vercel/ai, packages/ai/src/ui/http-chat-transport.ts);
- ``ag-ui``: AG-UI's run input (ag-ui-protocol 1.0, RunAgentInput);
- None: the first two in one, since neither is disturbed by the other's fields.
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

__all__ = ["OWN_SETTINGS", "WIRES", "answered_calls", "body_of"]

WIRES = ("chat", "ui", "ag-ui")
"""The wires that a server can be asked in."""

OWN_SETTINGS = ("extra_body", "extra_headers", "timeout")
"""Settings that are about the request and not for the model."""

_NOT_SAID = "The chat contract cannot say what a tool gave, or what a person allowed. Ask with wire='ui'."


def body_of(
    wire: str | None,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    conversation: str,
    run: str,
    settings: Mapping[str, Any],
) -> Object:
    """The body of one request, in ``wire``.

    ``settings`` go along by their names (AG-UI: in ``forwardedProps``), ``extra_body`` with its own. Raises
    `ModelError` where the wire cannot say what is to be asked.
    """
    extra = settings.get("extra_body")
    own = {name: value for name, value in settings.items() if name not in OWN_SETTINGS and value is not None}
    more = {**own, **(extra if isinstance(extra, Mapping) else {})}
    if wire == "ag-ui":
        return {**_ag_ui(messages, tools, conversation, run), "forwardedProps": more}
    if wire == "chat" and (not messages or messages[-1].role != "user"):
        raise ModelError(_NOT_SAID)
    asked = {} if wire == "ui" else _chat(messages, conversation)
    return {**more, **asked, **({} if wire == "chat" else _ui(messages, conversation))}


def answered_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls that the other side has asked a person about, and that wait there for the answer."""
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
    told = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools]
    said = [*map(_settled, messages)] if answers else messages
    return {
        "threadId": conversation,
        "runId": run,
        "state": {},
        "messages": [*_ag_ui_messages(said)],
        "tools": told,
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


def _settled(message: Message) -> Message:
    """Without the calls that wait for an answer: they have no result that could be told."""
    parts = (part for part in message.parts if not (isinstance(part, ToolCall) and not part.is_final))
    return replace(message, parts=tuple(parts))


def _ag_ui_messages(messages: Sequence[Message]) -> Iterator[Object]:
    for number, said in enumerate(to_openai(messages), 1):
        content = said["content"]
        written: Object = {"id": f"message-{number}", "role": said["role"]}
        if content is not None:
            written["content"] = content if isinstance(content, str) else [*map(_content, content)]
        if "tool_calls" in said:
            written["toolCalls"] = said["tool_calls"]
        if "tool_call_id" in said:
            written["toolCallId"] = said["tool_call_id"]
        yield written


def _content(part: Object) -> Object:
    """OpenAI's part of a content as AG-UI's. What is no image is told by its text."""
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
