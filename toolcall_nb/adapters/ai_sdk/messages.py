"""Converts messages to the AI SDK's UI messages (`to_ui`) and back (`from_ui`), which its front ends keep and send.

Source: vercel/ai, packages/ai/src/ui/ui-messages.ts, version 7.0.77, also ``ToolUIPart`` and ``DynamicToolUIPart``.
Content that its parts have no field for is kept where its readers skip it: an interrupted call is an ``output-error``
with ``interrupted``; the displayed result, printed output and the like are under ``toolcall``, and so is, in a
message's metadata, the reason why it ended early; an error is a ``data-error`` part. Ids of text blocks are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from toolcall_nb.adapters.base import Format, one_or_list
from toolcall_nb.core.call_states import FINAL_STATES
from toolcall_nb.core.contents import is_contents, output_contents
from toolcall_nb.core.events import MISSING, Event, Object, split_extra, with_extra
from toolcall_nb.core.replay import message_events
from toolcall_nb.core.sdk_objects import as_mapping, get
from toolcall_nb.core.transcript import (
    Approval,
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    Role,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    TextPart,
    ToolCall,
)

_ROLES: tuple[Role, ...] = ("system", "user", "assistant")
_KINDS = frozenset(
    {"text", "reasoning", "file", "reasoning-file", "source-url", "source-document", "step-start", "custom"}
)
_LOOK_AT = 4


def to_ui(messages: Iterable[Message]) -> list[Object]:
    """Returns the messages in the form of the AI SDK's front ends; one without an id is ``message-N``, from 1.

    A step of the assistant begins with its message, and after calls that were not the provider's own.
    """
    written: list[Object] = []
    for number, message in enumerate(messages, 1):
        end = _without_none({"finishReason": message.finish_reason, "aborted": message.aborted})
        metadata = {**message.metadata, **({OWN_FIELD: end} if end else {})}
        parts = [*(_with_steps(message.parts) if message.role == "assistant" else map(_part, message.parts))]
        written.append({"id": message.id or f"message-{number}", "role": message.role, "parts": parts})
        if metadata:
            written[-1]["metadata"] = metadata
    return written


def _with_steps(parts: Iterable[Part]) -> Iterator[Object]:
    is_first, after_call = True, False
    for part in parts:
        is_own_call = isinstance(part, ToolCall) and not part.provider_executed
        if is_first or (after_call and not is_own_call):
            yield {"type": "step-start"}
        yield _part(part)
        is_first, after_call = False, is_own_call


def _part(part: Part) -> Object:
    match part:
        case TextPart():
            return _with({"type": "text", "text": part.text, "state": "done"}, part)
        case ReasoningPart():
            return _with({"type": "reasoning", "text": part.text, "state": "done"}, part)
        case ToolCall():
            return to_tool_part(part)
        case SourceUrlPart():
            page: Object = {"type": "source-url", "sourceId": part.source_id, "url": part.url}
            return _with({**page, "title": part.title}, part)
        case SourceDocumentPart():
            document = {"type": "source-document", "sourceId": part.source_id, "mediaType": part.media_type}
            return _with({**document, "title": part.title, "filename": part.filename}, part)
        case FilePart():
            kind = "reasoning-file" if part.reasoning else "file"
            return _with({"type": kind, "url": part.url, "mediaType": part.media_type}, part)
        case DataPart():
            return {"type": f"data-{part.name}", **_without_none({"id": part.id}), "data": part.data}
        case CustomPart():
            return _with({"type": "custom", "kind": part.kind}, part)
        case ErrorPart():
            return {"type": "data-error", "data": _without_none({"text": part.text, "details": part.details})}


def _with(fields: Object, part: Any) -> Object:
    return _without_none({**fields, "providerMetadata": part.provider_metadata})


def _without_none(fields: Mapping[str, Any]) -> Object:
    return {name: value for name, value in fields.items() if value is not None}


# From UI messages


def from_ui(message: Mapping[str, Any]) -> Message:
    """Returns the message of a UI message as a front end sent it; of any other mapping, what can be read of it."""
    metadata = {**as_mapping(message.get("metadata"))}
    ours = metadata.pop(OWN_FIELD) if isinstance(metadata.get(OWN_FIELD), dict) else {}
    parts = (_from_part(as_mapping(part)) for part in get(message, "parts", list) or ())
    return Message(
        role=next((role for role in _ROLES if role == message.get("role")), "assistant"),
        parts=tuple(part for part in parts if part is not None),
        id=get(message, "id", str),
        metadata=metadata,
        finish_reason=get(ours, "finishReason", str),
        aborted=get(ours, "aborted", str),
    )


def _from_part(part: Mapping[str, Any]) -> Part | None:
    kind = get(part, "type", str) or ""
    metadata = get(part, "providerMetadata", dict)
    match kind:
        case "text":
            return TextPart(get(part, "text", str) or "", metadata)
        case "reasoning":
            return ReasoningPart(get(part, "text", str) or "", metadata)
        case "source-url":
            return SourceUrlPart(_text(part, "sourceId"), _text(part, "url"), get(part, "title", str), metadata)
        case "source-document":
            title, name = _text(part, "title"), get(part, "filename", str)
            return SourceDocumentPart(_text(part, "sourceId"), _text(part, "mediaType"), title, name, metadata)
        case "file" | "reasoning-file":
            return FilePart(_text(part, "url"), _text(part, "mediaType"), metadata, kind == "reasoning-file")
        case "custom":
            return CustomPart(_text(part, "kind"), metadata)
        case "step-start":
            return None
        case "data-error" if (text := get(part.get("data"), "text", str)) is not None:
            return ErrorPart(text, get(part.get("data"), "details", str))
    if is_tool_part(part):
        return from_tool_part(part)
    if kind.startswith("data-"):
        return DataPart(kind.removeprefix("data-"), part.get("data"), get(part, "id", str))
    return CustomPart(f"ui.{kind or 'part'}", {"ui": dict(part)})


def _text(part: Mapping[str, Any], name: str) -> str:
    return get(part, name, str) or ""


# Recognising and reading


def _is_part(part: Any) -> bool:
    kind = part.get("type") if type(part) is dict else None
    return isinstance(kind, str) and (kind in _KINDS or kind.startswith("data-") or is_tool_part(part))


def _is_message(thing: Any) -> bool:
    if type(thing) is not dict or thing.get("role") not in _ROLES or type(thing.get("parts")) is not list:
        return False
    parts = thing["parts"]
    return all(_is_part(part) for part in parts[:_LOOK_AT]) and (bool(parts) or isinstance(thing.get("id"), str))


def _read_messages(thing: Any) -> Iterator[Event]:
    for message in thing if type(thing) is list else [thing]:
        yield from message_events(from_ui(as_mapping(message)))


class UIMessagesAdapter:
    """Reads messages one by one. A message that comes again under the same id replaces the earlier one."""

    def __init__(self) -> None:
        self._messages: dict[Any, Any] = {}

    def take(self, item: Any) -> list[Event]:
        """Keeps the message, since ``readUIMessageStream`` yields it again with more content."""
        self._messages[get(item, "id", str) or len(self._messages)] = item
        return []

    def close(self) -> list[Event]:
        """Returns the events of the messages as they came last."""
        return [*_read_messages([*self._messages.values()])]


UI_MESSAGES = Format(
    name="ui-messages",
    title="the AI SDK's UI messages",
    is_item=_is_message,
    adapter=UIMessagesAdapter,
    is_whole=one_or_list(_is_message),
    whole=_read_messages,
)


# Tool calls

_INTERRUPTED = "The call was interrupted."
OWN_FIELD = "toolcall"
"""The key under which a part, or a message's metadata, carries what the AI SDK has no field for."""
_STANDARD = frozenset(
    {
        *("type", "toolName", "toolCallId", "state", "input", "rawInput", "output", "errorText", "preliminary"),
        *("approval", "title", "providerExecuted", "callProviderMetadata", "toolMetadata", "interrupted", OWN_FIELD),
    }
)
_FieldNames: TypeAlias = Mapping[str, tuple[str, type]]
"""Fields of a message: by their names there, the attributes of `ToolCall` or `Approval`, and the types."""

