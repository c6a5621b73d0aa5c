"""Conversations in ShareGPT's form, ``{from, value}``, as OpenAI's messages: `openai_messages`.

A call is the text of ``{name, arguments}``, or of a list of those. Calls have no ids, so that results answer them in
their order.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolcall_nb.core.events import Object
from toolcall_nb.core.sdk_objects import as_json_text, get, nonempty

_SPEAKERS = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "model", "bot"), "assistant"),
    **dict.fromkeys(("system",), "system"),
    **dict.fromkeys(("function_call", "tool_call"), "call"),
    **dict.fromkeys(("observation", "tool", "function_response", "tool_response"), "result"),
}


def is_sharegpt(message: Any) -> bool:
    """Whether a message has ShareGPT's form."""
    return isinstance(message, Mapping) and "value" in message and isinstance(message.get("from"), str)


def openai_messages(messages: Iterable[Any]) -> list[Any]:
    """Returns the messages in OpenAI's form. Messages in other forms stay as they are."""
    return list(_converted(messages))


def _converted(messages: Iterable[Any]) -> Iterator[Any]:
    waiting: deque[str] = deque()
    count = 0
    for message in messages:
        if not is_sharegpt(message):
            yield message
            continue
        value = message["value"]
        text = value if isinstance(value, str) else as_json_text(value)
        match _SPEAKERS.get(message["from"].lower()):
            case "call" if calls := _calls(value):
                ids = [f"call_{count + number}" for number in range(1, len(calls) + 1)]
                count += len(calls)
                waiting.extend(ids)
                named = [{"id": call_id, "function": call} for call_id, call in zip(ids, calls, strict=True)]
                yield {"role": "assistant", "content": None, "tool_calls": named}
            case "call":
                yield {"role": "assistant", "content": text}
            case "result" if waiting:
                yield {"role": "tool", "tool_call_id": waiting.popleft(), "content": text}
            case "result":
                yield {"role": "tool", "content": text}
            case role:
                yield {"role": role or "user", "content": text}


def _calls(value: Any) -> list[Object]:
    """Returns the calls in a text; none if it is not the JSON of calls."""
    try:
        given = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return []
    calls = given if isinstance(given, list) else [given]
    if not all(nonempty(call, "name") for call in calls):
        return []
    return [{"name": call["name"], "arguments": _arguments(get(call, "arguments"))} for call in calls]


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else as_json_text({} if given is None else given)
