"""What a request asks for, in one of three shapes that are told apart by their fields.

- the chat contract (seed 003): ``message``, ``conversationId``, ``model``, ``toolIds``, ``images``;
- the AI SDK's (vercel/ai, packages/ai/src/ui/http-chat-transport.ts): ``messages``, ``id``, ``trigger``, ``messageId``;
- AG-UI's run input (ag-ui-protocol 1.0, RunAgentInput): ``threadId``, ``runId``, ``messages``, ``tools``, ``context``,
  ``resume``.

A body that is of the first two at once, ``message`` beside ``messages`` and ``trigger``, is the AI SDK's, whose answer
says more.

The first goes on from what the server has of the thread. The other two bring the whole conversation: what the server
has of it counts as far as both say the same, and from there on what the request says.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct

from toolcall_nb.adapters.ai_sdk import messages as ui_messages
from toolcall_nb.approvals import APPROVAL_SCOPES
from toolcall_nb.core.events import File
from toolcall_nb.core.json_text import from_extended, json_text
from toolcall_nb.core.transcript import FilePart, Message, State, TextPart, Transcript
from toolcall_nb.server.problems import Problem
from toolcall_nb.server.settings import Limits
from toolcall_nb.server.store import THREAD_ID, is_thread_id
from toolcall_nb.wire.ag_ui.snapshot import EmittedIds, snapshot_events

__all__ = ["Answer", "Asked", "approval_answer", "decoded", "read_request"]

_SHAPES = (
    "A request has 'message' (with conversationId, model, toolIds, images), or 'messages' as the AI SDK's chat sends "
    "them, or 'threadId', 'runId' and 'messages' as AG-UI's run input."
)
_IMAGE = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,(.*)", re.DOTALL)
_UI_ROLES = ("system", "user", "assistant")
_AG_UI_ROLES = (*_UI_ROLES, "developer", "tool", "reasoning", "activity")


class Answer(Struct, frozen=True):
    """The answer to the question ``approval``; ``text`` is the arguments as JSON, None as they were asked.

    ``seen`` is how many lines of the arguments a page has shown, and ``unread`` that its reader approves without all of
    them. A program that answers by itself shows nothing: without ``seen`` the answer is its own, and is taken as it is.
    """

    approval: str
    approved: bool
    reason: str | None = None
    scope: str = "once"
    text: str | None = None
    seen: int | None = None
    unread: bool = False


class Asked(Struct, frozen=True, kw_only=True):
    """What is asked of a thread: a ``prompt``, or ``answers`` to what it waits for.

    ``history`` is what the request says was said before; None: what the server has. ``tools`` None means all.
    """

    wire: str
    thread: str
    run_id: str
    prompt: str = ""
    files: tuple[File, ...] = ()
    history: tuple[Message, ...] | None = None
    answers: tuple[Answer, ...] = ()
    model: str | None = None
    tools: tuple[str, ...] | None = None
    context: str = ""


def decoded(body: bytes) -> dict[str, Any]:
    """The body as a JSON object; else a `Problem`."""
    try:
        value = from_extended(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise Problem(422, f"The body is a JSON object, but this is {_named(value)}.")
    return value


def read_request(body: Mapping[str, Any], limits: Limits) -> Asked:
    """What a body asks for; else a `Problem` that names the field."""
    if "message" in body and not ("messages" in body and "trigger" in body):
        return _read_chat(body, limits)
    if "messages" not in body:
        raise Problem(422, _SHAPES)
    return _read_ag_ui(body, limits) if "threadId" in body or "runId" in body else _read_ui(body, limits)


def approval_answer(approval: str, body: Mapping[str, Any]) -> Answer:
    """An answer that was given by itself: the fields of `Answer`, and ``input`` or its ``text``."""
    approved = body.get("approved")
    if not isinstance(approved, bool):
        raise Problem(422, f"'approved' is true or false, but this is {_named(approved)}.")
    scope = _optional(body, "scope", str) or "once"
    if scope not in APPROVAL_SCOPES:
        raise Problem(422, f"'scope' is one of {', '.join(APPROVAL_SCOPES)}, but this is {scope!r:.100}.")
    text = _optional(body, "text", str)
    if body.get("input") is not None and text is not None:
        raise Problem(422, "'input' and 'text' say the same thing: send one of them.")
    if body.get("input") is not None:
        text = json_text(_optional(body, "input", dict))
    seen, unread = _optional(body, "seen", int), _optional(body, "unread", bool) is True
    return Answer(approval, approved, _optional(body, "reason", str), scope, text, seen, unread)


# The three shapes -------------------------------------------------------------------------------------------


def _read_chat(body: Mapping[str, Any], limits: Limits) -> Asked:
    return Asked(
        wire="chat",
        thread=_thread(body, "conversationId") or _new_id(),
        run_id=_new_id(),
        prompt=_prompt(_required(body, "message", str), limits),
        files=_images(_optional(body, "images", list) or [], limits),
        model=_optional(body, "model", str),
        tools=_names(body, "toolIds"),
    )


def _read_ui(body: Mapping[str, Any], limits: Limits) -> Asked:
    messages = _messages(body, _UI_ROLES, _ui_messages, limits)
    trigger = _optional(body, "trigger", str) or "submit-message"
    if trigger not in ("submit-message", "regenerate-message"):
        raise Problem(422, f"'trigger' is submit-message or regenerate-message, but this is {trigger!r:.100}.")
    answers = tuple(_ui_answers(body["messages"])) if messages[-1].role == "assistant" else ()
    return Asked(
        wire="ui",
        thread=_thread(body, "id") or _new_id(),
        run_id=_new_id(),
        model=_optional(body, "model", str),
        tools=_names(body, "toolIds"),
        **_turn(messages, answers, limits),
    )


def _read_ag_ui(body: Mapping[str, Any], limits: Limits) -> Asked:
    thread, run_id = _thread(body, "threadId"), _optional(body, "runId", str)
    if thread is None or not run_id:
        raise Problem(422, "AG-UI's run input has both 'threadId' and 'runId', each a string that is not empty.")
    if len(run_id) > 200:
        raise Problem(422, "'runId' is longer than 200 characters.")
    _optional(body, "tools", list)  # tools of the client's own cannot be called from here: see the README
    answers = tuple(_resumed(_optional(body, "resume", list) or []))
    is_asked = bool(body["messages"]) or not answers
    messages = _messages(body, _AG_UI_ROLES, _ag_ui_messages, limits) if is_asked else []
    context = _context(_optional(body, "context", list) or [], limits)
    return Asked(wire="ag-ui", thread=thread, run_id=run_id, context=context, **_turn(messages, answers, limits))


def _turn(messages: Sequence[Message], answers: tuple[Answer, ...], limits: Limits) -> dict[str, Any]:
    """The fields of `Asked` that a whole conversation gives."""
    if answers:
        return {"answers": answers}
    *before, last = messages
    if last.role != "user":
        raise Problem(422, f"The last message is the user's, or answers a question; but it is of the {last.role}.")
    files = [part for part in last.parts if isinstance(part, FilePart)]
    images = _images([part.url for part in files], limits)
    return {"prompt": _prompt(last.text, limits), "files": images, "history": tuple(before)}


def _messages(
    body: Mapping[str, Any], roles: Sequence[str], read: Callable[[list[Any]], Sequence[Message]], limits: Limits
) -> Sequence[Message]:
    given = _required(body, "messages", list)
    if not given:
        raise Problem(422, "'messages' is empty: nothing is asked.")
    if len(given) > limits.messages:
        raise Problem(413, f"'messages' has {len(given):,} messages; at most {limits.messages:,} are taken.")
    for number, message in enumerate(given):
        if not isinstance(message, dict) or message.get("role") not in roles:
            raise Problem(422, f"messages[{number}] has no 'role' that is one of {', '.join(roles)}.")
    messages = read(given)
    if not messages:
        raise Problem(422, "'messages' holds nothing: no text, no call.")
    _refuse_long(messages, limits)
    return messages


def _ui_messages(given: list[Any]) -> Sequence[Message]:
    return [ui_messages.from_ui(message) for message in given]


def _ag_ui_messages(given: list[Any]) -> Sequence[Message]:
    """What belongs to one answer of the assistant (its texts, calls, results) becomes one message."""
    numbered = [{**message, "id": f"message-{number}"} for number, message in enumerate(given)]
    return Transcript.from_events(snapshot_events(numbered, EmittedIds())).messages


def _refuse_long(messages: Sequence[Message], limits: Limits) -> None:
    for number, message in enumerate(messages):
        if any(isinstance(part, TextPart) and len(part.text) > limits.message for part in message.parts):
            raise Problem(413, f"A text of message {number} is longer than {limits.message:,} characters.")


def _ui_answers(messages: Sequence[Mapping[str, Any]]) -> Iterator[Answer]:
    """The answers in the tool parts of the last message (ai, ui-messages.ts: state approval-responded).

    They may hold ``scope`` and ``input`` too, as answers have that were given by themselves.
    """
    parts = messages[-1].get("parts")
    for part in parts if isinstance(parts, list) else ():
        match part:
            case {"state": State.APPROVAL_RESPONDED, "approval": {"id": str(approval), "approved": bool()}}:
                yield approval_answer(approval, part["approval"])


def _resumed(entries: Sequence[Any]) -> Iterator[Answer]:
    """AG-UI's answers to interrupts; an abandoned one is a no."""
    for number, entry in enumerate(entries):
        match entry:
            case {"interruptId": str(approval), "status": "cancelled"}:
                yield Answer(approval, False)
            case {"interruptId": str(approval), "status": "resolved", "payload": dict(payload)}:
                yield approval_answer(approval, payload)
            case _:
                raise Problem(
                    422,
                    f"resume[{number}] has an 'interruptId', a 'status' (resolved or cancelled), and with resolved a "
                    "'payload' like {\"approved\": true}.",
                )


