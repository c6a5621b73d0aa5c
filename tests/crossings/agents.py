"""Real agents of each framework that do what a transcript says, without a network: `AGENTS`.

The models are the frameworks' own scripted or fake ones. The agent inside a call is a second agent of the framework.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.crossings.conversations import pydantic_ai_response
from tests.crossings.scenarios import arguments_of
from toolcall_nb.core.parts import StepStart
from toolcall_nb.core.transcript import Message, Step, TextPart, ToolCall, Transcript

__all__ = ["AGENTS", "AgentFramework", "inner_steps"]

FAILURE = "Hit a rock."


class AgentFramework(NamedTuple):
    """Makes an agent that does what the transcript says, and the scenarios that it can do."""

    title: str
    make: Callable[[Transcript], Any]
    scenarios: Sequence[str]


def _answers(transcript: Transcript) -> list[Step]:
    return [step for message in transcript if message.role == "assistant" for step in message.steps]


def inner_steps(transcript: Transcript) -> list[Step]:
    """The steps of the agent inside the only call that has one: a text after a call begins the next."""
    parts: list[list[Any]] = []
    for message in transcript:
        for part in message.parts:
            if part.parent is None:
                continue
            if isinstance(part, TextPart):
                parts.append([])
            parts[-1].append(part)
    return [Step(tuple(each), StepStart()) for each in parts]


def _results(transcript: Transcript) -> Mapping[str, Any]:
    return {str(call.input.get("at") or call.input.get("to")): call.output for call in transcript.calls.values()}


def _inner_name(transcript: Transcript) -> str:
    names = [start.agent for message in transcript for start in message.step_starts if start.parent]
    return names[0] or "agent" if names else "agent"


# pydantic-ai ------------------------------------------------------------------------------------------------------


def pydantic_ai_agent(transcript: Transcript) -> Any:
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    def scripted(steps: Sequence[Step]) -> FunctionModel:
        left = iter(steps)

        async def stream(messages: Any, info: Any) -> AsyncIterator[Any]:
            step = next(left)
            if step.text:
                yield step.text
            for number, call in enumerate(step.calls, 1):
                yield {number: DeltaToolCall(call.name, json.dumps(call.input), tool_call_id=call.id)}

        return FunctionModel(lambda messages, info: pydantic_ai_response(next(left)), stream_function=stream)

    results = _results(transcript)
    agent: Agent[Any, Any] = Agent(scripted(_answers(transcript)), name="main")
    inner: Agent[Any, Any] = Agent(scripted(inner_steps(transcript)), name=_inner_name(transcript))

    @agent.tool_plain
    def look(at: str) -> Any:
        return results[at]

    @agent.tool_plain(requires_approval=True)
    def launch(to: str) -> str:
        return str(results[to])

    @agent.tool_plain
    async def ask_expert(about: str) -> str:
        return str((await inner.run(about)).output)

    @inner.tool_plain
    def dig(at: str) -> str:
        raise ModelRetry(FAILURE)

    return agent


# The OpenAI Agents SDK --------------------------------------------------------------------------------------------


def openai_agent(transcript: Transcript) -> Any:
    from agents import Agent, function_tool
    from agents.testing import assistant_message, function_call

    from tests.agents.scripted_openai import script

    def scripted(steps: Sequence[Step]) -> Any:
        return script(
            *(
                [
                    *([assistant_message(step.text)] if step.text else []),
                    *(function_call(call.name, arguments_of(call), call_id=call.id) for call in step.calls),
                ]
                for step in steps
            )
        )

    results = _results(transcript)

    @function_tool
    def look(at: str) -> str:
        """Looks."""
        return str(results[at])

    @function_tool(needs_approval=True)
    def launch(to: str) -> str:
        """Launches."""
        return str(results[to])

    @function_tool
    def dig(at: str) -> str:
        """Digs."""
        raise RuntimeError(FAILURE)

    inner = Agent(name=_inner_name(transcript), model=scripted(inner_steps(transcript)), tools=[dig])
    ask = _renamed_input(inner.as_tool("ask_expert", "Asks."))
    return Agent(name="main", model=scripted(_answers(transcript)), tools=[look, launch, ask])


def _renamed_input(tool: Any) -> Any:
    """An agent as a tool takes the argument ``input``; the scenario calls it ``about``."""
    run = tool.on_invoke_tool

    async def invoke(context: Any, arguments: str) -> Any:
        return await run(context, json.dumps({"input": json.loads(arguments)["about"]}))

    tool.on_invoke_tool = invoke
    return tool


# LangGraph --------------------------------------------------------------------------------------------------------


def langgraph_agent(transcript: Transcript) -> Any:
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver

    from tests.agents.scripted_langgraph import scripted

    def replies(steps: Sequence[Step]) -> Any:
        made: list[AIMessage | str] = []
        for step in steps:
            calls: list[Any] = [
                {"name": call.name, "args": call.input, "id": call.id, "type": "tool_call"} for call in step.calls
            ]
            made.append(AIMessage(step.text, tool_calls=calls))
        return scripted(*made)

    results = _results(transcript)

    @tool
    def look(at: str) -> Any:
        """Looks."""
        return results[at]

    @tool
    def launch(to: str) -> str:
        """Launches."""
        return str(results[to])

    @tool
    def dig(at: str) -> str:
        """Digs."""
        from langchain_core.tools import ToolException

        raise ToolException(FAILURE)

    dig.handle_tool_error = True
    inner: Any = create_agent(replies(inner_steps(transcript)), [dig], name=_inner_name(transcript))

    @tool
    def ask_expert(about: str) -> str:
        """Asks."""
        return str(inner.invoke({"messages": [("user", about)]})["messages"][-1].text).strip()

    tools = [look, launch, ask_expert]
    middleware = [HumanInTheLoopMiddleware(interrupt_on={"launch": True})]
    saver = InMemorySaver()
    return create_agent(replies(_answers(transcript)), tools, middleware=middleware, checkpointer=saver, name="main")


# The Claude Agent SDK ---------------------------------------------------------------------------------------------


def claude_agent(transcript: Transcript) -> Any:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

    from tests.agents import scripted_claude as claude

    def said(step: Step, parent: str | None = None) -> Any:
        blocks = [claude.text(step.text)] if step.text else []
        for call in step.calls:  # as Claude Code names the subagent
            named = {"subagent_type": _inner_name(transcript)} if call.name == "ask_expert" else {}
            blocks.append(claude.use(call.id, call.name, **arguments_of(call), **named))
        return claude.assistant(*blocks, parent=parent)

    def script() -> Generator[dict[str, Any], dict[str, Any], None]:
        for step in _answers(transcript):
            yield said(step)
            for call in step.calls:
                for inner in inner_steps(transcript) if call.name == "ask_expert" else ():
                    yield said(inner, call.id)
                    for each in inner.calls:
                        yield claude.outcome(each.id, each.error, error=True, parent=call.id)
                yield claude.outcome(call.id, call.output)
        yield claude.result()

    return ClaudeSDKClient(ClaudeAgentOptions(), transport=claude.Scripted(script))


# LlamaIndex -------------------------------------------------------------------------------------------------------


def llama_index_agent(transcript: Transcript) -> Any:
    from llama_index.core.base.llms.types import ToolCallBlock
    from llama_index.core.workflow import Context

    from tests.agents import scripted_llama_index as llama

    def replies(steps: Sequence[Step]) -> list[Any]:
        made = []
        for step in steps:
            calls = [
                ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=arguments_of(call))
                for call in step.calls
            ]
            chunks = llama.said(step.text) if step.text else []
            made.append([*chunks, *([llama.chunk("", step.text, None, *calls)] if calls else [])])
        return made

    results = _results(transcript)

    def look(at: str) -> str:
        """Looks."""
        return str(results[at])

    def dig(at: str) -> str:
        """Digs."""
        raise RuntimeError(FAILURE)

    inner, _ = llama.agent(*replies(inner_steps(transcript)), tools=[dig], name=_inner_name(transcript))

    async def ask_expert(ctx: Context, about: str) -> str:
        """Asks."""
        handler = inner.run(user_msg=about)
        async for event in handler.stream_events():
            ctx.write_event_to_stream(event)
        return str(await handler).strip()

    ask_expert.__annotations__ = {"ctx": Context, "about": str, "return": str}
    return llama.agent(*replies(_answers(transcript)), tools=[look, ask_expert], name="main")[0]


# smolagents -------------------------------------------------------------------------------------------------------


def smolagents_agent(transcript: Transcript) -> Any:
    from smolagents import Tool, ToolCallingAgent
    from smolagents.models import (
        ChatMessageStreamDelta,
        ChatMessageToolCallFunction,
        ChatMessageToolCallStreamDelta,
    )

    from tests.agents.scripted_smolagents import Scripted

    class Streamed(Scripted):
        def generate_stream(self, messages: Any, *_: Any, **__: Any) -> Iterator[Any]:
            text, calls = self._reply(messages)
            yield ChatMessageStreamDelta(text)
            for place, (name, given) in enumerate(calls):
                function = ChatMessageToolCallFunction(given, name)
                call = ChatMessageToolCallStreamDelta(place, f"{name}-{place + 1}", "function", function)
                yield ChatMessageStreamDelta(tool_calls=[call])

    def replies(steps: Sequence[Step]) -> Any:
        made: list[Any] = []
        for step in steps:
            asked = [(call.name, json.dumps(given(call))) for call in step.calls]
            answer = [("final_answer", json.dumps({"answer": step.text}))]
            made.append((step.text, asked) if asked else ("", answer))
        return Streamed(*made)

    def given(call: ToolCall) -> Any:
        return {"task": arguments_of(call)["about"]} if call.name == "ask_expert" else call.input

    results = _results(transcript)

    class Look(Tool):  # type: ignore[misc]
        name = "look"
        description = "Looks."
        inputs = {"at": {"type": "string", "description": "where"}}  # noqa: RUF012
        output_type = "string"

        def forward(self, at: str) -> str:
            return str(results[at])

    class Dig(Look):
        name = "dig"

        def forward(self, at: str) -> str:
            raise ValueError(FAILURE)

    inner = ToolCallingAgent(
        tools=[Dig()], model=replies(inner_steps(transcript)), name="ask_expert", description="Asks."
    )
    return ToolCallingAgent(
        tools=[Look()], model=replies(_answers(transcript)), managed_agents=[inner], verbosity_level=0
    )


_STEPS = ("two steps", "two parallel calls", "a sub-agent with an error")
_PEOPLE = ("an approval with a reason", "a denied call", "edited arguments")

AGENTS: Mapping[str, AgentFramework] = {
    "pydantic-ai agent": AgentFramework("an agent of pydantic-ai", pydantic_ai_agent, (*_STEPS, *_PEOPLE)),
    "OpenAI agent": AgentFramework("an agent of the OpenAI Agents SDK", openai_agent, (*_STEPS, *_PEOPLE)),
    "LangGraph agent": AgentFramework("an agent of LangGraph", langgraph_agent, (*_STEPS, *_PEOPLE)),
    "Claude agent": AgentFramework("a client of the Claude Agent SDK", claude_agent, _STEPS),
    "LlamaIndex agent": AgentFramework("an agent of LlamaIndex", llama_index_agent, _STEPS),
    "smolagents agent": AgentFramework("an agent of smolagents", smolagents_agent, _STEPS),
}
"""All frameworks by their names."""


def messages_of_user(transcript: Transcript) -> list[Message]:
    """The user's messages."""
    return [message for message in transcript if message.role == "user"]
