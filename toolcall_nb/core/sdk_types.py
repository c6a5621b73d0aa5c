"""The SDK types that this package can display, by module and class name, and what kind of source each is.

IPython's ``for_type_by_name`` takes such names, so that formatters can be registered before an SDK is imported. This
module imports nothing of any SDK, and nothing of this package. `toolcall_nb.adapters.recognise` uses the same tables.
"""

from __future__ import annotations

from enum import StrEnum


class SourceKind(StrEnum):
    """The way in which an object's events are read."""

    WHOLE = "whole"
    """A complete reply, a result or a list of messages: `toolcall_nb.adapters.events_of` reads it."""
    STREAM = "stream"
    """Iterated once with ``for``. Any iterator is one."""
    ASYNC_STREAM = "async stream"
    """Iterated once with ``async for``."""
    MANAGER = "manager"
    """Entering it with ``with`` gives a stream."""
    ASYNC_MANAGER = "async manager"
    """Entering it with ``async with`` gives a stream."""
    NOTHING = "nothing"
    """Not readable."""


SDK_REPLY_TYPES: tuple[tuple[str, str], ...] = (
    ("openai.types.chat.chat_completion", "ChatCompletion"),
    ("openai.types.chat.chat_completion_message", "ChatCompletionMessage"),
    ("openai.types.responses.response", "Response"),
    ("anthropic.types.message", "Message"),
    ("anthropic.types.parsed_message", "ParsedMessage"),
    ("anthropic.types.beta.beta_message", "BetaMessage"),
    ("anthropic.types.beta.parsed_beta_message", "ParsedBetaMessage"),
    ("google.genai.types", "GenerateContentResponse"),
    ("groq.types.chat.chat_completion", "ChatCompletion"),
    ("mistralai.client.models.chatcompletionresponse", "ChatCompletionResponse"),
    ("pydantic_ai.messages", "ModelRequest"),
    ("pydantic_ai.messages", "ModelResponse"),
    ("pydantic_ai.run", "AgentRunResult"),
    ("langchain_core.messages.base", "BaseMessage"),
)
"""Module and class of complete replies; subclasses count too."""

SDK_STREAM_TYPES: dict[tuple[str, str], SourceKind] = {
    ("openai", "Stream"): SourceKind.STREAM,
    ("openai", "AsyncStream"): SourceKind.ASYNC_STREAM,
    ("openai.lib.streaming.chat._completions", "ChatCompletionStream"): SourceKind.STREAM,
    ("openai.lib.streaming.chat._completions", "AsyncChatCompletionStream"): SourceKind.ASYNC_STREAM,
    ("openai.lib.streaming.chat._completions", "ChatCompletionStreamManager"): SourceKind.MANAGER,
    ("openai.lib.streaming.chat._completions", "AsyncChatCompletionStreamManager"): SourceKind.ASYNC_MANAGER,
    ("openai.lib.streaming.responses._responses", "ResponseStreamManager"): SourceKind.MANAGER,
    ("openai.lib.streaming.responses._responses", "AsyncResponseStreamManager"): SourceKind.ASYNC_MANAGER,
    ("anthropic", "Stream"): SourceKind.STREAM,
    ("anthropic", "AsyncStream"): SourceKind.ASYNC_STREAM,
    ("anthropic.lib.streaming._messages", "MessageStream"): SourceKind.STREAM,
    ("anthropic.lib.streaming._messages", "AsyncMessageStream"): SourceKind.ASYNC_STREAM,
    ("anthropic.lib.streaming._messages", "MessageStreamManager"): SourceKind.MANAGER,
    ("anthropic.lib.streaming._messages", "AsyncMessageStreamManager"): SourceKind.ASYNC_MANAGER,
    ("anthropic.lib.streaming._beta_messages", "BetaMessageStream"): SourceKind.STREAM,
    ("anthropic.lib.streaming._beta_messages", "BetaAsyncMessageStream"): SourceKind.ASYNC_STREAM,
    ("anthropic.lib.streaming._beta_messages", "BetaMessageStreamManager"): SourceKind.MANAGER,
    ("anthropic.lib.streaming._beta_messages", "BetaAsyncMessageStreamManager"): SourceKind.ASYNC_MANAGER,
    ("groq", "Stream"): SourceKind.STREAM,
    ("groq", "AsyncStream"): SourceKind.ASYNC_STREAM,
    ("mistralai.client.utils.eventstreaming", "EventStream"): SourceKind.STREAM,
    ("mistralai.client.utils.eventstreaming", "EventStreamAsync"): SourceKind.ASYNC_STREAM,
    ("pydantic_ai.direct", "StreamedResponseSync"): SourceKind.MANAGER,
    ("pydantic_ai.models", "StreamedResponse"): SourceKind.ASYNC_STREAM,
    ("pydantic_ai.result", "AgentStream"): SourceKind.ASYNC_STREAM,
    ("pydantic_ai.result", "StreamedRunResult"): SourceKind.ASYNC_STREAM,
    ("pydantic_ai.result", "StreamedRunResultSync"): SourceKind.STREAM,
    ("pydantic_ai.run", "AgentRun"): SourceKind.ASYNC_STREAM,
    ("pydantic_ai.agent.abstract", "_RunStreamEventsContext"): SourceKind.ASYNC_MANAGER,
    ("langgraph.stream.run_stream", "GraphRunStream"): SourceKind.STREAM,
    ("langgraph.stream.run_stream", "AsyncGraphRunStream"): SourceKind.ASYNC_STREAM,
}
"""Module and class of streams and of the context managers that open one."""
