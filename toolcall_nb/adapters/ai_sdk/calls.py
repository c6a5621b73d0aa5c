"""A tool call as a part of the AI SDK's UI messages, both ways.

Source: vercel/ai, packages/ai/src/ui/ui-messages.ts, ``ToolUIPart`` and ``DynamicToolUIPart``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.plain import get
from toolcall_nb.core.call_states import FINAL_STATES
from toolcall_nb.core.events import MISSING, Object, split_extra, with_extra
from toolcall_nb.core.transcript import Approval, State, ToolCall

__all__ = ["OURS", "call_of", "call_part", "is_call"]

_INTERRUPTED = "The call was interrupted."
OURS = "toolcall"
"""The name under which a part, or the metadata of a message, holds what the AI SDK has no field for."""
_KNOWN = frozenset(
    {
        *("type", "toolName", "toolCallId", "state", "input", "rawInput", "output", "errorText", "preliminary"),
        *("approval", "title", "providerExecuted", "callProviderMetadata", "toolMetadata", "interrupted", OURS),
    }
)
_FIELDS = {
    "title": "title",
    "providerExecuted": "provider_executed",
    "callProviderMetadata": "provider_metadata",
    "toolMetadata": "tool_metadata",
}
_FIELD_KINDS: Mapping[str, type] = {
    "title": str,
    "providerExecuted": bool,
    "callProviderMetadata": dict,
    "toolMetadata": dict,
}
_OWN_KINDS: Mapping[str, type] = {"open": bool, "log": str, "display": dict, "seen": str, "traceback": str}
_DYNAMIC = "dynamic"  # False says that the tool is known; True is told by the type of the part


def is_call(part: Mapping[str, Any]) -> bool:
    """Whether a part is a tool call: ``tool-NAME``, or ``dynamic-tool`` with its name beside."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind == "dynamic-tool" or kind.startswith("tool-")) and "toolCallId" in part


def call_part(call: ToolCall) -> Object:
    """The call as a part."""
    kind: Object = {"type": f"tool-{call.name}"}
    if call.dynamic:
        kind = {"type": "dynamic-tool", "toolName": call.name}
    found: Object = {**kind, "toolCallId": call.id, **_state(call)}
    for name, own in _FIELDS.items():
        if getattr(call, own) is not None:
            found[name] = getattr(call, own)
    if call.approval is not None:
        found["approval"] = _approval_part(call.approval)
    ours = _ours(call)
    return with_extra({**found, OURS: ours} if ours else found, call.extra, _KNOWN)


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


def _approval_part(approval: Approval) -> Object:
    given = {
        "id": approval.id,
        "approved": approval.approved,
        "reason": approval.reason,
        "isAutomatic": approval.is_automatic,
        "signature": approval.signature,
    }
    return {name: value for name, value in given.items() if value is not None}


def _ours(call: ToolCall) -> Object:
    given: Object = {name: getattr(call, name) for name in _OWN_KINDS}
    found = {name: value for name, value in given.items() if value is not None and (name, value) != ("log", "")}
    if call.dynamic is False:
        found[_DYNAMIC] = False
    if call.original_input is not MISSING:
        found["originalInput"] = call.original_input
    if call.output is not MISSING and call.state not in FINAL_STATES | {State.INPUT_AVAILABLE}:
        found["state"] = call.state.value
    return found


def call_of(part: Mapping[str, Any]) -> ToolCall:
    """The call of a part. A state that is not known is ``input-available``."""
    kind = get(part, "type", str) or ""
    is_dynamic = kind == "dynamic-tool"
    name = (get(part, "toolName", str) if is_dynamic else kind.removeprefix("tool-")) or "tool"
    ours = get(part, OURS, dict) or {}
    state = _state_of(part, ours)
    about: Object = {own: get(part, given, _FIELD_KINDS[given]) for given, own in _FIELDS.items()}
    about |= {own: value for own, kind_of in _OWN_KINDS.items() if (value := get(ours, own, kind_of)) is not None}
    is_interrupted = state is State.INTERRUPTED
    return ToolCall(
        id=get(part, "toolCallId", str) or "tool-call",
        name=name,
        state=state,
        input=_input(part, state),
        output=part.get("output", None if state is State.OUTPUT_AVAILABLE else MISSING),
        error=None if is_interrupted else get(part, "errorText", str),
        input_text=(get(part, "rawInput", str) or "") if "input" not in part else "",
        original_input=ours.get("originalInput", MISSING),
        approval=_approval(part.get("approval")),
        dynamic=True if is_dynamic else get(ours, _DYNAMIC, bool),
        extra=split_extra(part, _KNOWN)[1],
        **about,
    )


def _state_of(part: Mapping[str, Any], ours: Mapping[str, Any]) -> State:
    if part.get("interrupted") is True:
        return State.INTERRUPTED
    given = part.get("state")
    if part.get("preliminary") is True and given == State.OUTPUT_AVAILABLE:
        given = ours.get("state", State.INPUT_AVAILABLE)
    return next((state for state in State if state == given), State.INPUT_AVAILABLE)


def _input(part: Mapping[str, Any], state: State) -> Any:
    if state is State.INPUT_STREAMING:
        return MISSING
    return part.get("input", None if state is State.INPUT_AVAILABLE else MISSING)


def _approval(given: Any) -> Approval | None:
    approval_id = get(given, "id", str)
    if approval_id is None:
        return None
    return Approval(
        id=approval_id,
        approved=get(given, "approved", bool),
        reason=get(given, "reason", str),
        is_automatic=get(given, "isAutomatic", bool),
        signature=get(given, "signature", str),
    )
