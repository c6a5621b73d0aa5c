"""`AdkReader` reads the events of a run of Google's Agent Development Kit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import add_counts, file_event, usage_of
from toolcall_nb.agents.base import AgentModel
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get

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
        is_partial, found = bool(event.partial), list[Event]()
        for part in (event.content.parts or ()) if event.content is not None else ():
            found += self._part(part, is_partial)
        if event.error_message and not is_partial:
            text = f"The model ended the reply with an error ({event.error_code}): {event.error_message}"
            found += self._message.other(ev.Error(text))
        if not is_partial:
            self._streamed = False
            found += self._message.end_block()
            if usage := usage_of(as_mapping(as_json_value(event.usage_metadata)), _USAGE):
                self._usage.append(usage)
        return found

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
        given = as_mapping(as_json_value(call.args))
        if call.name == CONFIRMATION:
            asked = get(as_mapping(given.get("originalFunctionCall")), "id", str)
            if asked is None:
                return []
            if self._counts[asked] > 1:
                raise AgentModel.ambiguous_question()
            self.confirmations[asked] = call.id
            return self._message.other(ev.ToolApprovalRequest(asked, asked))
        self._counts[call.id] += 1
        key = (call.id, self._counts[call.id])
        return [*self._message.begin_call(key, call.id, call.name), *self._message.end_call(key, dict(given))]

    def _result(self, result: Any) -> list[Event]:
        if result.id in self.confirmations:
            return []  # it says that a confirmation is needed
        if not self._message.knows(result.id):  # of a call that waited: it began in the reply before
            begun = self._message.begin_call(result.id, result.id, result.name)
            return [*begun, *self._message.end_call(result.id, {}), *self._result(result)]
        response = as_mapping(as_json_value(result.response))
        if result.id in self._denied:
            return self._message.outcome(result.id, ev.ToolOutputDenied(result.id))
        if response.keys() == {"error"}:
            return self._message.failure(result.id, str(response["error"]))
        return self._message.output(result.id, response["result"] if response.keys() == {"result"} else dict(response))
