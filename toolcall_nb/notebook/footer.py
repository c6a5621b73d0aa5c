"""The line below a run: who answered, how many calls, and what it took of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcall_nb.transcript import Transcript

__all__ = ["counted", "info_line", "tokens"]

_IN = ("inputTokens", "input_tokens", "prompt_tokens", "promptTokens")
_OUT = ("outputTokens", "output_tokens", "completion_tokens", "completionTokens")


def info_line(model: str, transcript: Transcript) -> str:
    """The same each time for the same run: nothing in it comes from a clock."""
    calls = len(transcript.calls)
    totals: dict[str, float] = {}
    for message in transcript.messages:
        usage = message.metadata.get("usage")
        for name, count in usage.items() if isinstance(usage, dict) else ():
            if isinstance(count, int | float):
                totals[name] = totals.get(name, 0) + count
    parts = [model, counted(calls, "tool call") if calls else "", tokens(totals)]
    return " · ".join(part for part in parts if part)


def tokens(usage: Mapping[str, Any]) -> str:
    """``1,204 in · 318 out``; empty where nothing was counted. The names are those of several providers."""
    came, went = (next((usage[name] for name in names if usage.get(name)), None) for names in (_IN, _OUT))
    pieces = [f"{came:,.0f} in" if came else "", f"{went:,.0f} out" if went else ""]
    return " · ".join(piece for piece in pieces if piece)


def counted(number: int, noun: str) -> str:
    """``1 tool call``, ``3 tool calls``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
