"""Runs agents of smolagents as models: `SmolagentsAgent`. Source: smolagents 1.26 (agents.py, memory.py)."""

from __future__ import annotations

import contextvars
import json
import queue
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any

from PIL import Image
from rich.console import Console
from smolagents.agents import MultiStepAgent
from smolagents.memory import ActionStep, MemoryStep, TaskStep, ToolCall
from smolagents.monitoring import Timing

from toolcall_nb.adapters.openai.messages import to_openai
from toolcall_nb.agents.base import AgentModel, AgentRequest
from toolcall_nb.agents.smolagents_stream import StepReader
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import UsageError

_CHECK_SECONDS = 0.1
"""After this time a waiting thread checks whether it was interrupted; only the main thread is woken by a signal."""

_CLOSE_SECONDS = 5.0
"""A stopped run may take so long to end its step. Then it is left alone."""

_END = object()


class SmolagentsAgent(AgentModel):
    """A model that runs a `ToolCallingAgent` or a `CodeAgent`, in a thread of its own.

    The agent's memory is made of the conversation before each run. Where the agent's model can stream, it streams. What
    the agent would print is left out. A managed agent's steps are nested in the call that runs it. A run that is
    stopped ends after the step that runs (``agent.interrupt``): smolagents cannot cancel a step.

    ``options`` are those of the agent's ``run``, such as ``max_steps`` and ``additional_args``.
    """

    def run(self, request: AgentRequest) -> Iterator[Event]:
        """Yields the events of a run."""
        steps, prompt, images = _history(request.messages)
        items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._work, items, steps, prompt, images),
            name="toolcall_nb-smolagents",
            daemon=True,
        )
        reader = StepReader()
        thread.start()
        try:
            while (item := _next(items)) is not _END:
                if isinstance(item, BaseException):
                    raise item
                yield from reader.take(*item)
            yield from reader.close()
        finally:
            for agent in _all_agents(self.agent) if thread.is_alive() else ():
                agent.interrupt()
            thread.join(_CLOSE_SECONDS)

    def _work(
        self, items: queue.SimpleQueue[Any], steps: list[MemoryStep], prompt: str, images: list[Image.Image]
    ) -> None:
        """Runs the agent and puts its steps into the queue, each with the name of the managed agent that made it."""
        try:
            with ExitStack() as stack:
                for agent in _all_agents(self.agent):
                    name = None if agent is self.agent else agent.name
                    stack.enter_context(_watched(agent, name, items))
                self.agent.memory.steps = steps
                run = self.agent.run(prompt, stream=True, reset=False, images=images or None, **self.options)
                for step in run:
                    items.put((step, None))
        except BaseException as error:
            items.put(error)
        items.put(_END)


def _next(items: queue.SimpleQueue[Any]) -> Any:
    while True:
        try:
            return items.get(timeout=_CHECK_SECONDS)
        except queue.Empty:
            continue


def _all_agents(agent: Any) -> list[Any]:
    managed = [one for one in agent.managed_agents.values() if isinstance(one, MultiStepAgent)]
    return [agent, *(inner for one in managed for inner in _all_agents(one))]


@contextmanager
def _watched(agent: Any, name: str | None, items: queue.SimpleQueue[Any]) -> Iterator[None]:
    """Lets an agent stream and print nothing; puts the steps of a managed agent, which has a name, into the queue."""
    console, callbacks, streams = agent.logger.console, agent.step_callbacks, getattr(agent, "stream_outputs", False)
    agent.logger.console = Console(quiet=True, force_jupyter=False)  # in Jupyter, `Live` would display a widget
    if hasattr(agent.model, "generate_stream"):
        agent.stream_outputs = True
    if name is not None:
        agent.step_callbacks = _Told(callbacks, lambda step: items.put((step, name)))
    try:
        yield
    finally:
        agent.logger.console, agent.step_callbacks, agent.stream_outputs = console, callbacks, streams


class _Told:
    """The callbacks of an agent, extended by one."""

    def __init__(self, callbacks: Any, tell: Any) -> None:
        self._callbacks = callbacks
        self._tell = tell

    def callback(self, step: Any, **about: Any) -> None:
        """Calls all of them for a step."""
        self._callbacks.callback(step, **about)
        self._tell(step)


# History


def _history(messages: Sequence[Message]) -> tuple[list[MemoryStep], str, list[Image.Image]]:
    """Returns the steps of the conversation so far, and the prompt with its images."""
    written = to_openai(messages)
    last = next((place for place in reversed(range(len(written))) if written[place]["role"] == "user"), None)
    if last is None:
        raise UsageError("An agent of smolagents needs a prompt.")
    earlier, prompt = [*written[:last], *written[last + 1 :]], written[last]
    steps: list[MemoryStep] = []
    for message in earlier:
        match message["role"]:
            case "system" | "user":
                text, images = _content(message)
                steps.append(TaskStep(text, images or None))
            case "assistant":
                steps.append(_action(len(steps) + 1, message))
            case "tool" if isinstance(steps[-1], ActionStep):
                observed = [steps[-1].observations, message["content"]]
                steps[-1].observations = "\n".join(filter(None, observed))
    return steps, *_content(prompt)


def _action(number: int, message: Mapping[str, Any]) -> ActionStep:
    calls = [
        ToolCall(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
        for call in message.get("tool_calls", ())
    ]
    text = message["content"]
    return ActionStep(number, Timing(0.0, 0.0), tool_calls=calls or None, model_output=text or None)


def _content(message: Mapping[str, Any]) -> tuple[str, list[Image.Image]]:
    """Returns the text and the images of a message. Raises `UsageError` for other files."""
    content = message["content"]
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [part["text"] for part in parts if part["type"] == "text"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    if len(texts) + len(urls) < len(parts) or not all(url.startswith("data:") for url in urls):
        raise UsageError(
            "An agent of smolagents takes only images as files, and only their content, not their address."
        )
    return "\n\n".join(texts), [Image.open(BytesIO(b64decode(url.partition(",")[2]))) for url in urls]
