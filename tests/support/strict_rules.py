"""Rules for requests that types cannot express, from the providers' documentation and error messages.

Each function yields one sentence for each violation in a body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

__all__ = ["RULES"]

Body: TypeAlias = dict[str, Any]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""openai/types/shared_params/function_definition.py, ``name``. Anthropic, Groq and Mistral accept at least these."""


def _chat_rules(body: Body, *, id_form: str) -> Iterator[str]:
    """The rules of chat completions, in OpenAI's words.

    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'." Content is "required
    unless tool_calls or function_call is specified" (chat_completion_assistant_message_param.py). Arguments are
    "in JSON format" (same folder); the chat templates of open models require an object.
    """
    messages = body["messages"]
    open_calls: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        role, calls = message["role"], message.get("tool_calls") or []
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                yield f"messages[{number}] answers {message['tool_call_id']!r}, which is not an open call"
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            yield f"messages[{number}] ({role}) comes before the results of {open_calls}"
            open_calls = []
        if role == "assistant" and not (_has_text(message.get("content")) or calls):
            yield f"messages[{number}] is an assistant message without content or calls"
        if role == "user" and not _has_text(message.get("content")):
            yield f"messages[{number}] is a user message without content"
        for call in calls:
            yield from _call_rules(call["id"], call["function"]["name"], call["function"]["arguments"], seen, id_form)
            open_calls.append(call["id"])
    if open_calls:
        yield f"the end comes before the results of {open_calls}"
    yield from _order_rules([message["role"] for message in messages], first=("system", "user"), last=("tool", "user"))


def _call_rules(call_id: Any, name: str, arguments: Any, seen: set[str], id_form: str) -> Iterator[str]:
    """A call's id has the required format and is unique; its name is valid; its arguments are an object."""
    if call_id in seen:
        yield f"two calls have the id {call_id!r}"
    seen.add(call_id)
    if not re.fullmatch(id_form, call_id):
        yield f"the id {call_id!r} does not match {id_form}"
    if not _NAME.fullmatch(name):
        yield f"the name {name!r} does not match {_NAME.pattern}"
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        value = None
    if not isinstance(value, dict):
        yield f"the arguments {arguments!r:.60} are not a JSON object"


def _order_rules(roles: Sequence[str], first: Sequence[str], last: Sequence[str]) -> Iterator[str]:
    if not roles or roles[0] not in first:
        yield f"the first message is {roles[:1]}"
    if not roles or roles[-1] not in last:
        yield f"the last message is {roles[-1:]}"


