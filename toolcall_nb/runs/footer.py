"""The line below a run: who answered, how many calls, and what it took of tokens and money."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolcall_nb.core.usage import account, counts
from toolcall_nb.runs.request_details import money

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import Transcript

__all__ = ["counted", "info_line", "tokens"]


def info_line(model: str, transcript: Transcript) -> str:
    """The same each time for the same run: nothing in it comes from a clock."""
    calls, taken = len(transcript.calls), account(transcript.messages)
    parts = [model, counted(calls, "tool call") if calls else "", tokens(taken.usage), money(taken.cost)]
    return " · ".join(part for part in parts if part)


def tokens(usage: Mapping[str, Any]) -> str:
    """``1,204 in · 318 out``; empty where nothing was counted. The names are those of several providers."""
    known = counts(usage)
    came, went = known.get("inputTokens"), known.get("outputTokens")
    pieces = [f"{came:,.0f} in" if came else "", f"{went:,.0f} out" if went else ""]
    return " · ".join(piece for piece in pieces if piece)


def counted(number: int, noun: str) -> str:
    """``1 tool call``, ``3 tool calls``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
