"""Builds a real LangGraph graph with LangChain's fake chat model, which streams words and call arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

__all__ = ["PROMPT", "Streaming", "add", "compiled_graph", "divide", "graph", "parallel_calls_message"]

PROMPT: Any = {"messages": [("user", "1 + 2, and 1 / 0?")]}
_USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


class Streaming(GenericFakeChatModel):
    """LangChain's fake chat model, extended to stream tool calls in pieces; LangChain's own version drops them."""

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **_: Any
    ) -> Iterator[ChatGenerationChunk]:
        for piece in _pieces(next(self.messages)):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager is not None:
                run_manager.on_llm_new_token(str(piece.content), chunk=chunk)
            yield chunk


def _pieces(message: Any) -> Iterator[AIMessageChunk]:
    reply = message if isinstance(message, AIMessage) else AIMessage(str(message))
    for word in str(reply.content).split(" ") if reply.content else ():
        yield AIMessageChunk(content=f"{word} ")
    starts = [(index, call, json.dumps(call["args"])) for index, call in enumerate(reply.tool_calls)]
    for index, call, written in starts:
        yield _piece_of_call(index, call["name"], call["id"], written[:4])
    for index, _, written in starts:  # the calls' pieces are interleaved
        yield _piece_of_call(index, None, None, written[4:])
    about = {"finish_reason": "tool_calls" if starts else "stop", "model_name": "fake"}
    yield AIMessageChunk(content="", usage_metadata=_USAGE, response_metadata=about, chunk_position="last")  # type: ignore[arg-type]


def _piece_of_call(index: int, name: str | None, call_id: str | None, args: str) -> AIMessageChunk:
    chunk = {"name": name, "args": args, "id": call_id, "index": index, "type": "tool_call_chunk"}
    return AIMessageChunk(content="", tool_call_chunks=[chunk])  # type: ignore[list-item]


@tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@tool
def divide(x: int, y: int) -> float:
    """Divide a number by another."""
    return x / y


def parallel_calls_message() -> AIMessage:
    """Returns a message with two parallel tool calls, one of which fails."""
    calls = [
        {"name": "add", "args": {"x": 1, "y": 2}, "id": "c1", "type": "tool_call"},
        {"name": "divide", "args": {"x": 1, "y": 0}, "id": "c2", "type": "tool_call"},
    ]
    return AIMessage("Let me see.", tool_calls=calls)


def graph(*replies: AIMessage | str, handles_errors: bool = True) -> Any:
    """Returns a graph of a model with these replies and its tools."""
    model = Streaming(messages=iter(replies or (parallel_calls_message(), "Three.")))

    def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    return compiled_graph(call_model, ToolNode([add, divide], handle_tool_errors=handles_errors))


def compiled_graph(call_model: Any, tools: Any) -> Any:
    """Compiles the graph of a model node and a tools node."""
    builder: Any = StateGraph(MessagesState)
    builder.add_node("agent", call_model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile()
