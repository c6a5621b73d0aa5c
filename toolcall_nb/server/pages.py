"""The page at ``/``, a live chat, and its files: `index` and `asset`. Notebooks use the same renderer and module."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from toolcall_nb.frontend import page_css, read_asset
from toolcall_nb.server.responses import Problem

_ALIGNED = " ".join(
    f"'sha256-{b64encode(sha256(f'text-align:{side}'.encode()).digest()).decode()}'"
    for side in ("left", "center", "right")
)
"""Hashes of the style attributes that align the columns of a Markdown table."""

_POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-hashes' {_ALIGNED}; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page may load its own files only, and no inline styles but the alignment of columns."""


async def index(_: Request) -> Response:
    """Returns the page."""
    return _file(read_asset("index.html"), "text/html")


async def asset(request: Request) -> Response:
    """Returns a file of the page."""
    found = _ASSETS.get(request.path_params["name"])
    if found is None:
        raise Problem(404, f"The page has no such file. It has {', '.join(_ASSETS)}.")
    kind, text = found
    return _file(text(), kind)


def _file(text: str, kind: str) -> Response:
    return Response(text, headers={"content-security-policy": _POLICY, "cache-control": "no-cache"}, media_type=kind)


_JAVASCRIPT = "text/javascript"
_ASSETS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "transcript.js": (_JAVASCRIPT, lambda: read_asset("transcript.js")),
    "page.js": (_JAVASCRIPT, lambda: read_asset("page.js")),
    "page.css": ("text/css", lambda: page_css() + read_asset("page.css")),
}
"""The files by name."""
