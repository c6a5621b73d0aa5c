"""What a step of LangChain is, not how it is named, says where its messages, calls and errors belong."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

import toolcall_nb
from toolcall_nb.core.transcript import State, Transcript

PROMPT: Any = {"messages": [("user", "Hi")]}


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


class Failing(Scripted):
    def _generate(self, *arguments: Any, **options: Any) -> Any:
        raise ValueError("the model is down")


class Quiet(AgentMiddleware[Any, Any]):
    """Hooks that return nothing, all with "agent" in their names or without."""

    def before_agent(self, state: Any, runtime: Any) -> None:
        return None

    def before_model(self, state: Any, runtime: Any) -> None:
        return None

    def after_agent(self, state: Any, runtime: Any) -> None:
        return None


def call(name: str, call_id: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


@tool
def look(city: str) -> str:
    """Looks."""
    return "sunny"


@tool
def ask_agent(question: str) -> str:
    """Asks another agent."""
    inner: Any = create_agent(
        Scripted(messages=iter([call("look", "i", city="Oslo"), AIMessage("It is sunny.")])), [look]
    )
    return str(inner.invoke({"messages": [("user", question)]})["messages"][-1].content)


@tool
def broken_agent(question: str) -> str:
    """Fails."""
    raise ValueError("boom")


def watched(agent: Any) -> Transcript:
    with toolcall_nb.watch() as run, suppress(ValueError):
        agent.invoke(PROMPT)
    return run.transcript


def test_a_tool_with_agent_in_its_name_is_a_tool_that_holds_what_ran_inside_of_it() -> None:
    replies = [call("ask_agent", "o", question="The weather?"), AIMessage("Done.")]
    agent: Any = create_agent(Scripted(messages=iter(replies)), [ask_agent])
    transcript = watched(agent)
    assert [message.text for message in transcript.messages if message.role == "user"] == ["Hi"]
    outer, inner = transcript.calls.values()
    assert (outer.name, outer.output) == ("ask_agent", "It is sunny.")
    assert (inner.name, inner.tool_metadata) == ("look", {"parent": outer.id})
    assert transcript.messages[-1].text == "Done."


def test_the_error_of_a_tool_with_agent_in_its_name_is_kept() -> None:
    agent: Any = create_agent(Scripted(messages=iter([call("broken_agent", "o", question="?")])), [broken_agent])
    (broken,) = watched(agent).calls.values()
    assert (broken.state, broken.error) == (State.OUTPUT_ERROR, "ValueError: boom")


@pytest.mark.parametrize("model", [Scripted(messages=iter([AIMessage("Hello.")])), Failing(messages=iter([]))])
def test_a_middleware_that_returns_nothing_is_no_text(model: Any) -> None:
    middleware: Sequence[Any] = [Quiet()]
    transcript = watched(create_agent(model, [look], middleware=middleware))
    assert "null" not in transcript.to_markdown()


def test_a_model_that_answers_null_keeps_its_answer() -> None:
    agent: Any = create_agent(Scripted(messages=iter([AIMessage("null")])), [look])
    assert watched(agent).messages[-1].text == "null"
