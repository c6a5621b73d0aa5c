"""Every source, as a function that says the run of a scenario in the source's own format and reads it: `SOURCES`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tests.crossings.agents import AGENTS
from tests.crossings.conversations import MESSAGE_FORMATS
from tests.crossings.played_runs import approver_of, play, step_events, tools_of, written_by_model
from tests.crossings.recorded_runs import RECORDS, RecordFormat
from tests.crossings.replies import REPLY_FORMATS, ReplyFormat
from tests.crossings.streams import DIALECTS, STREAMS, StreamFormat
from tests.support.adapter_streams import read_items, read_whole
from tests.support.trace_records import format_of
from tests.support.wire_round_trips import decoded
from toolcall_nb import Chat, MockModel, Transcript
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, ReasoningPart, Step, StepStart
from toolcall_nb.models.mock.scenarios import Think

__all__ = ["SOURCES", "Source"]

Say: TypeAlias = Callable[[Transcript], Transcript]
"""Says a run in a format, and reads what was said."""


class Source(NamedTuple):
    """A source: how it says a run, and the scenarios that its format can say."""

    title: str
    say: Say
    scenarios: Sequence[str]


# Replies of providers ---------------------------------------------------------------------------------------------

_ONE_REPLY = ("one reply", "a failed run", "a reply at its length limit", "a filtered reply", "citations")
_CHATS = ("two steps", "two parallel calls", "what is known of each step", "a reused id")


def _say_reply(write: Callable[[Step], Any], read: Callable[[Any], Transcript]) -> Say:
    """Reads a reply of one step as it is. Of several, a function gives them to a chat, whose tools run."""

    def say(transcript: Transcript) -> Transcript:
        steps = [step for message in transcript if message.role == "assistant" for step in message.steps]
        if len(steps) == 1:
            return read(write(steps[0]))
        replies = iter([write(step) for step in steps])
        return chat_of(transcript, lambda messages: _as_stream(next(replies)))

    return say


def _as_stream(reply: Any) -> Any:
    """A stream is no list: a list that a function returns may be one of messages."""
    return iter(reply) if isinstance(reply, list) else reply


def chat_of(transcript: Transcript, model: Any, **options: Any) -> Transcript:
    """Sends the user's messages to a chat with the model, and tools that return what the transcript says."""
    return play(transcript, Chat(model, tools=tools_of(transcript), retries=0, **options))


def _reply_sources(name: str, format: ReplyFormat) -> Iterator[tuple[str, Source]]:
    scenarios = [*_ONE_REPLY, *_CHATS]
    if name == "Ollama":  # has no ids of calls and no citations
        scenarios = [each for each in scenarios if each not in ("a reused id", "citations")]
    if name in ("Ollama", "Cohere", "Mistral", "Google interactions"):
        scenarios.remove("a filtered reply")
    if name == "Mistral":
        scenarios.remove("a reply at its length limit")
    fails = "a failed run"
    streamed = [each for each in scenarios if not (each == fails and name == "Google")]  # an exception of its package
    whole = [each for each in scenarios if not (each == fails and name != "OpenAI responses")]
    yield name, Source(f"{format.title}, streamed", _say_reply(format.stream, read_items), streamed)
    yield f"{name} (whole)", Source(f"{format.title}, whole", _say_reply(format.whole, read_whole), whole)


# Lists of messages ------------------------------------------------------------------------------------------------

_LISTS = ("two steps", "two parallel calls", "a reused id", "an attached file")
_OF_LISTS: Mapping[str, Sequence[str]] = {
    "OpenAI messages": ("citations",),
    "OpenAI items": ("citations", "two pictures and a text"),
    "Anthropic messages": ("citations", "two pictures and a text", "an error with a picture"),
    "Google contents": ("two pictures and a text", "an error with a picture"),
    "Bedrock messages": ("citations", "two pictures and a text", "an error with a picture"),
    "LangChain messages": (
        *("what is known of each step", "one reply", "citations", "two pictures and a text"),
        "an error with a picture",
    ),
    "pydantic-ai messages": (
        *("what is known of each step", "one reply", "two pictures and a text", "an error with a picture"),
        "a denied call",
    ),
    "UI messages": (
        *("citations", "two pictures and a text", "an approval with a reason", "an open question", "a denied call"),
    ),
}


def _list_sources() -> Iterator[tuple[str, Source]]:
    def say(write: Callable[[Transcript], Any]) -> Say:
        return lambda transcript: read_whole(write(transcript))

    for name, format in MESSAGE_FORMATS.items():
        yield name, Source(format.title, say(format.write), (*_LISTS, *_OF_LISTS[name]))


# Streams of other programs ----------------------------------------------------------------------------------------

_ENDS = ("a failed run", "a stopped run", "a reply at its length limit", "a filtered reply")
_AI_SDK = (
    *("two steps", "two parallel calls", "one reply", "two pictures and a text", *_ENDS),
    *("an approval with a reason", "an open question", "a denied call", "citations", "a provider's own part"),
)
_OF_STREAMS: Mapping[str, Sequence[str]] = {
    "AI SDK 6": _AI_SDK,
    "AI SDK 7": _AI_SDK,
    "AG-UI": (
        *("two steps", "two parallel calls", "one reply", "a sub-agent with an error", "two pictures and a text"),
        *("a failed run", "an open question"),
    ),
    "AG-UI snapshot": ("two steps", "two parallel calls", "a reused id", "an attached file"),
    "chat contract": ("a failed run",),
    "envelopes": ("two steps", "two parallel calls", "one reply", "a failed run", *_ENDS[2:]),
    "stages": ("two parallel calls",),
}


