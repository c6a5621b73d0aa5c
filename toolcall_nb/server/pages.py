"""The page at ``/``: a live chat, drawn by the renderer and the module that a notebook has."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from toolcall_nb.live import MODULE
from toolcall_nb.live.style import page_css
from toolcall_nb.server.problems import Problem

__all__ = ["POLICY", "asset", "index"]

_ALIGNED = " ".join(
    f"'sha256-{b64encode(sha256(f'text-align:{side}'.encode()).digest()).decode()}'"
    for side in ("left", "center", "right")
)
"""The columns of a Markdown table, as markdown-it-py writes them."""

POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-hashes' {_ALIGNED}; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own files, and nothing that is written inside it but a column's alignment."""


async def index(_: Request) -> Response:
    """The page itself."""
    return _file(_read("index.html"), "text/html")


async def asset(request: Request) -> Response:
    """One of its files."""
    found = _ASSETS.get(request.path_params["name"])
    if found is None:
        raise Problem(404, "The page has no such file.")
    kind, text = found
    return _file(text(), kind)


def _file(text: str, kind: str) -> Response:
    return Response(text, headers={"content-security-policy": POLICY, "cache-control": "no-cache"}, media_type=kind)


@cache
def _read(name: str) -> str:
    return files("toolcall_nb.server").joinpath("page", name).read_text("utf-8")


_JAVASCRIPT = "text/javascript"
_ASSETS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "transcript.js": (_JAVASCRIPT, cache(lambda: MODULE.read_text("utf-8"))),
    "page.js": (_JAVASCRIPT, lambda: _read("page.js")),
    "page.css": ("text/css", lambda: page_css() + _read("page.css")),
}
"""The only names that there are."""
