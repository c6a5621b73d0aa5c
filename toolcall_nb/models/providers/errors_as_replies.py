"""Errors that a server sends as if they were replies: status 200, and JSON instead of a stream.

`reveal_errors` gives such a response the status that it should have, so that the provider's package reads the message.
"""

from __future__ import annotations

import json
from typing import Any

from toolcall_nb.adapters.plain import mapping
from toolcall_nb.models.errors.exception_details import status_in

__all__ = ["error_status", "reveal_errors"]

_OF_A_REPLY = frozenset({"choices", "candidates", "content", "output", "message", "id"})
_BAD_REQUEST = 400


def reveal_errors(client: Any) -> None:
    """Looks at each response of a client of httpx; of None, nothing."""
    hooks: Any = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict):
        client.event_hooks = {**hooks, "response": [*hooks.get("response", ()), _reveal]}


async def _reveal(response: Any) -> None:
    kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
    if response.status_code != 200 or not (kind == "application/json" or kind.endswith("+json")):
        return
    response.status_code = error_status(await response.aread()) or response.status_code


def error_status(body: bytes) -> int | None:
    """The status of an error that this body tells of, as far as it says one; None for what is no error."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    told = mapping(found[0] if isinstance(found, list) and found else found)
    is_named = bool(told.get("error")) or "error" in (told.get("type"), told.get("object"))
    if not is_named and not (told.get("detail") and not told.keys() & _OF_A_REPLY):
        return None
    return status_in(dict(told)) or _BAD_REQUEST