def _say_stream(format: StreamFormat) -> Say:
    def say(transcript: Transcript) -> Transcript:
        items = format.write(transcript)
        if format.wire is None:
            return read_items(items)
        body = "".join(f"data: {json.dumps(item)}\n\n" for item in items) + "data: [DONE]\n\n"
        return Transcript.from_events(decoded(format.wire, body.encode()))

    return say


def _stream_sources() -> Iterator[tuple[str, Source]]:
    for name, format in STREAMS.items():
        yield f"{name} stream", Source(format.title, _say_stream(format), _OF_STREAMS[name])


def _dialect_sources() -> Iterator[tuple[str, Source]]:
    def say(dialect: str, write: Callable[[Step], str]) -> Say:
        def run(transcript: Transcript) -> Transcript:
            steps = [step for message in transcript if message.role == "assistant" for step in message.steps]
            texts = iter([write(step) for step in steps])
            return chat_of(transcript, lambda messages: next(texts), dialect=dialect)

        return run

    for name, write in DIALECTS.items():
        scenarios = ("two steps", "two parallel calls", *(["a reused id"] if name == "callout" else []))
        yield f"{name} dialect", Source(f"text in the dialect `{name}`", say(name, write), scenarios)


# Runs that other programs recorded ---------------------------------------------------------------------------------

_OF_RECORDS: Mapping[str, Sequence[str]] = {
    "Claude Code": (
        "two pictures and a text",
        "an error with a picture",
        "a stopped run",
        "a denied call",
        "an injected turn",
    ),
    "Codex": ("two pictures and a text", "a stopped run"),
    "Inspect": ("two pictures and a text", "a reply at its length limit", "a filtered reply"),
    "LangSmith": ("a sub-agent with an error", "a repeated history"),
    "ATIF": ("two pictures and a text",),
    "GenAI spans": (
        "a sub-agent with an error",
        "a reply at its length limit",
        "a filtered reply",
        "a repeated history",
    ),
    "OpenInference spans": ("a sub-agent with an error", "a repeated history"),
}
_ALL_RECORDS = (
    *("two steps", "two parallel calls", "what is known of each step", "one reply", "a reused id", "a failed run"),
)


def _say_records(format: RecordFormat) -> Say:
    def say(transcript: Transcript) -> Transcript:
        records = format.write(transcript)
        known = format_of(records)
        assert known is not None
        runs = [*known.read(records)]
        assert len(runs) == 1, [run.id for run in runs]
        return runs[0].transcript

    return say


def _record_sources() -> Iterator[tuple[str, Source]]:
    for name, format in RECORDS.items():
        scenarios = [each for each in (*_ALL_RECORDS, *_OF_RECORDS[name])]
        if name == "Claude Code":
            scenarios.append("a sub-agent with an error")
        if name == "ATIF":
            scenarios.remove("a failed run")
        yield name, Source(format.title, _say_records(format), scenarios)


# Chats ------------------------------------------------------------------------------------------------------------


_NOTHING_MORE = (Message("assistant"), Step((), StepStart()))


def _say_function(transcript: Transcript) -> Transcript:
    """A function gives the replies as events, and the chat's own tools run."""
    written = written_by_model(transcript)
    steps = iter([(message, step) for message in written if message.role == "assistant" for step in message.steps])

    def model(messages: Any) -> Iterator[Event]:
        message, step = next(steps, _NOTHING_MORE)
        if message.aborted is not None:
            chat.stop()
        yield from step_events(step)
        yield ev.Finish(finish_reason=step.finish_reason)

    most = 1 if any(message.finish_reason == "limit" for message in transcript) else 10
    tools, asks = tools_of(transcript), approver_of(transcript)
    chat = Chat(model, tools=tools, ask_approval=asks, retries=0, max_steps=most)
    return play(transcript, chat)


def _say_mock(transcript: Transcript) -> Transcript:
    """The mock writes the replies, and the chat's own tools run."""
    steps = [step for message in transcript if message.role == "assistant" for step in message.steps]
    script: list[Any] = []
    for step in steps:
        texts = [Think(part.text) for part in step.parts if isinstance(part, ReasoningPart)]
        script.append([*texts, *([step.text] if step.text else []), *((call.name, call.input) for call in step.calls)])
    return chat_of(transcript, MockModel(script=script, speed=None))


_OF_FUNCTIONS = (
    *("two steps", "two parallel calls", "what is known of each step", "one reply", "two pictures and a text"),
    *("an error with a picture", *_ENDS, "a run at a limit", "a reused id", "an approval with a reason"),
    *("a denied call", "edited arguments", "citations", "an attached file", "a provider's own part"),
)


def _chat_sources() -> Iterator[tuple[str, Source]]:
    yield "mock", Source("a chat with the mock", _say_mock, ("two steps", "two parallel calls"))
    yield "function", Source("a chat with a function as its model", _say_function, _OF_FUNCTIONS)


def _agent_sources() -> Iterator[tuple[str, Source]]:
    def say(make: Callable[[Transcript], Any]) -> Say:
        def run(transcript: Transcript) -> Transcript:
            agent = make(written_by_model(transcript))
            return play(transcript, Chat(agent, ask_approval=approver_of(transcript), retries=0))

        return run

    for name, framework in AGENTS.items():
        yield name, Source(f"a chat with {framework.title}", say(framework.make), framework.scenarios)


SOURCES: Mapping[str, Source] = {
    **dict(pair for name, format in REPLY_FORMATS.items() for pair in _reply_sources(name, format)),
    **dict(_list_sources()),
    **dict(_stream_sources()),
    **dict(_dialect_sources()),
    **dict(_record_sources()),
    **dict(_chat_sources()),
    **dict(_agent_sources()),
}
