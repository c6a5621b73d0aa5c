"""Finish reasons of replies: which of them say that the reply is complete, and what a cut-off call is told."""

from __future__ import annotations

COMPLETE_REASONS = frozenset({"stop", "tool-calls"})
"""The finish reasons that say that the model wrote its reply to the end."""

_CAUSES = {
    None: "the reply ended without a finish reason",
    "length": "the reply reached its length limit",
    "content-filter": "a content filter ended the reply",
    "error": "the reply ended with an error",
}


def cut_off_error(reason: str | None) -> str:
    """Returns the error of a call that the end of a reply may have cut off. ``reason`` is the reply's finish reason."""
    cause = _CAUSES.get(reason, f"the reply ended with the finish reason {reason!r:.80}")
    return f"The call may be incomplete: {cause} before the call was closed."