# Fields -----------------------------------------------------------------------------------------------------


def _thread(body: Mapping[str, Any], name: str) -> str | None:
    thread: str | None = _optional(body, name, str)
    if thread is not None and not is_thread_id(thread):
        raise Problem(400, f"{name!r} is no thread's id: {thread!r:.120}. It matches {THREAD_ID}")
    return thread


def _prompt(text: str, limits: Limits) -> str:
    if not text.strip():
        raise Problem(422, "The message is empty: nothing is asked.")
    if len(text) > limits.message:
        raise Problem(413, f"The message has {len(text):,} characters; at most {limits.message:,} are taken.")
    return text


def _names(body: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    names = _optional(body, name, list)
    if names is not None and not all(isinstance(each, str) for each in names):
        raise Problem(422, f"{name!r} is a list of strings.")
    return None if names is None else tuple(names)


def _images(given: Sequence[Any], limits: Limits) -> tuple[File, ...]:
    if len(given) > limits.images:
        raise Problem(413, f"{len(given)} images; at most {limits.images} are taken.")
    return tuple(_image(number, each) for number, each in enumerate(given))


def _image(number: int, given: Any) -> File:
    """An image as a data URL. No address is fetched for anybody, and no file is read."""
    url = given.get("url") if isinstance(given, dict) else given
    found = _IMAGE.fullmatch(url) if isinstance(url, str) else None
    try:
        if found is None:
            raise ValueError
        base64.b64decode(found[2], validate=True)
    except (ValueError, binascii.Error):
        raise Problem(422, f"Image {number} is no data URL with a PNG, JPEG, GIF or WebP in base64.") from None
    return File(found[0], found[1])


def _context(entries: Sequence[Any], limits: Limits) -> str:
    """AG-UI's context, for the system prompt."""
    lines = []
    for number, entry in enumerate(entries):
        match entry:
            case {"description": str(description), "value": str(value)}:
                lines.append(f"- {description}: {value}")
            case _:
                raise Problem(422, f"context[{number}] has a 'description' and a 'value', both strings.")
    text = "\n".join(lines)
    if len(text) > limits.message:
        raise Problem(413, f"The context is longer than {limits.message:,} characters.")
    return text


def _required(body: Mapping[str, Any], name: str, kind: type) -> Any:
    value = body.get(name)
    if not isinstance(value, kind):
        raise Problem(422, f"{name!r} is {_KINDS[kind]}, but this is {_named(value)}.")
    return value


def _optional(body: Mapping[str, Any], name: str, kind: type) -> Any:
    """The field; None where it is not there, or null."""
    return None if body.get(name) is None else _required(body, name, kind)


_KINDS: dict[type, str] = {
    str: "a string",
    list: "a list",
    dict: "an object",
    int: "a whole number",
    bool: "true or false",
}


def _named(value: Any) -> str:
    kinds = {**_KINDS, type(None): "null", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), type(value).__name__)


def _new_id() -> str:
    return uuid4().hex
