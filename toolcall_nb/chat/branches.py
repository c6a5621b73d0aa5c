"""Finds where a conversation branches, and what stays of it: `transcript_before`, `repeated_call`.

Everything here takes a transcript and returns values. `toolcall_nb.chat.conversation.Chat` has the methods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Json
from toolcall_nb.core.recording import Recording
from toolcall_nb.core.replay import part_events
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.core.transcript import Message, Part, State, ToolCall, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.sources import unknown_name


class Rerun(NamedTuple):
    """A call and its repetition, which has an id of its own. In a cell it shows both."""

    before: ToolCall
    after: ToolCall

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from toolcall_nb.render.saved_output import saved_bundle

        whole = Transcript((Message("assistant", (self.before, self.after)),))
        opened = {self.before.id: True, self.after.id: True}
        return saved_bundle(whole, include=include, exclude=exclude, opened=opened)


class RepeatedCall(NamedTuple):
    """A call that runs again, with the parts of its message that stay before and after it."""

    call: ToolCall
    before: tuple[Part, ...] = ()
    after: tuple[Part, ...] = ()

    def events_before(self) -> Iterator[Event]:
        """Yields the events of the parts before the call, and of the call until it can run."""
        for number, part in enumerate(self.before, 1):
            yield from part_events(part, f"kept-{number}")
        yield ev.ToolExecution(self.call.id, "queued")
        yield from part_events(self.call, "")

    def events_after(self) -> Iterator[Event]:
        """Yields the events of the other calls of the same request."""
        for part in self.after:
            yield from part_events(part, "")


def find_call(transcript: Transcript, call_id: str) -> tuple[int, int]:
    """Returns where the last call with this id is: the index of its message, and of its part there.

    Raises `UsageError`, with the ids that there are.
    """
    for number in range(len(transcript.messages) - 1, -1, -1):
        for index, part in enumerate(transcript.messages[number].parts):
            if isinstance(part, ToolCall) and part.id == call_id:
                return number, index
    raise UsageError(unknown_name("call", call_id, [*transcript.calls]))


def transcript_before(transcript: Transcript, before: str | int | None) -> Transcript:
    """Returns the transcript up to a call (its id) or a message (its number); all of it for None.

    A message that is cut loses what was reported about the whole of it, such as its usage.
    """
    if before is None:
        return transcript
    if isinstance(before, int):
        return transcript[:before]
    number, index = find_call(transcript, before)
    kept = Message(transcript.messages[number].role, transcript.messages[number].parts[:index])
    return transcript[:number] + Transcript((kept,) if kept.parts else ())


def repeated_call(message: Message, index: int, input: Json, recording: Recording) -> RepeatedCall:
    """Returns the call at this index of a message's parts, ready to run, with the parts that stay before and after it.

    ``input`` takes the place of the call's own, `MISSING` keeps that. Behind the call stay the other calls of the same
    request, as far as the recording knows them: the model made them before it had any result. Raises `UsageError`
    where there are no complete arguments.
    """
    call = message.parts[index]
    assert isinstance(call, ToolCall)
    arguments = call.input if input is MISSING else input
    if arguments is MISSING:
        raise UsageError(f"The arguments of the call {call.id!r} never became complete. Give them: input={{…}}.")
    same = _calls_of_request(recording, call.id)
    after = tuple(part for part in message.parts[index + 1 :] if isinstance(part, ToolCall) and part.id in same)
    again = ToolCall(
        id=call.id,
        name=call.name,
        input=well_formed_json(arguments),
        title=call.title,
        tool_metadata=call.tool_metadata,
        provider_metadata=call.provider_metadata,
    )
    return RepeatedCall(again, message.parts[:index], after)


def _calls_of_request(recording: Recording, call_id: str) -> Collection[str]:
    """Returns the ids of the calls that the model made in one reply with this one."""
    calls: list[str] = []
    for _, event in recording.events:
        match event:
            case ev.StartStep():
                calls = []
            case ev.ToolInputAvailable():
                calls.append(event.tool_call_id)
            case ev.FinishStep() if call_id in calls:
                return calls
    return calls if call_id in calls else ()


def last_prompt(transcript: Transcript) -> int:
    """Returns the number of the last message of the user. Raises `UsageError` if there is none."""
    for number in range(len(transcript.messages) - 1, -1, -1):
        if transcript.messages[number].role == "user":
            return number
    raise UsageError("Nothing was asked in this conversation yet.")


def with_ended_calls(message: Message) -> Message:
    """Returns the message with its open calls as interrupted."""
    if all(call.is_final for call in message.calls):
        return message
    parts = (
        replace(part, state=State.INTERRUPTED) if isinstance(part, ToolCall) and not part.is_final else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))
