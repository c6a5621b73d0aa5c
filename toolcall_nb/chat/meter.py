"""What the requests of a turn took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.core.usage import USAGE_FIELDS, Request, added_by, requests_of, to_metadata

__all__ = ["Meter"]


class Meter:
    """Keeps an account of a turn, request by request, and what else the replies report of themselves."""

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._made: tuple[str, ...] = ()  # the calls of the last request
        self._other: dict[str, Any] = {}

    def add(self, reported: Any, made: Iterable[str], calls: Mapping[str, ToolCall]) -> None:
        """A request was answered with this metadata, and made these calls; ``calls`` are those of the chat, by id."""
        metadata = reported if isinstance(reported, dict) else {}
        requests = requests_of(metadata) or [Request()]
        if self._requests:
            last = self._requests[-1]
            ended = [calls[call] for call in self._made if call in calls and not calls[call].provider_executed]
            self._requests[-1] = replace(last, added={**last.added, **added_by(ended, last.usage, requests[0].usage)})
        self._requests += requests
        self._made = tuple(made)
        self._other |= {name: value for name, value in metadata.items() if name not in USAGE_FIELDS}

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the message: what the last reply says counts, and what they took adds up."""
        return {**self._other, **to_metadata(self._requests)}
