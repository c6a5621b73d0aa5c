"""Answers that are no streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from toolcall_nb.core.json_text import json_text
from toolcall_nb.server.problems import MEDIA_TYPE, Problem

__all__ = ["json_response", "problem_response"]


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """``value`` as JSON."""
    return Response(json_text(value).encode(), status, _kept_nowhere(headers), "application/json")


def problem_response(problem: Problem) -> Response:
    """What is wrong, as RFC 9457 has it."""
    return Response(msgspec.json.encode(problem.body()), problem.status, _kept_nowhere(problem.headers), MEDIA_TYPE)


def _kept_nowhere(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {"cache-control": "no-store", **(headers or {})}
