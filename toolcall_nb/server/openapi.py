"""The OpenAPI document of a server (`openapi_document`). Its schemas come from the types that check requests."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from toolcall_nb.server.request_types import ApprovalRequest, RequestTypes
from toolcall_nb.server.responses import (
    PROBLEM_TYPE,
    Health,
    ProblemDetails,
    QuestionAnswered,
    ServedThread,
    ServedTools,
    TurnStopped,
)
from toolcall_nb.server.settings import Settings
from toolcall_nb.server.store import THREAD_ID

__all__ = ["openapi_document"]

_JSON = "application/json"
_STRING = {"type": "string"}
_EVENT = {"type": "object", "required": ["data"], "properties": {"data": _STRING, "event": _STRING, "id": _STRING}}
"""One server-sent event."""
_ABOUT = (
    "A chat whose model calls tools. A request is answered in the wire of its own shape: the chat contract (message), "
    "the AI SDK's UI message stream (messages), or AG-UI (threadId, runId, messages)."
)
_INPUT_OR_TEXT = Meta(
    extra_json_schema={
        "not": {"required": ["input", "text"], "properties": {"input": {"type": "object"}, "text": _STRING}}
    }
)
_PROBLEMS = {
    400: "Not JSON, or no thread's id",
    401: "The server's token is missing",
    403: "Not from this origin, or not this model",
    404: "There is no such thread",
    406: "None of the offered media types is accepted",
    408: "The body took too long",
    409: "The thread is busy, waits for nothing, or is damaged",
    413: "More than the server takes",
    415: "The content type is not JSON's",
    421: "Not this server's name",
    422: "A field is not as it must be",
    503: "More streams than the server takes; try again later",
}


def openapi_document(settings: Settings, requests: RequestTypes) -> dict[str, Any]:
    """Returns the document (OpenAPI 3.1)."""
    body_types = [requests.chat, requests.ui, requests.ag_ui, Annotated[ApprovalRequest, _INPUT_OR_TEXT]]
    response_types = [ServedThread, ServedTools, TurnStopped, QuestionAnswered, Health, ProblemDetails]
    schemas, components = msgspec.json.schema_components(
        [*body_types, *response_types], ref_template="#/components/schemas/{name}"
    )
    *chats, approval, thread, tools, stopped, answered, health, _ = schemas
    in_thread = {"parameters": [_path_parameter("thread", THREAD_ID)]}
    in_approval = {"parameters": [*in_thread["parameters"], _path_parameter("approval", "^[^/]+$")]}
    chat = _operation(
        "Ask, and read the answer as it comes",
        {"text/event-stream": _EVENT},
        *(400, 403, 408, 409, 413, 415, 422, 503),
        body={"anyOf": chats},
        parameters=[_flag("ids", "Whether each event has its number; by default not in the chat contract")],
    )
    chat["responses"]["200"]["headers"] = {"X-Thread-Id": {"schema": _STRING}}
    stream = {**in_thread, "get": _stream()}
    forms = {"text/markdown": _STRING, _JSON: thread, "text/html": _STRING}
    answer = _operation(
        "Answer a question: may this call run?", {_JSON: answered}, *(400, 404, 408, 409, 413, 415, 422), body=approval
    )
    paths = {
        "/api/chat": {"post": chat},
        "/api/tools": {"get": _operation("What a request may choose among", {_JSON: tools})},
        "/api/threads/{thread}": {
            **in_thread,
            "get": _operation("A whole thread, in the media type that Accept prefers", forms, 400, 404, 406, 409),
        },
        "/api/threads/{thread}/stream": stream,
        "/api/chat/{thread}/stream": stream,
        "/api/threads/{thread}/stop": {
            **in_thread,
            "post": _operation(
                "Stop the turn that runs in a thread", {_JSON: stopped}, *(400, 404, 408, 409, 413, 415)
            ),
        },
        "/api/threads/{thread}/approvals/{approval}": {**in_approval, "post": answer},
        "/api/health": {"get": _public("Whether the server answers", {_JSON: health})},
        "/openapi.json": {"get": _public("This document", {_JSON: {"type": "object"}})},
        "/": {"get": _public("A page with a live chat", {"text/html": _STRING})},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "toolcall_nb", "version": _version(), "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        **({"security": [{"token": []}]} if settings.token is not None else {}),
    }


def _stream() -> dict[str, Any]:
    last_id = {"type": "string", "pattern": "^(([0-9a-f]{8}-)?[0-9]{1,12})?$"}
    wires = {"enum": ["chat", "ui", "ag-ui", "live"]}
    operation = _operation(
        "The rest of a running answer, after Last-Event-ID; 204 if none runs",
        {"text/event-stream": _EVENT},
        *(400, 404, 409, 422, 503),
        parameters=[
            {"name": "wire", "in": "query", "schema": wires, "description": "By default the request's own"},
            _flag("ids", "Whether each event has its number"),
            {"name": "Last-Event-ID", "in": "header", "schema": last_id},
        ],
    )
    operation["responses"]["204"] = {"description": "Nothing runs in this thread"}
    return operation


def _operation(
    summary: str, content: Mapping[str, Any], *problems: int, body: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Returns an operation. Requests to each may lack the token, come from another origin or name another server."""
    problem = {PROBLEM_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}}
    success = {"description": "As asked", "content": {name: {"schema": schema} for name, schema in content.items()}}
    failures = {
        str(status): {"description": _PROBLEMS[status], "content": problem}
        for status in sorted({*problems, 401, 403, 421})
    }
    taken = {} if body is None else {"requestBody": {"required": True, "content": {_JSON: {"schema": body}}}}
    return {"summary": summary, **taken, "responses": {"200": success, **failures}, **more}


def _public(summary: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an operation that needs no token."""
    return _operation(summary, content, security=[])


def _path_parameter(name: str, pattern: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": pattern}}


def _flag(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"enum": ["0", "1"]}, "description": description}


def _version() -> str:
    try:
        return version("toolcall-nb")
    except PackageNotFoundError:  # run from its sources
        return "0"
