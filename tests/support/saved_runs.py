"""Runs of usual sizes, and the output that a notebook saves of each: `short_run`, `usual_run`, `saved`."""

from __future__ import annotations

from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.render.saved_output import saved_bundle

__all__ = ["saved", "short_run", "size", "usual_run"]


def short_run(number: int = 0, text: str = "It is **21 degrees** and clear in Lisbon.") -> Transcript:
    """Returns a run with one call and a short answer, or another ``text``."""
    call = f"call_{number}"
    return Transcript.from_events(
        [
            ev.Start(),
            ev.TextDelta("t", "I look it up."),
            ev.ToolInputAvailable(call, "weather", {"city": "Lisbon", "days": number}),
            ev.ToolOutputAvailable(call, {"temperature": 21, "sky": "clear"}),
            ev.TextDelta("u", text),
            ev.Finish(),
        ]
    )


def usual_run(number: int) -> Transcript:
    """Returns a run with one call and an answer of the usual length: 1.6 kB of Markdown."""
    steps = "\n".join(f"{step}. Step {step} of run {number} says *what* was found, and where." for step in range(1, 11))
    parts = "\n\n".join(f"In paragraph {part} there is more on it. " * 5 for part in range(5))
    return short_run(number, f"## Report {number}\n\n{steps}\n\n{parts}")


def saved(transcript: Transcript) -> dict[str, str]:
    """Returns the MIME bundle that a cell saves of a finished run."""
    return saved_bundle(transcript, line="mock · 1 tool call", is_run=True)


def size(text: str) -> int:
    """Returns the number of bytes."""
    return len(text.encode())
