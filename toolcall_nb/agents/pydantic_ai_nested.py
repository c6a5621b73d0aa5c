"""Watches agents inside calls of an agent of pydantic-ai (`nested_agents`); streams models that cannot (`streaming`).

Source: pydantic_ai/agent/__init__.py (``Agent.iter``, which each run goes through), version 2.68. While a run is
watched, ``Agent.iter`` is patched: a run that begins inside a call of a watched run gets a capability that reports its
events. Other runs are as before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, ProcessEventStream
from pydantic_ai.models import CompletedStreamedResponse, Model, StreamedResponse
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

from toolcall_nb.agents.nested_runs import NestedItem, call_path, current_path, inside_call, nested_watcher

_installing = threading.Lock()
_active = 0
_iter: Any = None


@contextmanager
def nested_agents() -> Iterator[None]:
    """Watches runs of agents inside calls within. The run around has the capability `CallPaths`."""
    global _active, _iter
    with _installing:
        _active += 1
        if _active == 1:
            _iter = Agent.iter
            Agent.iter = _watched(_iter)  # type: ignore[method-assign]  # the only place that each run goes through
    try:
        yield
    finally:
        with _installing:
            _active -= 1
            if _active == 0:
                Agent.iter = _iter  # type: ignore[method-assign]


def _watched(before: Any) -> Any:
    """Returns ``Agent.iter`` with a capability that reports the events of a run inside a watched call."""

    @functools.wraps(before)
    def iter(agent: Any, *arguments: Any, **options: Any) -> Any:
        path, watcher = current_path(), nested_watcher()
        model = options.get("model") or agent.model
        if path and watcher is not None and (not isinstance(model, Model) or _can_stream(model)):
            given = options.get("capabilities") or ()
            options["capabilities"] = [*given, CallPaths(), ProcessEventStream(_reporter(path, watcher))]
        return before(agent, *arguments, **options)

    return iter


class CallPaths(AbstractCapability[Any]):
    """Marks what runs in each call of a run as the inside of that call."""

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Runs the tool of a call."""
        with inside_call(call_path(current_path(), call.tool_call_id)):
            return await handler(args)


def _reporter(path: str, watcher: Callable[[Any], None]) -> Callable[[Any, AsyncIterable[Any]], Awaitable[None]]:
    """Returns a function that reports the events of the run inside the call with this path."""

    async def report(_: Any, events: AsyncIterable[Any]) -> None:
        async for event in events:
            watcher(NestedItem(path, event))

    return report


# Models that do not stream ------------------------------------------------------------------------------------


def streaming(model: Any) -> Any:
    """Returns the model, or one that streams the whole replies of a model that cannot stream."""
    return _WholeReplies(model) if isinstance(model, Model) and not _can_stream(model) else model


def _can_stream(model: Any) -> bool:
    if isinstance(model, FunctionModel):
        return model.stream_function is not None
    return type(model).request_stream is not Model.request_stream


class _WholeReplies(WrapperModel):
    """A model whose stream is the whole reply of another model."""

    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncGenerator[StreamedResponse]:
        """Asks for a whole reply and streams it."""
        response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)
