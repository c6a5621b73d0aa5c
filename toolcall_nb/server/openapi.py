"""The OpenAPI document of a server: the same limits and patterns as the code that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from toolcall_nb.approvals import APPROVAL_SCOPES
from toolcall_nb.server.problems import MEDIA_TYPE
from toolcall_nb.server.settings import Settings
from toolcall_nb.server.store import THREAD_ID

__all__ = ["document"]

_JSON = "application/json"
_SSE = "text/event-stream"
_STRING = {"type": "string"}
_EVENT = {"type": "object", "required": ["data"], "properties": {"data": _STRING, "event": _STRING, "id": _STRING}}
"""One server-sent event."""
_MAYBE_STRING = {"type": ["string", "null"]}


def document(settings: Settings) -> dict[str, Any]:
    """The document, as JSON has it (OpenAPI 3.1)."""
    secured: dict[str, Any] = {"security": [{"token": []}]} if settings.token is not None else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "toolcall_nb", "version": _version(), "description": _ABOUT},
        "paths": _paths(settings),
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        **secured,
    }


_ABOUT = (
    "A chat whose model calls tools. A request is answered in the wire of its own shape: the chat contract (message), "
    "the AI SDK's UI message stream (messages), or AG-UI (threadId, runId, messages)."
)
_PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {"title": _STRING, "status": {"type": "integer"}, "detail": _STRING},
}


def _version() -> str:
    try:
        return version("toolcall-nb")
    except PackageNotFoundError:  # run from its sources
        return "0"


def _paths(settings: Settings) -> dict[str, Any]:
    thread, stream = [_thread_parameter()], _stream(settings)
    return {
        "/api/chat": {"post": _chat(settings)},
        "/api/tools": {"get": _get("What a request may choose among", _TOOLS)},
        "/api/threads/{thread}": {"parameters": thread, "get": _thread()},
        "/api/threads/{thread}/stream": {"parameters": thread, "get": stream},
        "/api/chat/{thread}/stream": {"parameters": thread, "get": stream},
        "/api/threads/{thread}/stop": {"parameters": thread, "post": _stop()},
        "/api/threads/{thread}/approvals/{approval}": {"parameters": [*thread, _APPROVAL_ID], "post": _approve()},
        "/api/health": {"get": {**_get("Whether the server answers", _HEALTH), "security": []}},
        "/openapi.json": {"get": {**_get("This document", {"type": "object"}), "security": []}},
        "/": {"get": {**_PAGE, "security": []}},
    }


# Operations -------------------------------------------------------------------------------------------------


def _chat(settings: Settings) -> dict[str, Any]:
    schema = {"anyOf": [_chat_schema(settings), _ui_schema(settings), _ag_ui_schema(settings)]}
    return {
        "summary": "Ask, and read the answer as it comes",
        "parameters": [_flag("ids", "Whether each event has its number; the chat contract's have none unless asked")],
        "requestBody": {"required": True, "content": {_JSON: {"schema": schema}}},
        "responses": {
            "200": {**_content(_SSE, _EVENT), "headers": {"X-Thread-Id": {"schema": _STRING}}},
            **_problems(400, 401, 403, 408, 409, 413, 415, 421, 422, 503),
        },
    }


def _stream(settings: Settings) -> dict[str, Any]:
    wires = ["chat", "ui", "ag-ui", "live"]
    after = {
        "name": "Last-Event-ID",
        "in": "header",
        "schema": {"type": "string", "pattern": "^(([0-9a-f]{8}-)?[0-9]{1,12})?$"},
    }
    return {
        "summary": "The rest of a running answer, after Last-Event-ID; 204 where none runs",
        "parameters": [
            {"name": "wire", "in": "query", "schema": {"enum": wires}, "description": "The request's own, unless told"},
            _flag("ids", "Whether each event has its number"),
            after,
        ],
        "responses": {
            "200": _content(_SSE, _EVENT),
            "204": {"description": "Nothing runs in this thread"},
            **_problems(400, 401, 403, 404, 409, 421, 422, 503),
        },
    }


def _thread() -> dict[str, Any]:
    forms = {"text/markdown": {"schema": _STRING}, _JSON: {"schema": _THREAD}, "text/html": {"schema": _STRING}}
    return {
        "summary": "All that was said in a thread, in the form that Accept likes best",
        "responses": {
            "200": {"description": "The thread", "content": forms},
            **_problems(400, 401, 403, 404, 406, 409, 421),
        },
    }


def _stop() -> dict[str, Any]:
    return {
        "summary": "End the answer that runs in a thread",
        "responses": {
            "200": _content(_JSON, _object({"stopped": {"type": "boolean"}}, "stopped")),
            **_problems(400, 401, 403, 404, 408, 409, 413, 415, 421),
        },
    }


def _approve() -> dict[str, Any]:
    fields = {
        "approved": {"type": "boolean"},
        "reason": {**_MAYBE_STRING, "description": "Why not; the model is told"},
        "scope": {"enum": [*APPROVAL_SCOPES, None], "description": "How far the permission goes"},
        "input": {"type": ["object", "null"], "description": "Other arguments to run with"},
        "text": {**_MAYBE_STRING, "description": "The same as JSON text, where numbers must stay as they are"},
        "seen": {"type": ["integer", "null"], "description": _SEEN},
        "unread": {"type": ["boolean", "null"], "description": "The reader approves without having read all of it"},
    }
    both = {"required": ["input", "text"], "properties": {"input": {"type": "object"}, "text": _STRING}}
    schema = {**_object(fields, "approved"), "not": both}
    return {
        "summary": "Answer a question: may this call run?",
        "requestBody": {"required": True, "content": {_JSON: {"schema": schema}}},
        "responses": {
            "200": _content(_JSON, _object({"answered": _STRING}, "answered")),
            **_problems(400, 401, 403, 404, 408, 409, 413, 415, 421, 422),
        },
    }


def _get(summary: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": _content(_JSON, schema), **_problems(401, 403, 421)}}


# Requests ---------------------------------------------------------------------------------------------------


def _chat_schema(settings: Settings) -> dict[str, Any]:
    limits = settings.limits
    images = {"type": ["array", "null"], "maxItems": limits.images, "items": {"type": ["string", "object"]}}
    fields = {
        "message": {"type": "string", "minLength": 1, "maxLength": limits.message, "pattern": r"\S"},
        "conversationId": _id(),
        "images": {**images, "description": "PNG, JPEG, GIF or WebP, as data URLs"},
        **_choices(settings),
    }
    return {"title": "Chat contract", **_object(fields, "message")}


def _ui_schema(settings: Settings) -> dict[str, Any]:
    fields = {
        "messages": _messages(settings),
        "id": _id(),
        "trigger": {"enum": ["submit-message", "regenerate-message", None]},
        "messageId": _MAYBE_STRING,
        **_choices(settings),
    }
    return {"title": "AI SDK", **_object(fields, "messages")}


def _ag_ui_schema(settings: Settings) -> dict[str, Any]:
    context = _object({"description": _STRING, "value": _STRING}, "description", "value")
    fields = {
        "threadId": {"type": "string", "pattern": THREAD_ID},
        "runId": {"type": "string", "minLength": 1, "maxLength": 200},
        "messages": {**_messages(settings), "minItems": 0},
        "tools": {"type": ["array", "null"]},
        "context": {"type": ["array", "null"], "items": context},
        "resume": {"type": ["array", "null"], "items": {"type": "object"}},
    }
    return {"title": "AG-UI", **_object(fields, "threadId", "runId", "messages")}


def _messages(settings: Settings) -> dict[str, Any]:
    message = {"type": "object", "required": ["role"], "properties": {"role": _STRING}}
    return {"type": "array", "minItems": 1, "maxItems": settings.limits.messages, "items": message}


def _choices(settings: Settings) -> dict[str, Any]:
    return {
        "model": {"enum": [*settings.models, None]},
        "toolIds": {"type": ["array", "null"], "items": _STRING, "description": "Which tools; all, unless told"},
    }


# Pieces -----------------------------------------------------------------------------------------------------


def _id() -> dict[str, Any]:
    return {"type": ["string", "null"], "pattern": THREAD_ID}


def _thread_parameter() -> dict[str, Any]:
    return {"name": "thread", "in": "path", "required": True, "schema": {"type": "string", "pattern": THREAD_ID}}


_APPROVAL_ID = {"name": "approval", "in": "path", "required": True, "schema": {"type": "string", "pattern": "^[^/]+$"}}
_TOOL = {"name": _STRING, "description": _STRING, "parameters": {"type": "object"}}
_NAMED = {"type": "array", "items": _STRING}


def _object(fields: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": list(required)}


_TOOLS = _object({"tools": {"type": "array", "items": _object(_TOOL, *_TOOL)}, "models": _NAMED}, "tools", "models")
_HEALTH = _object({"status": {"const": "ok"}, "running": {"type": "integer", "minimum": 0}}, "status", "running")
_SEEN = (
    "For a page that shows a person the arguments: how many lines of them were in view. Fewer than the question has "
    "are refused (422) without 'unread'. A program that answers by itself leaves it out."
)
_QUESTION = _object(
    {
        "approval": _STRING,
        "name": _STRING,
        "text": {"type": "string", "description": "The arguments as JSON, all of them"},
        "lines": {"type": "integer", "description": "How many lines of the arguments the page shows"},
        "hidden": {"type": "string", "description": "What of the arguments the page does not show, in words"},
    },
    *("approval", "name", "text", "lines"),
)
_THREAD = _object(
    {
        "id": _STRING,
        "state": {"enum": ["idle", "running", "waiting"]},
        "messages": {"type": "array", "items": {"type": "object"}, "description": "UI messages of the AI SDK"},
        "questions": {"type": "array", "items": _QUESTION},
    },
    *("id", "state", "messages", "questions"),
)


def _flag(name: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"enum": ["0", "1"]}, "description": about}


def _content(media_type: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": "As asked", "content": {media_type: {"schema": schema}}}


_PROBLEMS = {
    400: "Not JSON, or an id that is none",
    401: "The server's token is missing",
    403: "Not from this origin, or not this model",
    404: "There is no such thread",
    406: "None of the forms that there are",
    408: "The body took too long",
    409: "The thread is busy, waits for nothing, or is damaged",
    413: "More than is taken",
    415: "Not JSON by its content type",
    421: "Not this server's name",
    422: "A field is not as it should be",
    503: "More streams than the server takes; try again later",
}


def _problems(*statuses: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        str(status): {"description": _PROBLEMS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


_PAGE = {
    "summary": "A page with a live chat",
    "responses": {"200": _content("text/html", _STRING), **_problems(403, 421)},
}
