"""The interface of a dialect, `Dialect` and `TextDialect`, and what the text dialects share in writing.

Each text dialect is one subclass of `TextDialect`, in a file of its own.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec.structs import replace

from toolcall_nb.core.events import MISSING, Diagnostic, Event, Json
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall


class Detector(Protocol):
    """Finds the tool calls in the text of one message, which comes in pieces that are cut anywhere."""

    @property
    def held(self) -> int:
        """The number of characters that are withheld because they may still become a call."""

    def feed(self, text: str) -> list[Event]:
        """Takes more text and returns the events that are certain now."""

    def close(self) -> list[Event]:
        """Ends the text and returns the remaining events."""


@runtime_checkable
class ToolDescription(Protocol):
    """The description of a tool that a dialect gives to a model."""

    @property
    def name(self) -> str:
        """The name by which the model calls the tool."""

    @property
    def description(self) -> str:
        """The tool's purpose, for the model."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of its input."""


class Dialect:
    """The way in which a model writes calls and reads results.

    This base class is the dialect ``native``: the provider transports calls and results, and nothing is written as
    text.
    """

    def write_history(self, messages: Iterable[Message], tool_names: Collection[str] | None = None) -> list[Message]:
        """Returns the messages as they are sent with the next request."""
        return [*messages]

    def report_end(self, call: ToolCall, tool_names: Container[str] | None = None) -> str | None:
        """Returns the Markdown that the dialect adds to the message when ``call`` has ended, if any.

        ``tool_names`` holds the names of the available tools; None where they are unknown.
        """
        return None

    def report_running(self, tool_name: str) -> str | None:
        """Returns the status that the dialect shows while a tool runs, if any."""
        return None

    def report_diagnostic(self, diagnostic: Diagnostic) -> str | None:
        """Returns the Markdown that the dialect adds to the message for a call that could not be read, if any."""
        return None


class TextDialect(Dialect, ABC):
    """A dialect for models that write calls in their text and read results in the next message."""

    @abstractmethod
    def detector(self) -> Detector:
        """Returns a new detector for the text of one message."""

    @abstractmethod
    def instructions(self, tools: Sequence[ToolDescription]) -> str:
        """Returns the part of a system prompt that describes ``tools`` and how to call them."""

    @abstractmethod
    def write(self, message: Message) -> str:
        """Returns the text and the calls of a message as a model writes them, without results and other parts."""

    @abstractmethod
    def write_result(self, call: ToolCall, tool_names: Container[str] | None = None) -> str:
        """Returns the result of a call, or why there is none, as the model reads it."""

    def is_report(self, text: str) -> bool:
        """Whether the text consists only of reports that this dialect added to a message."""
        return False

    def write_history(self, messages: Iterable[Message], tool_names: Collection[str] | None = None) -> list[Message]:
        """Returns the messages for the next request, with those of the assistant as text.

        Each step of a message of the assistant is a message, and one of the user with the results of its calls follows.
        Left out are reports that this dialect added, parts that are neither text nor calls, and what ran inside a call.
        """
        names = None if tool_names is None else frozenset(tool_names)
        history: list[Message] = []
        for message in messages:
            history += message.once(_written, self, names) if message.role == "assistant" else (message,)
        return history


def _written(message: Message, dialect: TextDialect, tool_names: frozenset[str] | None) -> tuple[Message, ...]:
    """Returns the replies of a message, each followed by a message of the user with the results of its calls."""
    written: list[Message] = []
    for step in message.steps:
        alone = replace(message, parts=step.parts, step_starts=())
        parts = tuple(
            part for part in written_parts(alone) if isinstance(part, ToolCall) or not dialect.is_report(part.text)
        )
        if parts:
            text = TextPart(dialect.write(replace(alone, parts=parts)))
            written.append(replace(alone, parts=(text,)))
        results = [part.once(_written_result, dialect, tool_names) for part in parts if isinstance(part, ToolCall)]
        if results:
            written.append(Message("user", (TextPart("\n\n".join(results)),)))
    return tuple(written)


def _written_result(call: ToolCall, dialect: TextDialect, tool_names: frozenset[str] | None) -> str:
    return dialect.write_result(call, tool_names)


def written_parts(message: Message) -> Iterator[TextPart | ToolCall]:
    """Yields the parts that a model writes: calls, and text that is not blank."""
    for part in message.parts:
        if isinstance(part, ToolCall) or (isinstance(part, TextPart) and part.text.strip()):
            yield part


def input_of(call: ToolCall) -> Json:
    """Returns the input of a call; an empty object where it never became complete."""
    return {} if call.input is MISSING else call.input


def is_unknown(call: ToolCall, tool_names: Container[str] | None) -> bool:
    """Whether a call failed because there is no such tool."""
    return call.state is State.OUTPUT_ERROR and tool_names is not None and call.name not in tool_names


# Instructions in the words of seed 004 ------------------------------------------------------------------------

PATH_RULE = """\
IMPORTANT: For file_path parameters, ALWAYS use the full relative path from the workspace root.
Examples:
- CORRECT: "crates/merlin-tools/src/lib.rs"
- CORRECT: "benchmarks/testing.md"
- WRONG: "lib.rs" (ambiguous - which lib.rs?)
- WRONG: "testing.md" (ambiguous - which directory?)"""
"""The rule for paths, exactly as seed 004 words it."""


def describe_tools(tools: Sequence[ToolDescription]) -> str:
    """Returns the list of tools: each with its name, description and parameter schema."""
    return "\n\n".join(("# Available Tools", *map(_describe, tools)))


def _describe(tool: ToolDescription) -> str:
    schema = json.dumps(tool.parameters, ensure_ascii=False)
    return f"## {tool.name}\n{tool.description}\n\nParameters (JSON Schema): {schema}"


def path_rule(tools: Sequence[ToolDescription]) -> str:
    """Returns the rule for paths after a blank line where a tool takes a path; else nothing."""
    parameters = [parameter for tool in tools for parameter in tool.parameters.get("properties", {}).items()]
    takes_path = any(name == "file_path" or _holds_path(schema) for name, schema in parameters)
    return f"\n\n{PATH_RULE}" if takes_path else ""


def _holds_path(schema: Any) -> bool:
    """Whether a schema is that of a path or contains one, as an optional path or a list of paths does."""
    if isinstance(schema, list):
        return any(map(_holds_path, schema))
    return isinstance(schema, dict) and (schema.get("format") == "path" or any(map(_holds_path, schema.values())))
