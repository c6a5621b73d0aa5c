"""Runs agents of smolagents as models: `SmolagentsAgent`, with `StepReader` for the steps of a run.

Source: smolagents 1.26 (agents.py, memory.py).
"""

from __future__ import annotations

import contextvars
import json
import queue
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any

from PIL import Image
from rich.console import Console
from smolagents.agents import MultiStepAgent
from smolagents.memory import ActionStep, MemoryStep, TaskStep, ToolCall
from smolagents.monitoring import Timing

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import add_counts, file_event
from toolcall_nb.adapters.nesting import RunSteps, call_path, with_paths
from toolcall_nb.adapters.openai.messages import to_openai
from toolcall_nb.agents.base import AgentModel, AgentRequest
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_json_value
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.results.result import result_contents

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
        agent.step_callbacks = _Callbacks(callbacks, lambda step: items.put((step, name)))
    try:
        yield
    finally:
        agent.logger.console, agent.step_callbacks, agent.stream_outputs = console, callbacks, streams


class _Callbacks:
    """The callbacks of an agent, extended by ``report``."""

    def __init__(self, callbacks: Any, report: Callable[[Any], None]) -> None:
        self._callbacks = callbacks
        self._report = report

    def callback(self, step: Any, **options: Any) -> None:
        self._callbacks.callback(step, **options)
        self._report(step)


# History