_FIELDS: _FieldNames = {
    "title": ("title", str),
    "providerExecuted": ("provider_executed", bool),
    "callProviderMetadata": ("provider_metadata", dict),
    "toolMetadata": ("tool_metadata", dict),
}
_APPROVAL: _FieldNames = {
    "id": ("id", str),
    "approved": ("approved", bool),
    "reason": ("reason", str),
    "isAutomatic": ("is_automatic", bool),
    "signature": ("signature", str),
}
_OUR_FIELDS: _FieldNames = {
    "open": ("open", bool),
    "log": ("log", str),
    "display": ("display", dict),
    "contents": ("contents", list),
    "modelText": ("model_text", str),
    "traceback": ("traceback", str),
}
"""Fields that this package adds to a call."""
_DYNAMIC = "dynamic"  # False: the tool was declared; for True, the type of the part says so


def is_tool_part(part: Mapping[str, Any]) -> bool:
    """Whether a part is a tool call: ``tool-NAME``, or ``dynamic-tool`` with a ``toolName``."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind == "dynamic-tool" or kind.startswith("tool-")) and "toolCallId" in part


def to_tool_part(call: ToolCall) -> Object:
    """Returns the call as a part."""
    kind: Object = {"type": f"tool-{call.name}"}
    if call.dynamic:
        kind = {"type": "dynamic-tool", "toolName": call.name}
    part: Object = {**kind, "toolCallId": call.id, **_state(call), **_attributes(call, _FIELDS)}
    if call.approval is not None:
        part["approval"] = _attributes(call.approval, _APPROVAL)
    ours = _attributes(call, _OUR_FIELDS)
    if not call.log:
        ours.pop("log", None)
    if call.dynamic is False:
        ours[_DYNAMIC] = False
    if call.original_input is not MISSING:
        ours["originalInput"] = call.original_input
    if call.contents == output_contents(call.output):
        ours.pop("contents", None)
    if call.output is not MISSING and call.state not in FINAL_STATES | {State.INPUT_AVAILABLE}:
        ours["state"] = call.state.value
    return with_extra({**part, OWN_FIELD: ours} if ours else part, call.extra, _STANDARD)


def _attributes(thing: Any, fields: _FieldNames) -> Object:
    return _without_none({name: getattr(thing, attribute) for name, (attribute, _) in fields.items()})


def _state(call: ToolCall) -> Object:
    fields: Object = {"state": call.state.value}
    if call.input is not MISSING:
        fields["input"] = call.input
    elif call.input_text:
        fields["rawInput"] = call.input_text
    if call.output is not MISSING:
        fields["output"] = call.output
    if call.error is not None:
        fields["errorText"] = call.error
    if call.state is State.INTERRUPTED:
        fields |= {"state": State.OUTPUT_ERROR.value, "errorText": _INTERRUPTED, "interrupted": True}
    elif call.output is not MISSING and call.state not in FINAL_STATES:
        fields |= {"state": State.OUTPUT_AVAILABLE.value, "preliminary": True}
    return fields


def from_tool_part(part: Mapping[str, Any]) -> ToolCall:
    """Returns the call of a part. An unknown state becomes ``input-available``."""
    kind = get(part, "type", str) or ""
    is_dynamic = kind == "dynamic-tool"
    name = (get(part, "toolName", str) if is_dynamic else kind.removeprefix("tool-")) or "tool"
    ours = get(part, OWN_FIELD, dict) or {}
    state = _state_of(part, ours)
    missing_input = None if state is State.INPUT_AVAILABLE else MISSING
    approval = _values(as_mapping(part.get("approval")), _APPROVAL)
    own = _values(ours, _OUR_FIELDS)
    if not is_contents(own.get("contents")):
        own["contents"] = None if "errorText" in part else output_contents(part.get("output"))
    return ToolCall(
        id=get(part, "toolCallId", str) or "tool-call",
        name=name,
        state=state,
        input=MISSING if state is State.INPUT_STREAMING else part.get("input", missing_input),
        output=part.get("output", None if state is State.OUTPUT_AVAILABLE else MISSING),
        error=None if state is State.INTERRUPTED else get(part, "errorText", str),
        input_text=(get(part, "rawInput", str) or "") if "input" not in part else "",
        original_input=ours.get("originalInput", MISSING),
        approval=Approval(**approval) if "id" in approval else None,
        dynamic=True if is_dynamic else get(ours, _DYNAMIC, bool),
        extra=split_extra(part, _STANDARD)[1],
        **_values(part, _FIELDS),
        **own,
    )


def _values(fields: Mapping[str, Any], names: _FieldNames) -> Object:
    values = {attribute: get(fields, name, kind) for name, (attribute, kind) in names.items()}
    return _without_none(values)


def _state_of(part: Mapping[str, Any], ours: Mapping[str, Any]) -> State:
    if part.get("interrupted") is True:
        return State.INTERRUPTED
    state_name = part.get("state")
    if part.get("preliminary") is True and state_name == State.OUTPUT_AVAILABLE:
        state_name = ours.get("state", State.INPUT_AVAILABLE)
    return next((state for state in State if state == state_name), State.INPUT_AVAILABLE)
