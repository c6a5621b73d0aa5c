"""Chat models of LangChain answer a chat; objects that are no models are refused with a remedy."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from tests.support.graphs import Streaming
from toolcall_nb import Chat
from toolcall_nb.core.transcript import ErrorPart, Message, State
from toolcall_nb.errors import UsageError
from toolcall_nb.models import model, model_name
from toolcall_nb.models.langchain import LangChainModel


def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


class Telling(Streaming):
    """Records the messages and the tools of each request."""

    model_name: str = "fake-1"
    api_key: Any = None
    asked: list[Any]
    told: list[Any]

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        self.told.append(tools)
        return self

    def _stream(self, messages: Any, *args: Any, **others: Any) -> Any:
        self.asked.append(messages)
        return super()._stream(messages, *args, **others)


def telling(*replies: Any) -> Telling:
    return Telling(messages=iter(replies), asked=[], told=[])


def errors(message: Message) -> list[ErrorPart]:
    return [part for part in message.parts if isinstance(part, ErrorPart)]


CALL = {"name": "add", "args": {"x": 1, "y": 2}, "id": "c1", "type": "tool_call"}


def test_a_whole_tool_loop_of_a_chat_model() -> None:
    llm = telling(AIMessage("Let me see.", tool_calls=[CALL]), "Three.")
    chat = Chat(llm, tools=[add], system="Be short.")
    answer = chat.send("1 + 2?")
    (call,) = chat.calls.values()
    assert (call.id, call.name, call.input, call.output) == ("c1", "add", {"x": 1, "y": 2}, 3)
    assert answer.text.split() == ["Let", "me", "see.", "Three."]
    assert chat.usage["inputTokens"] == 6
    assert [tools[0]["function"]["name"] for tools in llm.told] == ["add", "add"]
    assert [type(message) for message in llm.asked[1]] == [SystemMessage, HumanMessage, AIMessage, ToolMessage]
    assert (llm.asked[1][2].tool_calls, llm.asked[1][3].content) == ([CALL], "3")


def test_its_name_is_the_model_s_or_that_of_its_class() -> None:
    assert Chat(telling()).model_name == "fake-1"
    assert model_name(model(FakeListChatModel(responses=["x"]))) == "FakeListChatModel"


def test_a_bound_model_and_a_chain_answer_too() -> None:
    bound = FakeListChatModel(responses=["Good.", "Good."]).bind(stop=["!"])
    assert Chat(bound, tools=[]).send("?").text == "Good."
    from langchain_core.output_parsers import StrOutputParser

    assert Chat(bound | StrOutputParser(), tools=[]).send("?").text == "Good."


def test_a_chat_model_without_bind_tools_is_refused_and_can_call_in_its_text() -> None:
    written = "> [!tool add]\n> input:\n>   x: 1\n>   y: 2\n\n"  # it reports no finish reason
    llm = FakeListChatModel(responses=[written, "Three."])
    chat = Chat(llm, tools=[add])
    assert "--dialect callout" in errors(chat.send("1 + 2?"))[0].text
    chat.dialect = "callout"
    assert chat.send("1 + 2?").text.endswith("Three.")
    assert [(call.state, call.output) for call in chat.calls.values()] == [(State.OUTPUT_AVAILABLE, 3)]


def test_its_exception_is_shown_without_the_key_and_the_next_turn_works() -> None:
    from pydantic import SecretStr

    class Refusing(FakeListChatModel):
        api_key: SecretStr = SecretStr("a-key-of-mine")
        is_open: bool = False

        def _stream(self, *args: Any, **others: Any) -> Any:
            if not self.is_open:
                raise ValueError("not with a-key-of-mine")
            return super()._stream(*args, **others)

    llm = Refusing(responses=["Good."])
    chat = Chat(llm, tools=[])
    (error,) = errors(chat.send("?"))
    assert "ValueError: not with" in error.text
    assert "a-key-of-mine" not in f"{error.text} {error.details} {chat.last_error!r}"
    llm.is_open = True
    assert chat.send("?").text == "Good."


def clients() -> dict[str, Any]:
    import anthropic
    import groq
    import openai
    from google import genai
    from mistralai.client import Mistral

    return {
        "openai:MODEL": openai.AsyncOpenAI(api_key="k"),
        "anthropic:MODEL": anthropic.Anthropic(api_key="k"),
        "groq:MODEL": groq.Groq(api_key="k"),
        "google:MODEL": genai.Client(api_key="k"),
        "mistral:MODEL": Mistral(api_key="k"),
    }


@pytest.mark.parametrize("remedy", list(clients()))
def test_objects_that_are_mistaken_for_models_are_refused_with_a_remedy(remedy: str) -> None:
    thing = clients()[remedy]
    with pytest.raises(UsageError, match="is not a model") as caught:
        Chat(thing)
    assert remedy in str(caught.value)


def test_an_object_with_stream_is_used_as_it_is() -> None:
    class Mine:
        def stream(self, messages: Any, tools: Any) -> Any:
            return iter(())

    mine = Mine()
    assert model(mine) is mine
    assert not isinstance(model(mine), LangChainModel)
