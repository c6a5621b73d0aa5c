"""Agents of LlamaIndex with scripted replies, for the tests of several rooms."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, get_type_hints

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseAsyncGen, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from pydantic import PrivateAttr

WITHOUT_FIELD_WARNINGS = pytest.mark.filterwarnings(
    "ignore::pydantic.warnings.PydanticDeprecationWarning"
)  # workflows reads all attributes


class Scripted(MockFunctionCallingLLM):
    """LlamaIndex's mock, extended to stream a list of replies with reasoning and growing arguments."""

    _replies: list[Sequence[ChatResponse]] = PrivateAttr()
    _asked: list[list[ChatMessage]] = PrivateAttr(default_factory=list)

    def __init__(self, *replies: Sequence[ChatResponse]) -> None:
        super().__init__()
        self._replies = list(replies)

    @property
    def asked(self) -> list[list[ChatMessage]]:
        return self._asked

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseAsyncGen:
        self._asked.append([*messages])
        reply = self._replies.pop(0)

        async def chunks() -> AsyncIterator[ChatResponse]:
            for chunk in reply:
                yield chunk

        return chunks()  # type: ignore[return-value]


def chunk(delta: str = "", text: str = "", thinking: str | None = None, *calls: ToolCallBlock) -> ChatResponse:
    message = ChatMessage(role="assistant", blocks=[TextBlock(text=text), *calls])
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    more = {} if thinking is None else {"thinking_delta": thinking}
    return ChatResponse(message=message, delta=delta, additional_kwargs=more, raw={"usage": usage})


def said(text: str) -> list[ChatResponse]:
    words = text.split(" ")
    return [chunk(f"{word} ", " ".join(words[: place + 1])) for place, word in enumerate(words)]


def called(name: str, **given: Any) -> list[ChatResponse]:
    """Returns a reply with a call, whose arguments come one after the other."""
    parts = [dict(list(given.items())[:count]) for count in range(len(given) + 1)]
    calls = [ToolCallBlock(tool_call_id=f"{name}-1", tool_name=name, tool_kwargs=part) for part in parts]
    return [chunk(thinking="Hm."), chunk("Let me see.", "Let me see."), *(chunk("", "", None, call) for call in calls)]


def add(x: int, y: int) -> int:
    """Adds two numbers."""
    return x + y


def agent(*replies: Sequence[ChatResponse], tools: Sequence[Any] = (add,), **about: Any) -> tuple[Any, Scripted]:
    llm = Scripted(*replies)
    for tool in tools:
        tool.__annotations__ = get_type_hints(tool)  # LlamaIndex looks for the class Context there
    return FunctionAgent(llm=llm, tools=[*tools], **about), llm
