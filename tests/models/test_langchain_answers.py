"""Typed answers (`output=`) of LangChain's chat models, runnables and agents, each with its own structured output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from tests.support.graphs import Streaming
from toolcall_nb import Chat
from toolcall_nb.core.transcript import State
from toolcall_nb.errors import ModelError


class Report(BaseModel):
    """A report about one city."""

    city: str
    days: int = 1


@dataclass
class Trip:
    """A trip."""

    city: str
    days: int


class Model(Streaming):
    """LangChain's fake chat model. It records what is bound to it, and the messages of each request."""

    bound: list[Any]
    asked: list[Any]

    def bind_tools(self, tools: Any, **settings: Any) -> Any:
        self.bound.append(([_name(tool) for tool in tools], settings))
        return self

    def _stream(self, messages: Any, *args: Any, **others: Any) -> Any:
        self.asked.append(messages)
        return super()._stream(messages, *args, **others)


def _name(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return getattr(tool, "name", tool)
    return tool["function"]["name"] if "function" in tool else tool["title"]


def answering(*replies: Any, **settings: Any) -> Model:
    return Model(messages=iter(replies), bound=[], asked=[], **settings)


def calling(name: str, call_id: str = "c1", **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id, "type": "tool_call"}])


def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


# Chat models ------------------------------------------------------------------------------------------------------


def test_a_chat_model_with_tools_answers_by_the_tool() -> None:
    llm = answering(calling("add", x=1, y=2), calling("final_answer", "c2", city="Lyon", days=3))
    assert Chat(llm, tools=[add]).send("Lyon?", output=Report).output == Report(city="Lyon", days=3)
    assert llm.bound == [(["add", "final_answer"], {})] * 2


def test_a_chat_model_that_has_structured_output_gets_the_schema() -> None:
    wrong, right = '{"city": "Lyon", "days": "three"}', '{"city": "Lyon", "days": 3}'
    llm = answering(calling("add", x=1, y=2), wrong, right, profile={"structured_output": True})
    answer = Chat(llm, tools=[add]).send("Lyon?", output=Report)
    assert answer.output == Report(city="Lyon", days=3)
    names, settings = llm.bound[0]
    schema = settings["response_format"]["json_schema"]
    assert (names, settings["response_format"]["type"]) == (["add"], "json_schema")
    assert (schema["name"], schema["schema"]["properties"].keys()) == ("final_answer", {"city", "days"})
    assert [call.state for call in answer.message.calls[1:]] == [State.OUTPUT_ERROR, State.OUTPUT_AVAILABLE]


def test_an_older_gemini_gets_the_tool_beside_other_tools() -> None:
    class Gemini(Model):
        model_name: str = "gemini-2.5-flash"

    reply = calling("final_answer", city="Lyon")
    llm = Gemini(messages=iter([reply]), bound=[], asked=[], profile={"structured_output": True})
    assert Chat(llm, tools=[add]).send("Lyon?", output=Report).output == Report(city="Lyon")
    assert llm.bound == [(["add", "final_answer"], {})]


def test_a_chat_model_that_takes_no_tools_is_asked_in_the_prompt() -> None:
    llm = FakeListChatModel(responses=['{"city": "Lyon"}', '{"answer": 5}'])
    chat = Chat(llm.bind(stop=["!"]), tools=[])
    assert chat.send("Lyon?", output=Report).output == Report(city="Lyon")
    assert Chat(llm, tools=[]).send("How many?", output=int).output == 5


# Runnables with structured output -----------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [Report, Report.model_json_schema()])
def test_a_runnable_with_structured_output_gives_its_value(schema: Any) -> None:
    llm = answering(*[calling("Report", city="Lyon", days=3)] * 2)
    runnable = llm.with_structured_output(schema)
    chat = Chat(runnable, tools=[])
    assert chat.send("Lyon?", output=Trip).output == Trip("Lyon", 3)
    assert json.loads(chat.send("Lyon?").text) == {"city": "Lyon", "days": 3}


def test_a_value_of_a_runnable_that_does_not_fit_says_what_was_asked() -> None:
    llm = answering(*[calling("Report", city="Lyon", days=3)] * 3)
    chat = Chat(llm.with_structured_output(Report), tools=[], output_retries=1)
    with pytest.raises(ModelError, match=r"no answer that fits the JSON Schema, in 2 tries.*town"):
        chat.send("Lyon?", output={"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]})


def test_a_runnable_that_takes_no_tools_says_so() -> None:
    chat = Chat(answering().with_structured_output(Report), tools=[add])
    with pytest.raises(ModelError, match="LangChain knows no way"):
        chat.send("1 + 2?", output=Report)


# Agents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpointer", [None, InMemorySaver()])
@pytest.mark.parametrize("strategy", [Report, ToolStrategy(Report), ToolStrategy(Trip)])
def test_the_structured_response_of_an_agent_is_the_answer(strategy: Any, checkpointer: Any) -> None:
    name = "Trip" if isinstance(strategy, ToolStrategy) and strategy.schema is Trip else "Report"
    llm = answering(calling("add", x=1, y=2), calling(name, "c2", city="Lyon", days=3))
    agent = create_agent(llm, [add], response_format=strategy, checkpointer=checkpointer)
    chat = Chat(agent)
    answer = chat.send("Lyon?", output=Report)
    assert answer.output == Report(city="Lyon", days=3)
    assert [call.name for call in answer.message.calls] == ["add", name, "final_answer"]
    assert all(call.state is State.OUTPUT_AVAILABLE for call in answer.message.calls)


def test_an_agent_with_the_provider_s_structured_output_answers_in_its_text() -> None:
    llm = answering('{"city": "Lyon"}')
    agent = create_agent(llm, [], response_format=ProviderStrategy(Report))
    answer = Chat(agent).send("Lyon?", output=Report)
    assert answer.output == Report(city="Lyon")
    assert [call.name for call in answer.message.calls] == ["final_answer"]


def test_an_agent_without_structured_output_is_asked_in_the_prompt() -> None:
    llm = answering("I do not know.", '{"city": "Lyon"}')
    answer = Chat(create_agent(llm, [])).send("Lyon?", output=Report)
    assert answer.output == Report(city="Lyon")
    assert "JSON Schema" in llm.asked[0][-1].content


def test_a_structured_response_of_another_type_is_refused() -> None:
    llm = answering(*[calling("Report", f"c{n}", city="Lyon", days=3) for n in range(3)])
    chat = Chat(create_agent(llm, [], response_format=ToolStrategy(Report)), output_retries=1)
    with pytest.raises(ModelError, match="no answer that fits int, in 2 tries"):
        chat.send("Lyon?", output=int)


def test_a_streamed_reply_that_the_graph_repeats_after_its_result_is_read_once() -> None:
    llm = answering(calling("Report", city=5), calling("Report", "c2", city="Lyon"))
    answer = Chat(create_agent(llm, [], response_format=ToolStrategy(Report))).send("Lyon?", output=Report)
    assert [(call.id, call.name) for call in answer.message.calls] == [
        ("c1", "Report"),
        ("c2", "Report"),
        ("answer", "final_answer"),
    ]


def test_without_output_an_agent_s_structured_response_is_its_own_call() -> None:
    agent = create_agent(answering(calling("Report", city="Lyon")), [], response_format=ToolStrategy(Report))
    answer = Chat(agent).send("Lyon?")
    assert [call.name for call in answer.calls] == ["Report"]
    assert answer.text.strip() == ""
