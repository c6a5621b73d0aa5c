"""What each part says, before it is HTML, plain text or a terminal's colours: words, sections and their values.

The faces differ in how they show this, not in what: states have the same words, a card the same sections, and
what is too large is cut at the same place. The sections of a card are in `toolcall_nb.render.sections`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import jiter

from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.transcript import FilePart, Message, Role, State, ToolCall
from toolcall_nb.render.values import one_line
from toolcall_nb.render.yaml_like import CHARACTERS, counted

__all__ = [
    "EMPTY",
    "STATE_WORDS",
    "WHO",
    "FileWords",
    "ShownState",
    "Written",
    "arguments",
    "ending",
    "file_words",
    "partial_input",
    "seconds",
    "shown_name",
    "shown_state",
]

WHO: Mapping[Role, str] = {"user": "You", "assistant": "AI", "system": "System"}
EMPTY = "No messages yet."

STATE_WORDS: Mapping[State, str] = {
    State.INPUT_STREAMING: "Pending",
    State.INPUT_AVAILABLE: "Queued",
    State.APPROVAL_REQUESTED: "Awaiting approval",
    State.APPROVAL_RESPONDED: "Responded",
    State.OUTPUT_AVAILABLE: "Completed",
    State.OUTPUT_ERROR: "Error",
    State.OUTPUT_DENIED: "Denied",
    State.INTERRUPTED: "Interrupted",
}
"""What a card says about the state of a call; never colour alone. See `shown_state` for what else it may say."""


class ShownState(NamedTuple):
    """The state that a card shows: the key that its CSS class is made of, and the word."""

    key: str
    word: str


_CALLED = ShownState("called", "Called")
_PENDING = ShownState("input-streaming", STATE_WORDS[State.INPUT_STREAMING])
_QUEUED = ShownState("queued", STATE_WORDS[State.INPUT_AVAILABLE])
_RUNNING = ShownState("running", "Running")
_SHOWN: Mapping[tuple[State, str | None], ShownState] = {
    (State.INPUT_STREAMING, "writing"): _PENDING,
    (State.INPUT_STREAMING, "queued"): _PENDING,
    (State.INPUT_STREAMING, "running"): _RUNNING,
    (State.INPUT_AVAILABLE, "queued"): _QUEUED,
    (State.INPUT_AVAILABLE, "running"): _RUNNING,
    (State.APPROVAL_RESPONDED, "queued"): _QUEUED,
    (State.APPROVAL_RESPONDED, "running"): _RUNNING,
}
"""By the state and what is going on with the call (`toolcall_nb.render.html_output.activity`)."""

_ENDS = {
    "length": "Stopped at the length limit.",
    "content-filter": "Stopped by the content filter.",
    "error": "Ended with an error.",
}
_NAME = 200
_REASON = 1_000
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)[;,]", re.IGNORECASE)


class Written(NamedTuple):
    """An input that is still being written: its beginning, as much as is drawn, and its whole length."""

    head: str = ""
    length: int = 0

    def plus(self, delta: str) -> Written:
        """With ``delta`` written after it; the cost does not depend on what came before."""
        room = CHARACTERS - len(self.head)
        return Written(self.head + delta[:room] if room > 0 else self.head, self.length + len(delta))


# Messages -----------------------------------------------------------------------------------------------------


def ending(message: Message) -> str | None:
    """How the message ended, if that was out of the ordinary; one line."""
    if message.aborted is not None:
        why = " ".join(message.aborted[:_REASON].split())
        return f"Stopped: {why}" if why not in ("", "stopped") else "Stopped."
    if message.finish_reason:
        return _ENDS.get(message.finish_reason, f"Ended: {' '.join(message.finish_reason[:_REASON].split())}")
    return None


class FileWords(NamedTuple):
    """What a file is called and what is known of it; ``kind`` is the media type of a ``data:`` address."""

    label: str
    about: str
    kind: str | None


def file_words(part: FilePart) -> FileWords:
    """The words for a file."""
    label = "Reasoning file" if part.reasoning else "File"
    data = _DATA.match(part.url)
    if data is None:
        return FileWords(label, part.media_type, None)
    return FileWords(label, f"{part.media_type}, {counted(len(part.url) - data.end(), 'characters')}", data[1].lower())


# Tool calls ---------------------------------------------------------------------------------------------------


def shown_state(call: ToolCall, activity: str | None = None) -> ShownState:
    """The state as a card shows it. ``activity`` is what is going on with the call; None outside a live view.

    A call without a result is Called where no more is known of it than that it was made: in whatever is saved or
    over, and where nobody tells when its tool starts.
    """
    if (known := _SHOWN.get((call.state, activity))) is not None:
        return known
    if call.state in (State.INPUT_STREAMING, State.INPUT_AVAILABLE):
        return _CALLED
    return ShownState(call.state.value, STATE_WORDS[call.state])


def shown_name(call: ToolCall) -> tuple[str, str]:
    """What a card is called, and the tool's name where that is something else."""
    title = (call.title or call.name)[:_NAME]
    return title, call.name[:_NAME] if call.title and call.title != call.name else ""


def arguments(call: ToolCall, written: Written) -> str:
    """The input in one line, once it holds still."""
    if call.state is State.INPUT_STREAMING:
        return ""
    value = partial_input(written) if call.input is MISSING else call.input
    return "" if value is MISSING else one_line(value)


def partial_input(written: Written) -> Json:
    """What can be said of an input that is not complete: the value so far of JSON, else the text; or MISSING."""
    if not written.head.strip():
        return MISSING
    if written.head.lstrip()[0] in "{[":
        try:
            return jiter.from_json(written.head.encode(), partial_mode="trailing-strings") or MISSING
        except ValueError:  # no JSON after all
            return written.head
    return written.head


def seconds(took: float) -> str:
    """A duration as the card shows it: ``0.41 s``, ``12 s``, ``2 min 05 s``."""
    if took < 9.995:
        return f"{took:.2f} s"
    whole = round(took)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"
