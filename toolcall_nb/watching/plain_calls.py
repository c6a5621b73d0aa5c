"""Shows plain calls of functions decorated with ``@tool`` while a watch goes on: `PlainCalls`.

The decorator returns the function itself, so there is no wrapper to see a call. For the time of a watch, the function's
code is replaced by code that calls a hook; the hook makes a span and runs a copy of the function with the real code.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from opentelemetry import trace

from toolcall_nb.chat.span_content import recorded_value
from toolcall_nb.tools import Tool
from toolcall_nb.tools.collection import decorated_functions, decoration_listeners
from toolcall_nb.tools.results.json_values import to_json_value
from toolcall_nb.tools.results.tracebacks import own_frames, traceback_text
from toolcall_nb.watching.private_spans import PRIVATE_PROVIDER
from toolcall_nb.watching.span_store import span_key

_FOLDER = os.path.dirname(__file__) + os.sep
_OF_CONTEXTS = os.path.dirname(trace.__file__) + os.sep
_KINDS = (inspect.CO_COROUTINE, inspect.CO_ASYNC_GENERATOR, inspect.CO_GENERATOR)
_BODIES: Mapping[int, tuple[str, ...]] = {
    inspect.CO_COROUTINE: (" async def inner(*_args, **_named):", "  return await _hook(*_args, **_named)"),
    inspect.CO_ASYNC_GENERATOR: (
        " async def inner(*_args, **_named):",
        "  async for _item in _hook(*_args, **_named): yield _item",
    ),
    inspect.CO_GENERATOR: (" def inner(*_args, **_named):", "  return (yield from _hook(*_args, **_named))"),
    0: (" def inner(*_args, **_named):", "  return _hook(*_args, **_named)"),
}
"""The code that takes the place of a function's own, by the flag of the function's kind.

The constant ``'hook'`` becomes the hook.
"""


class PlainCalls:
    """Replaces the code of decorated functions from `begin` to `end`."""

    def __init__(self) -> None:
        self._replaced: dict[int, tuple[FunctionType, CodeType]] = {}
        self._signed: list[FunctionType] = []

    def begin(self) -> None:
        """Replaces the code of all decorated functions, and of each that is decorated until `end`."""
        for function in decorated_functions():
            self._replace(*function)
        decoration_listeners.append(self._replace)

    def end(self) -> None:
        """Gives the functions their own code back."""
        decoration_listeners.remove(self._replace)
        for function, code in self._replaced.values():
            function.__code__ = code
        for function in self._signed:
            vars(function).pop("__signature__", None)
        self._replaced.clear()
        self._signed.clear()
        _claimed.clear()

    def _replace(self, function: Callable[..., Any], tool: Tool) -> None:
        if type(function) is not FunctionType or id(function) in self._replaced:
            return
        code = function.__code__
        hook = _Hook(function, tool)
        if "__signature__" not in vars(function) and not hasattr(function, "__wrapped__"):
            function.__signature__ = hook.signature  # type: ignore[attr-defined]  # inspect reads it from the function
            self._signed.append(function)
        self._replaced[id(function)] = function, code
        function.__code__ = _calling_code(code, hook)


class _Hook:
    """Runs a copy of a function inside a span. Pickled, it is the function's copy without the hook."""

    def __init__(self, function: FunctionType, tool: Tool) -> None:
        self._name = tool.name
        self.signature = inspect.signature(function)
        self._original = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self._original.__kwdefaults__ = function.__kwdefaults__
        self._original.__qualname__, self._original.__module__ = function.__qualname__, function.__module__
        flags = function.__code__.co_flags
        self.kind = next((kind for kind in _KINDS if flags & kind), 0)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Calls the function. Its span is current while it works, but for generators, which wait in between."""
        if _claim(self._name):
            return self._original(*args, **named)
        match self.kind:
            case inspect.CO_COROUTINE:
                return self._await(args, named)
            case inspect.CO_GENERATOR:
                return self._generate(args, named)
            case inspect.CO_ASYNC_GENERATOR:
                return self._generate_async(args, named)
        with self._span(args, named) as span:
            return _noted(span, self._original(*args, **named))

    def __reduce__(self) -> Any:
        return _same, (self._original,)

    async def _await(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        with self._span(args, named) as span:
            return _noted(span, await self._original(*args, **named))

    def _generate(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Generator[Any, Any, Any]:
        span = self._start(args, named)
        with _ended(span):
            return _noted(span, (yield from self._original(*args, **named)))

    async def _generate_async(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> AsyncGenerator[Any, Any]:
        with _ended(self._start(args, named)):
            async for item in self._original(*args, **named):
                yield item

    @contextmanager
    def _span(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Iterator[trace.Span]:
        span = self._start(args, named)
        with _ended(span), trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span

    def _start(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> trace.Span:
        try:
            arguments: Any = dict(self.signature.bind(*args, **named).arguments)
        except TypeError:  # which the call of the function raises, too
            arguments = {"args": args, **named}
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": self._name,
            "gen_ai.tool.call.arguments": recorded_value(to_json_value(arguments)),
        }
        span = PRIVATE_PROVIDER.get_tracer("toolcall_nb").start_span(
            f"execute_tool {self._name}", attributes=attributes
        )
        _claimed.add(span_key(span))
        return span


def _same(value: Any) -> Any:
    return value


def _noted(span: trace.Span, value: Any) -> Any:
    """Notes a result, and returns it."""
    result = to_json_value(value)
    if result is not None:
        span.set_attribute("gen_ai.tool.call.result", recorded_value(result))
    return value


_claimed: set[str] = set()
"""The spans whose call has run: the next call inside of one is another."""


def _claim(name: str) -> bool:
    """Whether the current span is that of this very call: a chat or a framework made it just before."""
    current = trace.get_current_span()
    if not current.is_recording() or getattr(current, "name", "") not in (name, f"execute_tool {name}"):
        return False
    key = span_key(current)
    if key in _claimed:
        return False
    _claimed.add(key)
    return True


@contextmanager
def _ended(span: trace.Span) -> Iterator[None]:
    """Ends a span, with the exception that is raised meanwhile; its traceback begins at the function's own frame."""
    try:
        yield
    except BaseException as error:
        whole = error.__traceback__
        error.__traceback__ = own_frames(whole, _FOLDER, _OF_CONTEXTS)
        text = traceback_text(error) or ""
        error.__traceback__ = whole
        attributes = {"exception.type": type(error).__name__, "exception.message": str(error)}
        span.add_event("exception", {**attributes, "exception.stacktrace": text})
        span.set_status(trace.StatusCode.ERROR, str(error))
        raise
    finally:
        span.end()


def _calling_code(code: CodeType, hook: _Hook) -> CodeType:
    """Returns code that calls the hook. Its free variables are those of ``code``, as Python demands."""
    start, body = _BODIES[hook.kind]
    names = code.co_freevars
    assignments = [f" {name} = None" for name in names]
    uses = [f"  if 0: {', '.join(names)}"] if names else []
    scope: dict[str, Any] = {}
    exec("\n".join(["def outer():", *assignments, start, *uses, "  _hook = 'hook'", body, " return inner"]), scope)
    made: CodeType = scope["outer"]().__code__
    return made.replace(
        co_consts=tuple(hook if const == "hook" else const for const in made.co_consts),
        co_filename=code.co_filename,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
    )
