"""All faults for tests: those of a model's stream and connection, and those at a chosen request or tool call.

model = with_faults(MockModel(), faults.cut_bytes(3), faults.on(request=2, status=429))

with faults.injected(chat, faults.on(request=2, status=429), faults.on(tool="sql", raises=TimeoutError())):
    chat.send("How many rows?")

Several faults are applied in order, the first nearest to the model. `on` plans a fault at a chosen request or call,
`injected` puts several into a chat.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, overload

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.chat import Chat
from toolcall_nb.core.events import MISSING, Event
from toolcall_nb.errors import UsageError
from toolcall_nb.models.base import Fault, faulty, with_faults
from toolcall_nb.testing.stream_faults import (
    abort,
    cut,
    cut_bytes,
    disconnect,
    disconnect_at,
    duplicate_id,
    malformed_call,
    missing_id,
    random_cuts,
    slow,
    stall,
    truncate,
)
from toolcall_nb.tools import Registry, Tool, ToolSource, as_tools

__all__ = [
    "Fault",
    "FaultNeverHappened",
    "HttpStatusError",
    "RequestFault",
    "ToolFault",
    "abort",
    "cut",
    "cut_bytes",
    "disconnect",
    "disconnect_at",
    "duplicate_id",
    "faulty",
    "injected",
    "malformed_call",
    "missing_id",
    "on",
    "random_cuts",
    "slow",
    "stall",
    "tools_with_faults",
    "truncate",
    "with_faults",
]

_Raised: TypeAlias = BaseException | type[BaseException]


class HttpStatusError(Exception):
    """An answer of a provider with an error status, as the exceptions of SDKs hold it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str) -> None:
        super().__init__(f"HTTP {status}: {body}")
        self.status_code, self.headers, self.body = status, dict(headers), body


class FaultNeverHappened(AssertionError):
    """A fault was planned for a request or a call that never came, so the test tested nothing."""