def _has_text(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    parts = content or []
    return bool(parts) and all(part.get("text", "x").strip() for part in parts)


def _openai_chat_rules(body: Body) -> Iterator[str]:
    """OpenAI's own rule: "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum
    length 40"."""
    return _chat_rules(body, id_form=r".{1,40}")


def _groq_rules(body: Body) -> Iterator[str]:
    return _chat_rules(body, id_form=r".+")


def _mistral_rules(body: Body) -> Iterator[str]:
    """Mistral's own rules, in its error messages: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of
    9.", "Unexpected role 'user' after role 'tool'", "Expected last role User or Tool"."""
    yield from _chat_rules(body, id_form=r"[a-zA-Z0-9]{9}")
    roles = [message["role"] for message in body["messages"]]
    for before, after in pairwise(roles):
        if (before, after) in (("tool", "user"), ("tool", "system"), ("assistant", "assistant")):
            yield f"unexpected role {after!r} after role {before!r}"


def _openai_rules(body: Body) -> Iterator[str]:
    """The rules of the Responses API, in OpenAI's words.

    "No tool output found for function call …", "No tool call found for function call output with call_id …". A call's
    id is 1 to 64 characters (openai/types/responses/response_input_item_param.py says "The unique ID of the function
    tool call generated by the model."; the length is in the error message "string too long. Expected a string with
    maximum length 64"). "Item 'rs_…' of type 'reasoning' was provided without its required following item."
    """
    asked: list[str] = []
    seen: set[str] = set()
    kinds = []
    for item in body["input"]:
        kind = item.get("type", "message")
        kinds.append(kind if kind != "message" else item["role"])
        if kind == "function_call":
            yield from _call_rules(item["call_id"], item["name"], item["arguments"], seen, r".{1,64}")
            asked.append(item["call_id"])
            if "id" in item and not item["id"].startswith("fc"):
                yield f"expected an id that begins with 'fc', and not {item['id']!r}"
        elif kind == "function_call_output":
            if item["call_id"] not in asked:
                yield f"no tool call found for the output of {item['call_id']!r}"
            else:
                asked.remove(item["call_id"])
        elif kind == "message" and not _has_text(item.get("content")):
            yield f"a message of {item['role']} without content"
        elif kind == "message" and item["role"] == "user" and asked:
            yield f"a user message before the outputs of {asked}"
    if asked:
        yield f"no tool output found for {asked}"
    for before, after in pairwise([*kinds, "the end"]):
        if before == "reasoning" and after not in ("assistant", "function_call", "reasoning"):
            yield f"reasoning is followed by {after}"
    allowed = ("user", "system", "developer")
    yield from _order_rules(kinds, first=allowed, last=("function_call_output", "user"))


def _anthropic_rules(body: Body) -> Iterator[str]:
    """Anthropic's rules, from its documentation of tool use and its error messages.

    "messages: first message must use the "user" role"; "`tool_use` ids were found without `tool_result` blocks
    immediately after"; "tool_result blocks must come first in the content array, any text must come after"; "each
    tool_use must have a single result"; "`tool_use` ids must be unique"; "tool_use.id: String should match pattern
    '^[a-zA-Z0-9_-]+$'"; "text content blocks must be non-empty", "must contain non-whitespace text"; "The final block
    in an assistant message cannot be `thinking`"; "content cannot be empty if `is_error` is true".
    """
    turns = _anthropic_turns(body["messages"])
    asked: list[str] = []
    seen: set[str] = set()
    for number, (role, blocks) in enumerate(turns):
        if not blocks:
            yield f"turn {number} is empty"
        results = [block for block in blocks if block["type"] == "tool_result"]
        if sorted(block["tool_use_id"] for block in results) != sorted(asked):
            yield f"turn {number} answers {[block['tool_use_id'] for block in results]}, and not {asked}"
        if blocks[: len(results)] != results:
            yield f"turn {number} has something before its results"
        asked = []
        for block in blocks:
            yield from _anthropic_block(block, seen)
            if block["type"] == "tool_use":
                asked.append(block["id"])
        if role == "assistant" and blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            yield f"turn {number} ends with thinking"
    if asked:
        yield f"the end comes before the results of {asked}"
    yield from _order_rules([role for role, _ in turns], first=("user",), last=("user",))


def _anthropic_turns(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Returns the role and the blocks of each turn: "consecutive `user` or `assistant` turns in your request will be
    combined into a single turn" (anthropic/types/message_create_params.py)."""
    turns: list[tuple[str, list[Any]]] = []
    for message in messages:
        content = message.get("content", [])
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], [*blocks]))
    return turns


def _anthropic_block(block: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"].strip():
            yield "a text block without text"
        case "thinking" if not block["signature"]:
            yield "thinking without its signature"
        case "tool_use":
            if not isinstance(block["input"], dict):
                yield f"the input {block['input']!r:.60} is no object"
            yield from _call_rules(block["id"], block["name"], block["input"], seen, r"[a-zA-Z0-9_-]+")
        case "tool_result":
            content = block.get("content", "")
            if content != "" and not _has_text(content):
                yield "a result with a block without text"
            if block.get("is_error") and not content:
                yield "an error without content"


def _google_rules(body: Body) -> Iterator[str]:
    """Google's rules, in its error messages.

    "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
    "Please ensure that the number of function response parts is equal to the number of function call parts of the
    function call turn."; "Unable to submit request because it must include at least one parts field"; a part must
    have data ("required oneof field 'data' must have one initialized field"). A turn with results has no
    other parts. Names: google/genai/types.py, FunctionDeclaration.name.
    """
    contents = body["contents"]
    asked: list[str] = []
    for number, content in enumerate(contents):
        parts = content.get("parts", [])
        if not parts:
            yield f"contents[{number}] has no parts"
        results = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if sorted(results) != sorted(asked):
            yield f"contents[{number}] answers {results}, and not {asked}"
        if results and len(results) < len(parts):
            yield f"contents[{number}] has other parts beside results"
        asked = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        if asked and content["role"] != "model":
            yield f"contents[{number}] has calls but not the role 'model'"
        ids: set[str] = set()
        for part in parts:
            if "text" in part and not part["text"]:
                yield f"contents[{number}] has a part without text"
            if "functionCall" in part:  # its id is optional
                call = {"id": f"number {len(ids)}", "args": {}, **part["functionCall"]}
                yield from _call_rules(call["id"], call["name"], call["args"], ids, r".+")
    if asked:
        yield f"the end comes before the results of {asked}"
    yield from _order_rules([content["role"] for content in contents], first=("user",), last=("user",))


RULES = {
    "openai-chat": _openai_chat_rules,
    "openai": _openai_rules,
    "anthropic": _anthropic_rules,
    "google": _google_rules,
    "groq": _groq_rules,
    "mistral": _mistral_rules,
}