def _history(messages: Sequence[Message]) -> tuple[list[MemoryStep], str, list[Image.Image]]:
    """Returns the steps of the conversation so far, and the prompt with its images."""
    written = to_openai(messages)
    last = next((index for index in reversed(range(len(written))) if written[index]["role"] == "user"), None)
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
                calls = [
                    ToolCall(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
                    for call in message.get("tool_calls", ())
                ]
                output, number = message["content"] or None, len(steps) + 1
                steps.append(ActionStep(number, Timing(0.0, 0.0), tool_calls=calls or None, model_output=output))
            case "tool" if isinstance(steps[-1], ActionStep):
                observed = [steps[-1].observations, message["content"]]
                steps[-1].observations = "\n".join(filter(None, observed))
    return steps, *_content(prompt)


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


# The steps of a run -----------------------------------------------------------------------------------------

_FINAL = "final_answer"
"""The tool by which an agent gives its answer. It is shown as text."""


_OF_STEPS = frozenset({"ChatMessageStreamDelta", "ToolCall", "ToolOutput", "ActionStep", "PlanningStep"})
"""The items that belong to a step. An ActionOutput is repeated by the step."""


class StepReader:
    """Reads one run. A step of a managed agent is nested in the open call with its name, or else in the last one."""

    def __init__(self) -> None:
        self._message = Assembler()
        self._step = 0
        self._has_text = False  # of this step
        self._waiting: dict[str, list[Any]] = {}  # keys of this step's calls that have not started, by id
        self._running: dict[str, list[Any]] = {}  # keys of this step's calls that have started, by id
        self._open: dict[str, str] = {}  # names of the calls that have not ended, by id
        self._nested: dict[str, tuple[StepReader, RunSteps]] = {}  # by the calls that run the managed agents
        self._end: ev.FinishStep | None = None  # of the step that is complete
        self._usage: list[Mapping[str, int]] = []

    def take(self, item: Any, agent: str | None = None) -> list[Event]:
        """Returns the events of one item, or of a step of a managed agent."""
        if agent is not None:
            parent = self._call_of(agent)
            if parent is None:
                return []
            if parent not in self._nested:
                self._nested[parent] = StepReader(), RunSteps(agent, parent)
            reader, steps = self._nested[parent]
            return [*steps.events_of(with_paths(reader.take(item), parent))]
        kind = type(item).__name__
        if kind == "FinalAnswerStep":
            return self._answer(item.output)
        return [*self._next_step(), *self._step_events(kind, item)] if kind in _OF_STEPS else []

    def _step_events(self, kind: str, item: Any) -> list[Event]:
        match kind:
            case "ChatMessageStreamDelta":
                return self._piece(item)
            case "ToolCall":
                return self._call(item)
            case "ToolOutput":
                return self._output(item)
            case "ActionStep":
                return self._whole(item)
            case "PlanningStep":
                plan = [] if self._has_text else self._message.reasoning(item.plan, (self._step, "plan"))
                return [*plan, *self._end_step(item)]
        return []

    def _call_of(self, agent: str) -> str | None:
        """Returns the path of the open call with the agent's name, or else of the last open one."""
        readers = {"": self, **{path: reader for path, (reader, _) in self._nested.items()}}
        calls = {
            call_path(path, call_id): name for path, each in readers.items() for call_id, name in each._open.items()
        }
        named = [path for path, name in calls.items() if name == agent]
        return next(reversed(named or [*calls]), None)

    def close(self) -> list[Event]:
        """Returns the closing events, with the usage of the run."""
        usages = [usage for reader in (self, *(each for each, _ in self._nested.values())) for usage in reader._usage]
        if total := add_counts(usages):
            self._message.metadata["usage"] = total
        nested = [(steps, reader._end) for reader, steps in self._nested.values() if reader._end is not None]
        ends = [event for steps, end in nested for event in steps.events_of([end])]
        last_end = [] if self._end is None else self._message.other(self._end)
        return [*ends, *last_end, *self._message.close()]

    def _piece(self, delta: Any) -> list[Event]:
        events: list[Event] = []
        if delta.content:
            self._has_text = True
            events += self._message.text(delta.content, (self._step, "text"))
        for call in delta.tool_calls or ():
            key, function = (self._step, call.index), call.function
            name = getattr(function, "name", None)
            if name and name != _FINAL and (begun := self._message.begin_call(key, call.id, name)):
                events += begun
                self._waiting.setdefault(call.id, []).append(key)
            events += self._message.arguments(key, str(getattr(function, "arguments", None) or ""))
        return events

    def _call(self, call: Any) -> list[Event]:
        if call.name == _FINAL:
            return []
        waiting, running = self._waiting.get(call.id), self._running.setdefault(call.id, [])
        key = waiting.pop(0) if waiting else (self._step, call.id, len(running))
        running.append(key)
        arguments = {"code": call.arguments} if isinstance(call.arguments, str) else as_json_value(call.arguments)
        begun = self._message.begin_call(key, call.id, call.name)
        own_id = self._message.id_of(key) or call.id
        self._open[own_id] = call.name
        return [*begun, *self._message.end_call(key, arguments), ev.ToolExecution(own_id, "running")]

    def _output(self, result: Any) -> list[Event]:
        own_ids = [self._message.id_of(key) for key in self._running.get(result.id, ())]
        own_id = next((own_id for own_id in own_ids if own_id in self._open), None)
        if own_id is None:
            return []
        self._open.pop(own_id, None)
        raw = result.output
        is_json = isinstance(raw, bool | int | float | list | dict | None)
        contents = result_contents(raw if isinstance(raw, list) else [raw])
        return self._message.output(own_id, as_json_value(raw) if is_json else result.observation, contents=contents)

    def _whole(self, step: Any) -> list[Event]:
        """Reads a complete step: its text if it was not streamed, and what became of its calls."""
        events: list[Event] = []
        text = step.model_output
        if isinstance(text, str) and not self._has_text:
            events += self._message.text(text, (self._step, "text"))
        written_calls = getattr(getattr(step, "model_output_message", None), "tool_calls", None) or ()
        calls = [ToolCall(call.function.name, call.function.arguments, call.id) for call in written_calls]
        for call in step.tool_calls or calls:  # a step that failed has them only in the model's message
            events += self._call(call) if call.id not in self._running else []
        for own_id in self._open:
            if step.error is not None:
                events += self._message.failure(own_id, str(step.error))
            else:
                events += self._message.output(own_id, step.observations)
        if step.error is not None and not self._open:
            events += self._message.other(ev.Data("step-error", str(step.error)))
        self._open.clear()
        return [*events, *self._end_step(step)]

    def _answer(self, output: Any) -> list[Event]:
        if type(output).__name__ == "AgentImage":
            data = BytesIO()
            output.to_raw().save(data, "PNG")
            return self._message.other(file_event("image/png", data.getvalue()))
        value = output if isinstance(output, str) else as_json_value(output)
        return self._message.text(str(value), (self._step, "answer"))

    def _end_step(self, step: Any) -> list[Event]:
        usage = None
        if step.token_usage is not None:
            usage = {"inputTokens": step.token_usage.input_tokens, "outputTokens": step.token_usage.output_tokens}
            self._usage.append(usage)
        self._step, self._has_text, self._waiting, self._running = self._step + 1, False, {}, {}
        self._end = ev.FinishStep(usage=usage)
        return self._message.end_block()

    def _next_step(self) -> list[Event]:
        """Ends a complete step, since another one begins. The answer, which is not a step, belongs to the last one."""
        end, self._end = self._end, None
        return [] if end is None else [*self._message.other(end), ev.StartStep()]