class RequestFault:
    """A fault of one request to a model. It counts the requests itself, so each model needs its own."""

    def __init__(self, request: int, fault: Fault, name: str) -> None:
        self._request, self._fault, self._name = request, fault, name
        self.count = 0

    def __repr__(self) -> str:
        return self._name

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream of the next request, which is faulty if it is the chosen one."""
        self.count += 1
        return self._fault.apply(events) if self.count == self._request else events

    @property
    def happened(self) -> bool:
        """Whether the chosen request came."""
        return self.count >= self._request


class ToolFault:
    """A fault of one call of a tool, or of all its calls. It counts the calls itself."""

    def __init__(self, tool: str, call: int | None, effect: Callable[[], Any], name: str) -> None:
        self.tool, self._call, self._effect, self._name = tool, call, effect, name
        self.count = 0

    def __repr__(self) -> str:
        return self._name

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that is faulty at the chosen call and else calls ``function``."""

        def faulty_function(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            result = self._effect() if self._call in (None, self.count) else MISSING
            return function(*arguments, **named) if result is MISSING else result

        return faulty_function

    @property
    def happened(self) -> bool:
        """Whether the chosen call came; without a choice, any call."""
        return self.count >= (self._call or 1)


# For a request, or for a tool; the docstring is that of the function below.
@overload
def on(
    *,
    request: int,
    status: int | None = None,
    retry_after: float | None = None,
    body: str = ...,
    raises: _Raised | None = None,
    seconds: float | None = None,
    fault: Fault | None = None,
    sleep: Callable[[float], None] = ...,
) -> RequestFault: ...


@overload
def on(
    *,
    tool: str,
    call: int | None = None,
    raises: _Raised | None = None,
    returns: Any = ...,
    seconds: float | None = None,
    sleep: Callable[[float], None] = ...,
) -> ToolFault: ...


def on(
    *,
    request: int | None = None,
    tool: str | None = None,
    call: int | None = None,
    status: int | None = None,
    retry_after: float | None = None,
    body: str = "A planned fault.",
    raises: _Raised | None = None,
    returns: Any = MISSING,
    seconds: float | None = None,
    fault: Fault | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> RequestFault | ToolFault:
    """Plans a fault at one request to the model, or at the calls of one tool, both counted from 1.

    A request gets an error ``status`` (with ``retry_after`` and ``body``), or ``raises`` an exception, or waits some
    ``seconds`` before its first event, or has a ``fault`` of this module. A tool ``raises``, ``returns`` another value,
    or waits some ``seconds`` first; ``call`` chooses one of its calls. Raises `UsageError` for any other combination.

    Returns a `RequestFault`, which `with_faults` and ``MockModel(faults=…)`` take, or a `ToolFault`, which
    `tools_with_faults` takes; `injected` takes both.
    """
    options = {"status": status, "raises": raises, "seconds": seconds, "fault": fault}
    effects = {name: value for name, value in options.items() if value is not None}
    if returns is not MISSING:
        effects["returns"] = returns
    chosen = {"request": request, "tool": tool, "call": call, **effects}
    shown_options = [f"{key}={value!r:.60}" for key, value in chosen.items() if value is not None or key == "returns"]
    name = f"on({', '.join(shown_options)})"
    if len(effects) != 1:
        raise UsageError(f"A fault is one of status, raises, returns, seconds and fault, but this is {name}.")
    if tool is not None and request is None and not effects.keys() & {"status", "fault"}:
        _check_number("call", call)
        return ToolFault(tool, call, _effect(raises, returns, seconds, sleep), name)
    if request is not None and tool is None and call is None and "returns" not in effects:
        _check_number("request", request)
        if status is not None:
            headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
            raises = HttpStatusError(status, headers, body)
        return RequestFault(request, fault or _StreamStart(_effect(raises, returns, seconds, sleep)), name)
    raise UsageError(
        f"A fault is on a request (status, raises, seconds, fault) or on a tool (raises, returns, seconds), not {name}."
    )


def _check_number(name: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise UsageError(f"The first {name} is number 1, but got {name}={number!r}.")


def _effect(
    raises: _Raised | None, returns: Any, seconds: float | None, sleep: Callable[[float], None]
) -> Callable[[], Any]:
    def effect() -> Any:
        if raises is not None:
            raise raises
        if seconds is not None:
            sleep(seconds)
        return returns

    return effect


class _StreamStart(Struct, frozen=True):
    """A fault before the first event."""

    effect: Callable[[], Any]

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        self.effect()
        yield from events


def tools_with_faults(tools: ToolSource, *faults: ToolFault) -> Registry:
    """Returns the tools with these faults. Raises `UsageError` for a fault of a tool that is not among them.

    A tool of a cassette cannot have one, since its function does not run in a replay: give the cassette faulty tools.
    """
    registry = tools if isinstance(tools, Registry) else Registry(as_tools(tools))
    changed: dict[str, Tool] = dict(registry)
    for fault in faults:
        if fault.tool not in changed:
            raise UsageError(registry.unknown(fault.tool))
        tool = changed[fault.tool]
        if type(tool).run is not Tool.run:
            raise UsageError(
                f"The tool {fault.tool!r} is one of a cassette. Put the fault into the tool first: "
                "tape.tools(faults.tools_with_faults([…], …))."
            )
        changed[fault.tool] = replace(tool, function=fault.wrap(tool.function))
    return Registry(changed.values())


@contextmanager
def injected(chat: Chat, *faults: Fault | ToolFault) -> Iterator[Chat]:
    """Puts faults into a chat's model and tools until the end of the block.

    Raises `FaultNeverHappened` at the end of a block that raises nothing itself, for a fault of `on` that had no
    occasion.
    """
    # a name of a model, the session's tools, and an agent with the state of its run come back as such
    before = (chat._model, chat._made, chat._agent, chat._tools)
    of_tools = [fault for fault in faults if isinstance(fault, ToolFault)]
    chat.model = with_faults(chat.model, *(fault for fault in faults if not isinstance(fault, ToolFault)))
    chat.tools = tools_with_faults(chat.tools, *of_tools)
    try:
        yield chat
    finally:
        chat._model, chat._made, chat._agent, chat._tools = before
    for fault in faults:
        if isinstance(fault, RequestFault | ToolFault) and not fault.happened:
            what = f"The tool {fault.tool!r} was called" if isinstance(fault, ToolFault) else "The model was asked"
            raise FaultNeverHappened(f"The fault {fault!r} never happened. {what} {fault.count} times.")
