"""Who may ask, from where, and how: looked at before any route is.

A server on loopback is reached by every page that a browser on this machine shows: by a name that an attacker lets
point to 127.0.0.1 (DNS rebinding), which the Host header gives away, or as a request of another origin, which Origin
and Sec-Fetch-Site give away. So both are looked at, always; where the server is reached from elsewhere, a token is
demanded besides.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.server.answers import problem_response
from toolcall_nb.server.problems import Problem
from toolcall_nb.server.settings import Settings, is_loopback

__all__ = ["SAFE", "Guard", "is_json"]

log = logger("toolcall_nb.server")

_ALLOWED = "Accept, Authorization, Content-Type, Last-Event-ID"
_OPEN = ("/", "/api/health", "/openapi.json")
"""What needs no token: nothing of it comes from a thread."""
_PAGE = "/page/"

SAFE: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Headers of every response that does not say otherwise."""


class Guard:
    """An ASGI application around another one: lets through what may be asked, and marks what is answered."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        shared = origin if origin in self._settings.origins else None

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                _mark(MutableHeaders(scope=message), shared)
            await send(message)

        try:
            self._look(scope, headers)
        except Problem as problem:
            await problem_response(problem)(scope, receive, marked)
            return
        if scope["method"] == "OPTIONS" and shared is not None:
            await _preflight()(scope, receive, marked)
            return
        try:
            await self._app(scope, receive, marked)
        except Exception:  # it was answered; what serves would log it by itself, with whatever is in it
            log.exception("A request for %s failed", scope["path"])

    def _look(self, scope: Scope, headers: Headers) -> None:
        self._look_at_host(headers.get("host", ""))
        self._look_at_origin(scope, headers)
        if scope["method"] == "POST":
            _look_at_content_type(headers)
        if scope["method"] != "OPTIONS":
            self._look_at_token(scope["path"], headers)

    def _look_at_host(self, host: str) -> None:
        hosts, name = self._settings.hosts, _name_of(host)
        if name is not None and (is_loopback(name) or name in hosts or "*" in hosts):
            return
        raise Problem(
            421, f"This server is not called {host!r:.120}. If it is, start it with --allow-host and that name."
        )

    def _look_at_origin(self, scope: Scope, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None:
            if headers.get("sec-fetch-site", "none") in ("none", "same-origin") or _is_visit(scope, headers):
                return
            origin = "a page of another origin"
        elif origin in self._settings.origins or urlsplit(origin).netloc == headers.get("host"):
            return
        raise Problem(403, f"Pages of {origin!r:.120} may not ask here. Start the server with --origin to let them.")

    def _look_at_token(self, path: str, headers: Headers) -> None:
        token = self._settings.token
        if token is None or path in _OPEN or path.startswith(_PAGE):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise Problem(
                401,
                "This server demands its token: send it as 'Authorization: Bearer …'.",
                {"WWW-Authenticate": "Bearer"},
            )


def is_json(content_type: str) -> bool:
    """Whether a body of this type is JSON in UTF-8."""
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    return kind == "application/json" and all(each in ("", "charset=utf-8", 'charset="utf-8"') for each in parameters)


def _look_at_content_type(headers: Headers) -> None:
    """A form or a text can be sent by any page without being asked for; JSON cannot."""
    content_type = headers.get("content-type")
    is_empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    if content_type is None and is_empty:
        return
    if content_type is None or not is_json(content_type):
        raise Problem(415, f"A body is sent as application/json, in UTF-8, but this is {content_type!r:.100}.")


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Somebody follows a link to the page."""
    return bool(scope["method"] == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate")


def _name_of(host: str) -> str | None:
    """The name in a Host header, without the port; None where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname if parts.netloc == host and parts.port != 0 and not parts.username else None
    except ValueError:
        return None


def _preflight() -> Response:
    headers = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": _ALLOWED,
        "Access-Control-Max-Age": "600",
    }
    return Response(status_code=204, headers=headers)


def _mark(headers: MutableHeaders, shared: str | None) -> None:
    for name, value in SAFE.items():
        headers.setdefault(name, value)
    if shared is not None:
        headers["access-control-allow-origin"] = shared
        headers["cross-origin-resource-policy"] = "cross-origin"
        headers["access-control-expose-headers"] = "x-thread-id, retry-after"
        headers.add_vary_header("Origin")
