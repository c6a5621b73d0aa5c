"""Runs agents of Google's Agent Development Kit as models: `AdkAgent`, with `AdkReader` for the events of a run.

Source: google-adk 2.13 (runners.py, events).
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from google.genai import types

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import add_counts, file_event, usage_of
from toolcall_nb.adapters.google.parts import google_file_event
from toolcall_nb.adapters.openai.messages import to_openai
from toolcall_nb.agents.base import AgentModel, AgentRequest, is_approved
from toolcall_nb.agents.frameworks import Framework
from toolcall_nb.core import events as ev
from toolcall_nb.core.contents import read_contents
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get, question_text
from toolcall_nb.core.transcript import Message, ToolCall
from toolcall_nb.errors import ModelError, UsageError

_APP, _USER = "toolcall_nb", "user"


class AdkAgent(AgentModel):
    """A model that runs an agent with an `InMemoryRunner`. Each turn has a new session with the whole conversation.

    A tool with ``require_confirmation`` is asked about in its card. ADK takes no edited arguments, so they are an
    error. ``options`` are the fields of the `RunConfig`.
    """

    def __init__(self, agent: Any, framework: Framework, options: Mapping[str, Any]) -> None:
        super().__init__(agent, framework, options)
        self._runner: Any = None
        self._session = ""
        self._confirmations: dict[str, str] = {}  # ids of the questions, by the calls that they are about

    async def run(self, request: AgentRequest) -> AsyncIterator[Event]:
        """Yields the events of a turn, or of the rest of a turn that waited for confirmations."""
        from google.adk.agents.run_config import RunConfig, StreamingMode

        confirmations, self._confirmations = self._confirmations, {}
        if request.answers:
            if self._runner is None:
                raise self.lost_run()
            message = _confirmed(confirmations, request.answers)
        else:
            message = await self._start(request.messages)
        reader = AdkReader({call_id for call_id, call in request.answers.items() if not is_approved(call)})
        config = RunConfig(**{"streaming_mode": StreamingMode.SSE, **self.options})
        run = self._runner.run_async(user_id=_USER, session_id=self._session, new_message=message, run_config=config)
        async with aclosing(run) as events:
            async for item in events:
                for event in reader.take(item):
                    yield event
        for event in reader.close():
            yield event
        self._confirmations = reader.confirmations

    async def _start(self, messages: Sequence[Message]) -> types.Content:
        """Makes a session with the conversation, and returns the prompt."""
        from google.adk.events.event import Event as AdkEvent
        from google.adk.runners import InMemoryRunner

        self._runner = InMemoryRunner(agent=self.agent, app_name=_APP)
        service = self._runner.session_service
        session = await service.create_session(app_name=_APP, user_id=_USER)
        self._session = session.id
        names: dict[str, str] = {}
        contents = [_content(message, names) for message in to_openai(messages)]
        if not contents or contents[-1].role != "user":
            raise UsageError("An agent of google-adk needs a prompt.")
        for content in contents[:-1]:
            author = self.agent.name if content.role == "model" else "user"
            await service.append_event(session, AdkEvent(author=author, content=content, invocation_id="earlier"))
        return contents[-1]


def _confirmed(confirmations: Mapping[str, str], answers: Mapping[str, ToolCall]) -> types.Content:
    """Returns a person's answers. Raises `ModelError` for edited arguments."""
    parts = []
    for call_id, question in confirmations.items():
        call = answers.get(call_id)
        if call is not None and is_approved(call) and call.original_input is not MISSING:
            raise ModelError(
                f"google-adk takes no edited arguments for {call.name!r}: approve the call as it is, or deny it."
            )
        response = types.FunctionResponse(id=question, name=CONFIRMATION, response={"confirmed": is_approved(call)})
        parts.append(types.Part(function_response=response))
    return types.Content(role="user", parts=parts)


def _content(message: Mapping[str, Any], names: dict[str, str]) -> types.Content:
    """Returns a message in Google's form. ``names`` holds the names of the calls so far, by id."""
    if message["role"] == "tool":
        call_id = message["tool_call_id"]
        response = types.FunctionResponse(id=call_id, name=names[call_id], response={"result": message["content"]})
        return types.Content(role="user", parts=[types.Part(function_response=response)])
    content = message["content"] or []
    parts = [types.Part(text=content)] if isinstance(content, str) else [_part(part) for part in content]
    for call in message.get("tool_calls", ()):
        function = call["function"]
        names[call["id"]] = function["name"]
        made = types.FunctionCall(id=call["id"], name=function["name"], args=json.loads(function["arguments"]))
        parts.append(types.Part(function_call=made))
    return types.Content(role="model" if message["role"] == "assistant" else "user", parts=parts)


