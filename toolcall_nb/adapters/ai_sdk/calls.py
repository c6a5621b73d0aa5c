"""Converts tool calls to parts of the AI SDK's UI messages (`to_tool_part`) and back (`from_tool_part`).

Source: vercel/ai, packages/ai/src/ui/ui-messages.ts, ``ToolUIPart`` and ``DynamicToolUIPart``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.call_states import FINAL_STATES
from toolcall_nb.core.events import MISSING, Object, split_extra, with_extra
from toolcall_nb.core.sdk_objects import get
from toolcall_nb.core.transcript import Approval, State, ToolCall

_INTERRUPTED = "The call was interrupted."
OWN_FIELD = "toolcall"
"""The key under which a part, or a message's metadata, carries what the AI SDK has no field for."""
_KNOWN = frozenset(
    {
        *("type", "toolName", "toolCallId", "state", "input", "rawInput", "output", "errorText", "preliminary"),
        *("approval", "title", "providerExecuted", "callProviderMetadata", "toolMetadata", "interrupted", OWN_FIELD),
    }
)
_FIELDS: Mapping[str, tuple[str, type]] = {
    "title": ("title", str),
    "providerExecuted": ("provider_executed", bool),
    "callProviderMetadata": ("provider_metadata", dict),
    "toolMetadata": ("tool_metadata", dict),
}
_APPROVAL: Mapping[str, tuple[str, type]] = {
    "id": ("id", str),
    "approved": ("approved", bool),
    "reason": ("reason", str),
    "isAutomatic": ("is_automatic", bool),
    "signature": ("signature", str),
}
_OWN_FIELDS: Mapping[str, tuple[str, type]] = {
    "open": ("open", bool),
    "log": ("log", str),
    "display": ("display", dict),
    "modelText": ("model_text", str),
    "traceback": ("traceback", str),
}
"""Fields that this package adds to a call: the name in a message, the attribute, and the type."""
_DYNAMIC = "dynamic"  # False: the tool is known; for True, the type of the part says so


def is_tool_part(part: Mapping[str, Any]) -> bool:
    """Whether a part is a tool call: ``tool-NAME``, or ``dynamic-tool`` with a ``toolName``."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind == "dynamic-tool" or kind.startswith("tool-")) and "toolCallId" in part


def to_tool_part(call: ToolCall) -> Object:
    """Returns the call as a part."""
    kind: Object = {"type": f"tool-{call.name}"}
    if call.dynamic:
        kind = {"type": "dynamic-tool", "toolName": call.name}
    found: Object = {**kind, "toolCallId": call.id, **_state(call)}
    for name, (attribute, _) in _FIELDS.items():
        if getattr(call, attribute) is not None:
            found[name] = getattr(call, attribute)
    if call.approval is not None:
        given = {name: getattr(call.approval, attribute) for name, (attribute, _) in _APPROVAL.items()}
        found["approval"] = {name: value for name, value in given.items() if value is not None}
    own = _own_fields(call)
    return with_extra({**found, OWN_FIELD: own} if own else found, call.extra, _KNOWN)


def _state(call: ToolCall) -> Object:
    found: Object = {"state": call.state.value}
    if call.input is not MISSING:
        found["input"] = call.input
    elif call.input_text:
        found["rawInput"] = call.input_text
    if call.output is not MISSING:
        found["output"] = call.output
    if call.error is not None:
        found["errorText"] = call.error
    if call.state is State.INTERRUPTED:
        found |= {"state": State.OUTPUT_ERROR.value, "errorText": _INTERRUPTED, "interrupted": True}
    elif call.output is not MISSING and call.state not in FINAL_STATES:
        found |= {"state": State.OUTPUT_AVAILABLE.value, "preliminary": True}
    return found


def _own_fields(call: ToolCall) -> Object:
    given: Object = {name: getattr(call, attribute) for name, (attribute, _) in _OWN_FIELDS.items()}
    found = {name: value for name, value in given.items() if value is not None and (name, value) != ("log", "")}
    if call.dynamic is False:
        found[_DYNAMIC] = False
    if call.original_input is not MISSING:
        found["originalInput"] = call.original_input
    if call.output is not MISSING and call.state not in FINAL_STATES | {State.INPUT_AVAILABLE}:
        found["state"] = call.state.value
    return found


def from_tool_part(part: Mapping[str, Any]) -> ToolCall:
    """Returns the call of a part. An unknown state becomes ``input-available``."""
    kind = get(part, "type", str) or ""
    is_dynamic = kind == "dynamic-tool"
    name = (get(part, "toolName", str) if is_dynamic else kind.removeprefix("tool-")) or "tool"
    own_fields = get(part, OWN_FIELD, dict) or {}
    state = _state_of(part, own_fields)
    about: Object = {attribute: get(part, name, kind_of) for name, (attribute, kind_of) in _FIELDS.items()}
    own = {attribute: get(own_fields, name, kind_of) for name, (attribute, kind_of) in _OWN_FIELDS.items()}
    about |= {attribute: value for attribute, value in own.items() if value is not None}
    is_interrupted = state is State.INTERRUPTED
    return ToolCall(
        id=get(part, "toolCallId", str) or "tool-call",
        name=name,
        state=state,
        input=_input(part, state),
        output=part.get("output", None if state is State.OUTPUT_AVAILABLE else MISSING),
        error=None if is_interrupted else get(part, "errorText", str),
        input_text=(get(part, "rawInput", str) or "") if "input" not in part else "",
        original_input=own_fields.get("originalInput", MISSING),
        approval=_approval(part.get("approval")),
        dynamic=True if is_dynamic else get(own_fields, _DYNAMIC, bool),
        extra=split_extra(part, _KNOWN)[1],
        **about,
    )


def _state_of(part: Mapping[str, Any], own_fields: Mapping[str, Any]) -> State:
    if part.get("interrupted") is True:
        return State.INTERRUPTED
    given = part.get("state")
    if part.get("preliminary") is True and given == State.OUTPUT_AVAILABLE:
        given = own_fields.get("state", State.INPUT_AVAILABLE)
    return next((state for state in State if state == given), State.INPUT_AVAILABLE)


def _input(part: Mapping[str, Any], state: State) -> Any:
    if state is State.INPUT_STREAMING:
        return MISSING
    return part.get("input", None if state is State.INPUT_AVAILABLE else MISSING)


def _approval(given: Any) -> Approval | None:
    if get(given, "id", str) is None:
        return None
    return Approval(**{attribute: get(given, name, kind_of) for name, (attribute, kind_of) in _APPROVAL.items()})
