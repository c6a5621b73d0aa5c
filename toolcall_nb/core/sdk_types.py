"""The types of SDKs by module and class name: whole replies, streams, and context managers that return a stream.

These are only names, so that nothing is imported for them: IPython's ``for_type_by_name`` registers types that may not
be loaded yet. `toolcall_nb.adapters.recognise` explains the kinds.
"""

from __future__ import annotations

__all__ = ["SDK_REPLY_TYPES", "SDK_STREAM_TYPES"]

_STREAM, _ASYNC_STREAM, _MANAGER, _ASYNC_MANAGER = "stream", "async stream", "manager", "async manager"

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
"""Module and class name of whole replies; subclasses count too."""

SDK_STREAM_TYPES: dict[tuple[str, str], str] = {
    ("openai", "Stream"): _STREAM,
    ("openai", "AsyncStream"): _ASYNC_STREAM,
    ("openai.lib.streaming.chat._completions", "ChatCompletionStream"): _STREAM,
    ("openai.lib.streaming.chat._completions", "AsyncChatCompletionStream"): _ASYNC_STREAM,
    ("openai.lib.streaming.chat._completions", "ChatCompletionStreamManager"): _MANAGER,
    ("openai.lib.streaming.chat._completions", "AsyncChatCompletionStreamManager"): _ASYNC_MANAGER,
    ("openai.lib.streaming.responses._responses", "ResponseStreamManager"): _MANAGER,
    ("openai.lib.streaming.responses._responses", "AsyncResponseStreamManager"): _ASYNC_MANAGER,
    ("anthropic", "Stream"): _STREAM,
    ("anthropic", "AsyncStream"): _ASYNC_STREAM,
    ("anthropic.lib.streaming._messages", "MessageStream"): _STREAM,
    ("anthropic.lib.streaming._messages", "AsyncMessageStream"): _ASYNC_STREAM,
    ("anthropic.lib.streaming._messages", "MessageStreamManager"): _MANAGER,
    ("anthropic.lib.streaming._messages", "AsyncMessageStreamManager"): _ASYNC_MANAGER,
    ("anthropic.lib.streaming._beta_messages", "BetaMessageStream"): _STREAM,
    ("anthropic.lib.streaming._beta_messages", "BetaAsyncMessageStream"): _ASYNC_STREAM,
    ("anthropic.lib.streaming._beta_messages", "BetaMessageStreamManager"): _MANAGER,
    ("anthropic.lib.streaming._beta_messages", "BetaAsyncMessageStreamManager"): _ASYNC_MANAGER,
    ("groq", "Stream"): _STREAM,
    ("groq", "AsyncStream"): _ASYNC_STREAM,
    ("mistralai.client.utils.eventstreaming", "EventStream"): _STREAM,
    ("mistralai.client.utils.eventstreaming", "EventStreamAsync"): _ASYNC_STREAM,
    ("pydantic_ai.direct", "StreamedResponseSync"): _MANAGER,
    ("pydantic_ai.models", "StreamedResponse"): _ASYNC_STREAM,
    ("pydantic_ai.result", "AgentStream"): _ASYNC_STREAM,
    ("pydantic_ai.result", "StreamedRunResult"): _ASYNC_STREAM,
    ("pydantic_ai.result", "StreamedRunResultSync"): _STREAM,
    ("pydantic_ai.run", "AgentRun"): _ASYNC_STREAM,
    ("pydantic_ai.agent.abstract", "_RunStreamEventsContext"): _ASYNC_MANAGER,
    ("langgraph.stream.run_stream", "GraphRunStream"): _STREAM,
    ("langgraph.stream.run_stream", "AsyncGraphRunStream"): _ASYNC_STREAM,
}
"""Module and class name of streams and of context managers that return one, each with its kind."""
