"""A request that is not answered: what is wrong, where, and what to do, as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

__all__ = ["MEDIA_TYPE", "Problem"]

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """Ends a request with ``status`` and one sentence for who sent it."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """What is sent."""
        return {"title": HTTPStatus(self.status).phrase, "status": self.status, "detail": self.detail}