def _part(part: Mapping[str, Any]) -> types.Part:
    match part["type"]:
        case "image_url":
            url = part["image_url"]["url"]
        case "file":
            url = part["file"]["file_data"]
        case "input_audio":
            url = f"data:audio/{part['input_audio']['format']};base64,{part['input_audio']['data']}"
        case _:
            return types.Part(text=part["text"])
    if not url.startswith("data:"):
        return types.Part(file_data=types.FileData(file_uri=url))
    head, _, data = url.removeprefix("data:").partition(",")
    return types.Part(inline_data=types.Blob(mime_type=head.partition(";")[0], data=b64decode(data)))


# The events of a run ----------------------------------------------------------------------------------------

CONFIRMATION = "adk_request_confirmation"
"""The name of the call by which ADK asks whether another call may run."""

_USAGE = {
    "inputTokens": "promptTokenCount",
    "outputTokens": ("candidatesTokenCount", "thoughtsTokenCount"),
    "reasoningTokens": "thoughtsTokenCount",
}


class AdkReader:
    """Reads one run. ``confirmations`` are the ids of ADK's questions, by the calls that they are about.

    ``denied`` are the calls that a person did not allow.
    """

    def __init__(self, denied: Collection[str] = ()) -> None:
        self.confirmations: dict[str, str] = {}
        self._denied = denied
        self._counts: Counter[str] = Counter()  # of the calls, by their ids
        self._message = Assembler()
        self._streamed = False
        self._usage: list[Mapping[str, int]] = []

    def take(self, event: Any) -> list[Event]:
        """Returns the events of one event of ADK. A reply comes in partial events, and then whole."""
        is_partial, events = bool(event.partial), list[Event]()
        for part in (event.content.parts or ()) if event.content is not None else ():
            events += self._part(part, is_partial)
        if event.error_message and not is_partial:
            text = f"The model ended the reply with an error ({event.error_code}): {event.error_message}"
            events += self._message.other(ev.Error(text))
        if not is_partial:
            self._streamed = False
            usage = usage_of(as_mapping(as_json_value(event.usage_metadata)), _USAGE)
            self._usage += [usage] if usage else []
            events += self._end_reply(event, usage) if event.content and event.content.role == "model" else []
            events += self._message.end_block()
        return events

    def _end_reply(self, event: Any, usage: Object) -> list[Event]:
        """Ends the reply of an agent, which another one may follow: `transfer_to_agent` hands over to it."""
        model = getattr(event, "model_version", None)
        return self._message.other(ev.FinishStep(agent=event.author, model=model, usage=usage or None))

    def close(self) -> list[Event]:
        """Returns the closing events, with the usage of the run."""
        if self._usage:
            self._message.metadata["usage"] = add_counts(self._usage)
        return self._message.close()

    def _part(self, part: Any, is_partial: bool) -> list[Event]:
        if part.text:
            if self._streamed and not is_partial:
                return []
            self._streamed = self._streamed or is_partial
            return self._message.reasoning(part.text) if part.thought else self._message.text(part.text)
        if part.function_call is not None and not is_partial:
            return self._call(part.function_call)
        if part.function_response is not None:
            return self._result(part.function_response)
        if part.inline_data is not None and not is_partial:
            return self._message.other(file_event(part.inline_data.mime_type, part.inline_data.data))
        return []

    def _call(self, call: Any) -> list[Event]:
        arguments = as_mapping(as_json_value(call.args))
        if call.name == CONFIRMATION:
            call_id = get(as_mapping(arguments.get("originalFunctionCall")), "id", str)
            if call_id is None:
                return []
            if self._counts[call_id] > 1:
                raise AgentModel.ambiguous_question()
            self.confirmations[call_id] = call.id
            hint = question_text(arguments.get("toolConfirmation"))
            request = ev.ToolApprovalRequest(call_id, call_id, message=hint, asked_by="agent", rule="confirmation")
            return self._message.other(request)
        self._counts[call.id] += 1
        key = (call.id, self._counts[call.id])
        return [*self._message.begin_call(key, call.id, call.name), *self._message.end_call(key, dict(arguments))]

    def _result(self, result: Any) -> list[Event]:
        if result.id in self.confirmations:
            return []  # it says that a confirmation is needed
        if not self._message.knows(result.id):  # of a call that waited: it began in the reply before
            begun = self._message.begin_call(result.id, result.id, result.name)
            return [*begun, *self._message.end_call(result.id, {}), *self._result(result)]
        response = as_mapping(as_json_value(result.response))
        if result.id in self._denied:
            return self._message.outcome(result.id, ev.ToolOutputDenied(result.id))
        contents = read_contents(result.parts, google_file_event).contents
        if response.keys() == {"error"}:
            return self._message.failure(result.id, str(response["error"]), contents=contents)
        output = response["result"] if response.keys() == {"result"} else dict(response)
        return self._message.output(result.id, output, contents=contents)
