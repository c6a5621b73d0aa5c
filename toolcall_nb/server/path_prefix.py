"""The path under which a proxy or another application offers the server: `PathPrefix` takes it off each request.

The routes, the guard and the page know no prefix: the page's addresses are relative. Only the OpenAPI document and
the text of a 404 name it, through `prefix_of`.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcall_nb.server.settings import Settings, is_path_prefix

_KEY = "toolcall_nb.path_prefix"


class PathPrefix:
    """ASGI middleware that removes the prefix from ``path`` and ``root_path``, and keeps it for `prefix_of`.

    A prefix comes from the application that mounts this one (``root_path``), from `Settings.root_path`, or, if
    `Settings.trusts_forwarded_prefix`, from the header X-Forwarded-Prefix. A proxy may have removed it already.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        mounted = scope.get("root_path", "").rstrip("/")
        outer = self._outer(scope)
        if not mounted and not outer:
            await self._app(scope, receive, send)
            return
        path = _without(_without(scope["path"], mounted), unquote(outer))
        if path == "":  # addresses in the page are relative to its folder, so its own address must end in "/"
            await _redirect_to_folder(scope["path"])(scope, receive, send)
            return
        await self._app({**scope, "path": path, "root_path": "", _KEY: outer + mounted}, receive, send)

    def _outer(self, scope: Scope) -> str:
        """Returns the prefix that the proxy takes off. A header that came twice may be the client's: it is ignored."""
        if self._settings.trusts_forwarded_prefix:
            match [value.rstrip("/") for value in Headers(scope=scope).getlist("x-forwarded-prefix")]:
                case [prefix] if is_path_prefix(prefix):
                    return prefix
        return self._settings.root_path


def prefix_of(scope: Scope) -> str:
    """Returns the prefix of a request's path: "" or like ``/user/ada/proxy/8000``, percent-encoded."""
    return quote(scope.get(_KEY, ""), safe="/%:@!$&'()*+,;=~")


def _without(path: str, prefix: str) -> str:
    return path[len(prefix) :] if path == prefix or path.startswith(f"{prefix}/") else path


def _redirect_to_folder(path: str) -> Response:
    """Returns a relative redirect: an absolute one would be built from headers that anyone can set."""
    name = path.rpartition("/")[2]
    return Response(status_code=308, headers={"location": f"./{quote(name, safe='')}/"})
