"""May this call run? Asked in the run's thread, answered by a page in another.

The page is given the arguments as JSON text and sends back the text that it showed. Where that is the text that was
asked with, the call runs with the very values that it had; the text is not read again. Where it is another, a
person has edited it.
"""

from __future__ import annotations

import json
import math
import threading
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeAlias

from toolcall_nb.events import MISSING, Json
from toolcall_nb.json_text import from_extended, to_extended
from toolcall_nb.tools import Decision
from toolcall_nb.transcript import ToolCall
from toolcall_nb.unicode import MAX_LEVELS, well_formed, well_formed_json

__all__ = ["SCOPES", "Form", "Questions", "json_text"]

Form: TypeAlias = dict[str, Any]
"""What a page needs to ask: ``approval``, ``name``, ``text``; ``unseen`` where the card cannot show all that the text
says; and of an answer that was refused ``problem`` and how many ``refused`` there were."""

SCOPES = ("once", "chat", "always")
POLL = 0.1
"""Seconds between looks for a stop."""

_NOT_SHOWN = "The question could not be shown, so the call was denied."
_MAX_REASON = 2_000
_MAX_NAME = 60
_MAX_DIGITS = 4_000  # Python's own limit is a little above
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


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

    def answer(self, message: dict[str, Any]) -> None:
        """What a page says. An answer to nothing that is asked, or to what has been answered, is ignored."""
        approval = message.get("approval")
        with self._lock:
            question = self._open.get(approval) if isinstance(approval, str) else None
            if question is None or question.answered.is_set():
                return
            question.take(message)
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
        self._problem = ""
        self._refused = 0

    def form(self) -> Form:
        form: Form = {"approval": self.approval, "name": self.call.name[:_MAX_NAME], "text": self._text}
        form |= {"unseen": True} if self._text != _plain_json(self._input) else {}
        return form | ({"problem": self._problem, "refused": self._refused} if self._problem else {})

    def take(self, message: dict[str, Any]) -> None:
        """The answer, or what is wrong with it."""
        scope = message.get("scope")
        try:
            if message.get("approved") is not True:
                self._decide(Decision(False, _reason(message.get("reason"))))
            elif scope in SCOPES:
                self._decide(self._approval(message.get("text"), scope))
        except ValueError as error:
            self._problem = str(error)
            self._refused += 1

    def _approval(self, text: Any, scope: Any) -> Decision:
        if text == self._text:
            return Decision(True, scope=scope)
        value = _object(text)
        if json.dumps(value) == json.dumps(self._input):  # only its spaces are others
            return Decision(True, scope=scope)
        return Decision(True, input=value, scope=scope)

    def _decide(self, decision: Decision) -> None:
        self.decision = decision
        self.answered.set()


def json_text(value: Json) -> str:
    """A value as JSON, to be read by a person: all of it, and nothing in it that is not seen as what it is.

    What has no look of its own, or turns the order of the line around (U+202E and the like), is written as an escape.
    """
    return _plain_json(value).translate(_ESCAPES)


def _plain_json(value: Json) -> str:
    return json.dumps(to_extended(value), indent=2, ensure_ascii=False)


class _Escapes(dict[int, str]):
    """A table for `str.translate` that is filled as characters are met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_unseen = unicodedata.category(character) in _UNSEEN and character != "\n"
        self[code] = json.dumps(character)[1:-1] if is_unseen else character
        return self[code]


_ESCAPES = _Escapes()


def _reason(reason: Any) -> str | None:
    """Why not; None where nothing was written."""
    text = well_formed(reason).strip()[:_MAX_REASON] if isinstance(reason, str) else ""
    return text or None


def _object(text: Any) -> dict[str, Json]:
    """Edited arguments; raises `ValueError` with a sentence for who has edited them."""
    if not isinstance(text, str):
        raise ValueError("The arguments did not arrive. Try again.")
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_number, parse_int=_integer, object_pairs_hook=_unique
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise ValueError("These arguments are nested too deep.") from None
    if not isinstance(value, dict):
        raise ValueError("Arguments are a JSON object: { … }.")
    if well_formed_json(value) != value:
        raise ValueError(f"These arguments hold half a character, or are nested deeper than {MAX_LEVELS} levels.")
    restored: dict[str, Json] = from_extended(value)
    return restored


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON.")


def _number(written: str) -> float:
    """What a tool would be given must be what was written."""
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written:.40} is larger than any number here.")
    return number


def _integer(written: str) -> int:
    if len(written) > _MAX_DIGITS:
        raise ValueError(f"A number has {len(written):,} digits; at most {_MAX_DIGITS:,} are read.")
    return int(written)


def _unique(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """An object; two values under one name would leave it open which of them runs."""
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"The name {key!r} is there twice.")
        found[key] = value
    return found
