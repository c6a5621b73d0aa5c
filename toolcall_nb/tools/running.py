"""Running a tool once: every end of it is an `Outcome`, but the user's own interrupt."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.core.events import Json, Object
from toolcall_nb.core.result_text import RESULT_LIMIT, truncate_output
from toolcall_nb.tools.deadlines import Alarm, Deadline
from toolcall_nb.tools.failures import ToolFailed
from toolcall_nb.tools.figures import figure_of
from toolcall_nb.tools.parameters import WrongArguments
from toolcall_nb.tools.printing import Printout, listening
from toolcall_nb.tools.progress import Preliminary, Tell
from toolcall_nb.tools.results import forms
from toolcall_nb.tools.tracebacks import own_frames, traceback_text
from toolcall_nb.tools.values import MAX_TEXT, cut_text, json_value
from toolcall_nb.tools.workers import in_worker, is_async
from toolcall_nb.tools.yields import Step, drain

__all__ = ["PATIENCE", "Binding", "Outcome", "error_text", "run"]

PATIENCE = 10.0
"""Seconds that a value is given to become an output and a display."""


class Binding(Protocol):
    """What knows the parameters of a tool, as `toolcall_nb.tools.schema.Signature` does."""

    def bind(self, arguments: Json) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments to call with. Raises `WrongArguments`, which names each wrong one."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How one run of a tool ended.

    ``output`` is the JSON form of ``value``, what the function returned; ``display`` is what a person sees of it, a
    MIME bundle, and ``seen`` what the model is told, each None where the output says it all. ``arguments`` is what
    the function was called with, as JSON: paths are absolute, for one.

    After a failure ``error`` is its text, ``exception`` what was raised, with the tool's own frames, and
    ``traceback`` their text; ``timed_out`` says that the time was over, ``wrong_input`` that the function was not
    called. ``output`` is then what a `ToolFailed` brings, or None.
    """

    value: Any = None
    output: Json = None
    display: Object | None = None
    seen: str | None = None
    error: str | None = None
    exception: BaseException | None = None
    traceback: str | None = None
    wrong_input: bool = False
    arguments: Json = None
    timed_out: bool = False


def run(
    function: Callable[..., Any],
    signature: Binding,
    arguments: Json,
    tell: Tell | None = None,
    *,
    timeout: float | None = None,
    limit: int = RESULT_LIMIT,
    whole: str = "",
) -> Outcome:
    """Check the arguments, call the function, wait for it. Only `KeyboardInterrupt` gets out.

    ``tell`` gets what it prints, displays and yields. ``timeout`` is in seconds; ``limit`` is how many characters of
    the output the model is told. A positional-only argument is told as it was given. ``whole`` says where the value is
    kept, for what is left out of the output.
    """
    try:
        positional, named = signature.bind(arguments)
    except WrongArguments as error:
        return Outcome(error=str(error), exception=error, wrong_input=True)
    called_with = {key: json_value(named.get(key, value)) for key, value in arguments.items()}
    deadline = Deadline(timeout)
    with listening(tell) as printout:
        try:
            value = _call(lambda: function(*positional, **named), _stepper(printout), deadline)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: a tool must not end the kernel
            failure = replace(_failure(error), arguments=called_with, timed_out=error is deadline.missed)
            if printout is None:
                return failure
            printout.show_open_figures()
            return failure if failure.output is None else replace(failure, display=printout.end(None))
        if printout is not None:
            printout.show_open_figures(but=figure_of(value))
        return _success(value, called_with, limit, printout, whole)


def error_text(error: BaseException) -> str:
    """``ValueError: message``, or the name alone where there is no message; a `ToolFailed` says its own text."""
    name = type(error).__name__
    try:
        message = str(error).strip()
    except Exception:  # an exception's own __str__ may raise
        message = ""
    text = (message or name) if issubclass(type(error), ToolFailed) else f"{name}: {message}" if message else name
    return cut_text(text, MAX_TEXT)


def _call(body: Callable[[], Any], step: Step, deadline: Deadline) -> Any:
    """The value of a call: in the main thread where this is it, else in one that can be left behind."""
    if threading.current_thread() is not threading.main_thread():
        return in_worker(body, step, deadline)
    alarm = Alarm(deadline)

    def here() -> Any:
        value = body()
        if inspect.isgenerator(value) and not is_async(value):
            return drain(value, step, lambda: alarm.fired)
        return value

    value = alarm.during(here)
    return in_worker(lambda: value, step, deadline) if is_async(value) else value


def _stepper(printout: Printout | None) -> Step:
    if printout is None:
        return lambda value: None
    return lambda value: printout.tell(Preliminary(json_value(value)))


def _success(value: Any, called_with: Json, limit: int, printout: Printout | None, whole: str) -> Outcome:
    output, display = _forms(value, whole, max(limit, MAX_TEXT))
    if printout is not None:
        display = printout.end(display)
    return Outcome(
        value=value, output=output, display=display, seen=truncate_output(output, limit), arguments=called_with
    )


def _forms(value: Any, whole: str, max_text: int) -> tuple[Json, Object | None]:
    """The output and the display of a value; in words where an object takes too long to give them."""
    if value is None or type(value) in (bool, int, float, str):
        return forms(value, whole, max_text)
    deadline = Deadline(PATIENCE)
    try:
        found: tuple[Json, Object | None] = _call(lambda: forms(value, whole, max_text), lambda _: None, deadline)
        return found
    except TimeoutError:
        there = f", it is in {whole}" if whole else ""
        return f"<{type(value).__name__}: it takes more than {PATIENCE:g} s to show{there}>", None


def _failure(error: BaseException) -> Outcome:
    try:
        error.__traceback__ = own_frames(error.__traceback__)
        trace = None if isinstance(error, ToolFailed) else traceback_text(error)
        output = json_value(error.output) if isinstance(error, ToolFailed) else None
    except Exception:  # an exception that does not even let itself be asked
        trace = output = None
    return Outcome(error=error_text(error), exception=error, traceback=trace, output=output)
