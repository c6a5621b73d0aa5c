"""The steps of a message in short, for tests of what ran inside of what: `outline`."""

from __future__ import annotations

from toolcall_nb.core.steps import steps_of
from toolcall_nb.core.transcript import Message


def outline(message: Message, parent: str | None = None) -> list[tuple[str | None, str, list[str]]]:
    """The steps of a run: the agent, the text, and the names of the calls of each."""
    return [(step.agent, step.text, [call.name for call in step.calls]) for step in steps_of(message, parent)]
