"""May this call run? Asked in the run's thread, answered by a page in another.

The page is given the arguments as JSON text and sends back the text that it showed. Where that is the text that was
asked with, the call runs with the very values that it had; the text is not read again. Where it is another, a
person has edited it.

What is approved was seen: the page says how many lines of the arguments were in view (``seen``). Where that is not
all of them, or not all could be shown, the answer is refused, unless it says ``unread``: approved without reading all
of it. This holds for an edited answer too: all that is not the person's own words in it was seen before.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from toolcall_nb.approvals.edited_arguments import reader_of_edits
from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.invisible_characters import escaped_in_json, written_out
from toolcall_nb.core.json_text import to_extended
from toolcall_nb.core.text import well_formed
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.render.review import review
from toolcall_nb.render.yaml_like import counted
from toolcall_nb.tools import Decision

__all__ = ["SCOPES", "Form", "Questions", "json_text"]

Form: TypeAlias = dict[str, Any]
"""What a page needs to ask: ``approval``, ``name``, and ``text``, the arguments as JSON; ``lines``, how many the card
shows of them, and ``hidden``, in words what it does not show; ``invisible`` where characters are written out; and of an
answer that was refused ``problem`` and how many ``refused`` there were."""

SCOPES = ("once", "chat", "always")
POLL = 0.1
"""Seconds between looks for a stop."""

_NOT_SHOWN = "The question could not be shown, so the call was denied."
_MAX_REASON = 2_000
_MAX_NAME = 60
_NOT_ARRIVED = "The arguments did not arrive. Try again."
_UNREAD = "Approved without reading all of it."


class Questions:
    """The calls that wait for a person.

    ``tell`` gives the pages the form for a call; None takes it away again. It returns whether a page can show it.
    """

    def __init__(self, tell: Callable[[str, Form | None], bool]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._open: dict[str, _Question] = {}

    @property
    def is_open(self) -> bool:
        """Whether a call waits for an answer."""
        return bool(self._open)

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """The answer to a call, once there is one; raises `KeyboardInterrupt` when the run is stopped meanwhile.

        A call that no page can show is denied: nobody could say what it is that may run.
        """
        question = _Question(call)
        with self._lock:
            self._open[question.approval] = question
        try:
            if not self._tell(call.id, question.form()):
                return Decision(False, _NOT_SHOWN)
            while not question.answered.wait(POLL):
                if is_stopped():
                    raise KeyboardInterrupt
        finally:
            with self._lock:
                del self._open[question.approval]
            self._tell(call.id, None)
        assert question.decision is not None
        return question.decision

    def answer(self, message: dict[str, Any], *, by_program: bool = False) -> None:
        """What a page says, or a program that decides by itself and so has to show nothing to anybody.

        An answer to nothing that is asked, or to what has been answered, is ignored.
        """
        approval = message.get("approval")
        with self._lock:
            question = self._open.get(approval) if isinstance(approval, str) else None
            if question is None or question.answered.is_set():
                return
            question.take(message, by_program)
        if not question.answered.is_set():
            self._tell(question.call.id, question.form())


class _Question:
    """One call, and its answer once that has come."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.approval = call.approval.id if call.approval is not None else call.id
        self.answered = threading.Event()
        self.decision: Decision | None = None
        self._input: Json = {} if call.input is MISSING else call.input
        self._text = json_text(self._input)
        self._review = review(self._input)
        self._read_edited = reader_of_edits()
        self._problem = ""
        self._refused = 0

    def form(self) -> Form:
        name, lines = written_out(self.call.name[:_MAX_NAME]), len(self._review.entries)
        form: Form = {"approval": self.approval, "name": name, "text": self._text, "lines": lines}
        form |= {"hidden": self._review.hidden} if self._review.hidden else {}
        form |= {"invisible": True} if self._text != _plain_json(self._input) else {}
        return form | ({"problem": self._problem, "refused": self._refused} if self._problem else {})

    def take(self, message: dict[str, Any], by_program: bool) -> None:
        """The answer, or what is wrong with it."""
        scope = message.get("scope")
        try:
            if message.get("approved") is not True:
                self._decide(Decision(False, _reason(message.get("reason"))))
            elif scope in SCOPES:
                self._decide(self._approval(message, by_program))
        except ValueError as error:
            self._problem = str(error)
            self._refused += 1

    def _approval(self, message: dict[str, Any], by_program: bool) -> Decision:
        text, scope = message.get("text"), message["scope"]
        is_unread = not by_program and self._is_unread(message.get("seen"))
        if is_unread and message.get("unread") is not True:
            raise ValueError(self._unread(message.get("seen")))
        decision = Decision(True, _UNREAD if is_unread else None, scope=scope)
        if text == self._text:
            return decision
        if not isinstance(text, str):
            raise ValueError(_NOT_ARRIVED)
        value = self._read_edited(text)
        is_same = json.dumps(value) == json.dumps(self._input)  # only its spaces are others
        return decision if is_same else replace(decision, input=value)

    def _is_unread(self, seen: Any) -> bool:
        return bool(self._review.hidden) or type(seen) is not int or seen < len(self._review.entries)

    def _unread(self, seen: Any) -> str:
        lines = len(self._review.entries)
        missing = lines - min(max(seen, 0), lines) if type(seen) is int else lines
        parts = [counted(missing, "lines")] if missing else []
        words = " and ".join([*parts, *([self._review.hidden] if self._review.hidden else [])])
        return f"Not all of the arguments were in view: {words}. Look at them, or approve without reading all of it."

    def _decide(self, decision: Decision) -> None:
        self.decision = decision
        self.answered.set()


def json_text(value: Json) -> str:
    """A value as JSON, to be edited by a person: all of it, with JSON's own escapes for what cannot be seen."""
    return escaped_in_json(_plain_json(value))


def _plain_json(value: Json) -> str:
    return json.dumps(to_extended(value), indent=2, ensure_ascii=False)


def _reason(reason: Any) -> str | None:
    """Why not; None where nothing was written."""
    text = well_formed(reason).strip()[:_MAX_REASON] if isinstance(reason, str) else ""
    return text or None
