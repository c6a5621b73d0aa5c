"""The routes of a server, as an ASGI application: `application` makes one of its `Settings`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from toolcall_nb.adapters.ai_sdk import messages as ui_messages
from toolcall_nb.redaction import masked_value
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.redaction.registered_secrets import known_secrets
from toolcall_nb.render import to_html
from toolcall_nb.server import openapi, pages
from toolcall_nb.server.answers import json_response, problem_response
from toolcall_nb.server.conversations import Threads
from toolcall_nb.server.guards import Guard
from toolcall_nb.server.negotiation import preferred
from toolcall_nb.server.outward import outward_transcript
from toolcall_nb.server.problems import Problem
from toolcall_nb.server.requests import approval_answer, decoded, read_request
from toolcall_nb.server.runs import Response as Reply
from toolcall_nb.server.runs import ServedRun
from toolcall_nb.server.settings import Settings
from toolcall_nb.server.store import THREAD_ID, is_thread_id
from toolcall_nb.server.streaming import LIVE, EventStream
from toolcall_nb.wire import WIRE_NAMES

__all__ = ["application"]

log = logger("toolcall_nb.server")

_EVENT_ID = r"(?:(?P<answer>[0-9a-f]{8})-)?(?P<number>[0-9]{1,12})"
_FORMS = ("text/markdown", "application/json", "text/html")
_HTML_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
_WIRES = (*(name for name in WIRE_NAMES if name != "provider"), LIVE)
_AGAIN = {"Retry-After": "5"}


def application(settings: Settings, threads: Threads | None = None) -> ASGIApp:
    """The server. ``threads`` are its conversations; without them, those that ``settings`` say."""
    server = _Server(settings, threads if threads is not None else Threads(settings))
    app = Starlette(
        routes=[
            _route("/api/chat", server.chat, "POST"),
            _route("/api/tools", server.tools),
            _route("/api/threads/{thread}", server.thread),
            _route("/api/threads/{thread}/stop", server.stop, "POST"),
            _route("/api/threads/{thread}/approvals/{approval:path}", server.approve, "POST"),
            _route("/api/threads/{thread}/stream", server.stream),
            _route("/api/chat/{thread}/stream", server.stream),  # where the AI SDK's chat looks for it
            _route("/api/health", server.health),
            _route("/openapi.json", server.openapi),
            _route("/", pages.index),
            _route("/page/{name}", pages.asset),
        ],
        lifespan=server.lifespan,
        exception_handlers={Problem: _told, HTTPException: _told, ClientDisconnect: _gone, Exception: _failed},
    )
    return Guard(app, settings)


def _route(path: str, endpoint: Callable[[Request], Awaitable[Any]], method: str = "GET") -> Route:
    route = Route(path, endpoint, methods=[method])
    route.methods = {method}  # a HEAD of a stream would run it
    route.path_regex = re.compile(route.path_regex.pattern, re.DOTALL)  # a model may put a line end into a call's id
    return route


class _Server:
    def __init__(self, settings: Settings, threads: Threads) -> None:
        self._settings = settings
        self._threads = threads
        self._openapi = openapi.document(settings)

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(self._threads.close)

    # A turn

    async def chat(self, request: Request) -> Any:
        """Ask, or answer what was asked; the answer is a stream in the request's own wire."""
        asked = read_request(decoded(await self._body(request)), self._settings.limits)
        ids = _flag(request, "ids", asked.wire != "chat")
        self._refuse_if_full()
        run = await run_in_threadpool(self._threads.begin, asked)
        return EventStream(run, run.responses[-1], self._settings.limits, ids=ids)

    async def stream(self, request: Request) -> Any:
        """What a running turn gives, from its beginning or after ``Last-Event-ID``; 204 where none runs."""
        thread = _thread(request)
        wanted = request.query_params.get("wire")
        if wanted not in (None, *_WIRES):
            raise Problem(422, f"'wire' is one of {', '.join(_WIRES)}, but this is {wanted!r:.100}.")
        last, ids = _last_event_id(request), _flag(request, "ids", True)
        self._refuse_if_full()
        run = self._threads.run(thread)
        if run is None:
            run = await run_in_threadpool(self._threads.ended, thread)
            if wanted != LIVE:
                return Response(status_code=204)
        reply = run.responses[0 if wanted == LIVE else -1]
        after = last[1] if last[0] in ("", reply.id) else 0
        reply = Reply(wanted or reply.wire, reply.start, reply.run_id, reply.id)
        return EventStream(run, reply, self._settings.limits, after=after, ids=ids)

    async def stop(self, request: Request) -> Response:
        """End the turn that runs in a thread."""
        thread = _thread(request)
        await self._body(request)
        return json_response({"stopped": await run_in_threadpool(self._threads.stop, thread)})

    async def approve(self, request: Request) -> Response:
        """Answer a question: may this call run?"""
        thread = _thread(request)
        answer = approval_answer(request.path_params["approval"], decoded(await self._body(request)))
        await run_in_threadpool(self._threads.answer, thread, answer)
        return json_response({"answered": answer.approval})

    # What is there

    async def thread(self, request: Request) -> Response:
        """All that was said, in the form that the client likes best."""
        thread = _thread(request)
        form = preferred(request.headers.get("accept"), _FORMS)
        if form is None:
            raise Problem(406, f"A thread is there as {', '.join(_FORMS)}.")
        said = outward_transcript(await run_in_threadpool(self._threads.transcript, thread))
        if form == "application/json":
            return json_response(
                _about(thread, ui_messages.to_ui(said.messages), self._threads.run(thread)), headers=_VARY
            )
        kept = masked_value(said, known_secrets())[0] if self._settings.masking else said
        text = kept.to_markdown(versioned=True) if form == "text/markdown" else to_html(kept, page=True)
        policy = {} if form == "text/markdown" else {"content-security-policy": _HTML_POLICY}
        return Response(text, headers={**_VARY, **policy, "cache-control": "no-store"}, media_type=form)

    async def tools(self, request: Request) -> Response:
        """What a request may choose among."""
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in self._settings.tools.values()
        ]
        return json_response({"tools": tools, "models": [*self._settings.models]})

    async def health(self, request: Request) -> Response:
        """That the server answers, and how much it has to do."""
        return json_response({"status": "ok", "running": len(self._threads.running())})

    async def openapi(self, request: Request) -> Response:
        """What this server takes and gives."""
        return json_response(self._openapi)

    # The request

    async def _body(self, request: Request) -> bytes:
        """The body, as far as the limits allow."""
        limits = self._settings.limits
        try:
            async with asyncio.timeout(limits.body_seconds):
                return await _read(request, limits.body)
        except TimeoutError:
            raise Problem(408, f"The body did not come within {limits.body_seconds:g} s.", _CLOSE) from None

    def _refuse_if_full(self) -> None:
        count = self._threads.reader_count
        if count >= self._settings.limits.readers:
            raise Problem(503, f"{count} streams are read at the moment, which is the limit.", _AGAIN)


