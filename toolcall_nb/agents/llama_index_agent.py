"""Runs LlamaIndex's workflow agents as models: `LlamaIndexAgent`.

Source: llama-index-core 0.14 (agent/workflow) and llama-index-workflows 2.26 (handler.py, events.py).
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from llama_index.core.base.llms.types import (
    AudioBlock,
    ChatMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
)
from workflows.events import HumanResponseEvent, InputRequiredEvent

from toolcall_nb.adapters.openai.messages import to_openai
from toolcall_nb.agents.base import AgentModel, AgentRequest
from toolcall_nb.agents.frameworks import Framework
from toolcall_nb.agents.llama_index_stream import WorkflowReader, event_fields
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_mapping
from toolcall_nb.core.transcript import Message, ToolCall

_YES, _NO = "yes", "no"
_CLOSE_SECONDS = 2.0


class LlamaIndexAgent(AgentModel):
    """A model that runs a `FunctionAgent`, a `ReActAgent`, a `CodeActAgent` or an `AgentWorkflow`.

    The whole conversation is the run's ``chat_history``. An `InputRequiredEvent` is shown as a call with the event's
    fields and the ``response``, "yes", which a person may edit; a denial responds "no". The `HumanResponseEvent` has
    all of these fields. The run waits meanwhile; it is cancelled if another one begins instead.

    ``options`` are those of the agent's ``run``, such as ``max_iterations`` and ``memory``.
    """

    def __init__(self, agent: Any, framework: Framework, options: Mapping[str, Any]) -> None:
        super().__init__(agent, framework, options)
        self._handler: Any = None
        self._left: AsyncGenerator[Any, None] | None = None
        self._reader = WorkflowReader(())
        self._asked: dict[str, InputRequiredEvent] = {}

    async def run(self, request: AgentRequest) -> AsyncIterator[Event]:
        """Yields the events of a run, or of the rest of a run that waited for a person."""
        if request.answers:
            for event in self._respond(request.answers):
                yield event
        else:
            await self._cancel()
            self._start(request.messages)
        is_waiting = False
        try:
            async for item in _left(self._left):
                if isinstance(item, InputRequiredEvent):
                    is_waiting = True
                    for event in self._ask(item):
                        yield event
                    return
                for event in self._reader.take(item):
                    yield event
            for event in [*self._reader.result(await self._handler), *self._reader.close()]:
                yield event
        finally:
            if not is_waiting:
                await self._cancel()

    def _start(self, messages: Sequence[Message]) -> None:
        history = [_chat_message(message) for message in to_openai(messages)]
        self._handler = self.agent.run(chat_history=history, **self.options)
        self._left = self._handler.stream_events()
        self._reader = WorkflowReader(getattr(self.agent, "agents", None) or (self.agent.name,))
        self._asked = {}

    async def _cancel(self) -> None:
        """Cancels the run, if there is one."""
        handler, self._handler, self._left = self._handler, None, None
        if handler is not None and not handler.is_done():
            with suppress(Exception):
                await handler.cancel_run(timeout=_CLOSE_SECONDS)

    # A person

    def _ask(self, event: InputRequiredEvent) -> list[Event]:
        call_id = f"input-{len(self._asked) + 1}"
        self._asked[call_id] = event
        given = {**event_fields(event), "response": _YES}
        about: Object | None = {"parent": parent} if (parent := self._reader.running) else None
        return [
            *self._reader.end_block(),
            ev.ToolInputStart(call_id, type(event).__name__, tool_metadata=about),
            ev.ToolInputAvailable(call_id, type(event).__name__, given, tool_metadata=about),
            ev.ToolApprovalRequest(call_id, call_id),
        ]

    def _respond(self, answers: Mapping[str, ToolCall]) -> list[Event]:
        found: list[Event] = []
        for call_id, call in answers.items():
            asked = self._asked.get(call_id)
            if asked is None:
                continue
            if self._handler is None:
                raise self.lost_run()
            is_approved = call.approval is not None and bool(call.approval.approved)
            response = as_mapping(call.input).get("response", _YES) if is_approved else _NO
            given = {**as_mapping(call.input), "response": response}
            self._handler.ctx.send_event(HumanResponseEvent(**given))
            end = ev.ToolOutputAvailable(call_id, response) if is_approved else ev.ToolOutputDenied(call_id)
            found.append(end)
        return found


async def _left(events: AsyncGenerator[Any, None] | None) -> AsyncGenerator[Any, None]:
    """Yields what is left of a stream, and leaves it open."""
    while events is not None:
        try:
            item = await anext(events)
        except StopAsyncIteration:
            return
        yield item


def _chat_message(message: Mapping[str, Any]) -> ChatMessage:
    """Returns a message in LlamaIndex's form."""
    content = message.get("content") or []
    blocks: list[ContentBlock] = [TextBlock(text=content)] if isinstance(content, str) else [*map(_block, content)]
    for call in message.get("tool_calls", ()):
        given = json.loads(call["function"]["arguments"])
        name = call["function"]["name"]
        blocks.append(ToolCallBlock(tool_call_id=call["id"], tool_name=name, tool_kwargs=given))
    more = {"tool_call_id": message["tool_call_id"]} if "tool_call_id" in message else {}
    return ChatMessage(role=message["role"], blocks=blocks, additional_kwargs=more)


def _block(part: Mapping[str, Any]) -> ContentBlock:
    match part["type"]:
        case "image_url":
            return ImageBlock(url=part["image_url"]["url"])
        case "input_audio":
            return AudioBlock(audio=b64decode(part["input_audio"]["data"]), format=part["input_audio"]["format"])
        case "file":
            return DocumentBlock(url=part["file"]["file_data"], title=part["file"]["filename"])
    return TextBlock(text=part["text"])