_VARY = {"vary": "Accept"}
_CLOSE = {"connection": "close"}


async def _read(request: Request, most: int) -> bytes:
    """The body, which is refused where it is longer than ``most`` bytes.

    As much again is read and thrown away first: who still sends when the connection is closed is told of a reset, and
    never hears the answer. A body that says too much of itself is not waited for.
    """
    said = request.headers.get("content-length", "0")
    too_long = Problem(413, f"The body is longer than {most:,} bytes.", _CLOSE)
    if not said.isdecimal() or int(said) > 2 * most:
        raise too_long
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > 2 * most:
            raise too_long
        if size <= most:
            pieces.append(piece)
    if size > most:
        raise too_long
    return b"".join(pieces)


def _thread(request: Request) -> str:
    thread: str = request.path_params["thread"]
    if not is_thread_id(thread):
        raise Problem(400, f"{thread!r:.120} is no thread's id. It matches {THREAD_ID}")
    return thread


def _flag(request: Request, name: str, default: bool) -> bool:
    value = request.query_params.get(name)
    if value not in (None, "0", "1"):
        raise Problem(422, f"{name!r} is 0 or 1, but this is {value!r:.100}.")
    return default if value is None else value == "1"


def _last_event_id(request: Request) -> tuple[str, int]:
    """The answer that the client knows a part of, where it is named, and how many events of it."""
    value = request.headers.get("last-event-id", "") or "0"
    found = re.fullmatch(_EVENT_ID, value)
    if found is None:
        raise Problem(400, f"Last-Event-ID is what this server gave as an id, but this is {value!r:.100}.")
    return found["answer"] or "", int(found["number"])


def _about(thread: str, messages: list[Any], run: ServedRun | None) -> dict[str, Any]:
    running = run is not None and run.ended is None
    state = "idle" if run is None or not running else "waiting" if run.is_waiting else "running"
    return {"id": thread, "state": state, "messages": messages, "questions": [] if run is None else run.forms()}


async def _told(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        error = Problem(error.status_code, _ROUTES.get(error.status_code, error.detail), error.headers)
    assert isinstance(error, Problem)
    return problem_response(error)


_ROUTES = {404: "There is nothing here. /openapi.json says what there is.", 405: "This is not done by this method."}


async def _gone(_: Request, error: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it


async def _failed(_: Request, error: Exception) -> Response:
    return problem_response(Problem(500, "The server failed at this request. Its log says how."))
