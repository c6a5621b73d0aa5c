"""Recordings that inspect-ai and logfire make, each in an environment of its own, are read whole.

Both bring many packages, and logfire changes what pydantic-ai does as soon as it is installed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.environments import make_environment
from toolcall_nb import read, read_many
from toolcall_nb.core.transcript import State

_INSPECT = '''
from types import SimpleNamespace

import tiktoken
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import ToolError, tool

# Its tables of tokens would come from the network.
tiktoken.get_encoding = lambda _: SimpleNamespace(name="words", encode=lambda text, **_: text.split())


@tool
def weather():
    async def execute(city: str) -> str:
        """Looks the weather up.

        Args:
            city: The city.
        """
        if city == "Nowhere":
            raise ToolError("no such city")
        return f"clear in {city}"

    return execute


cities = ("Lyon", "Nowhere")
for form in ("eval", "json"):
    replies = []
    for city in cities:
        replies.append(ModelOutput.for_tool_call("mockllm/model", "weather", {"city": city}, content="I'll look."))
        replies.append(ModelOutput.from_content("mockllm/model", f"That is all about {city}."))
    task = Task(
        dataset=[Sample(input=f"How is {city}?", target="clear") for city in cities],
        solver=[system_message("Be brief."), use_tools(weather()), generate()],
    )
    model = get_model("mockllm/model", custom_outputs=replies)
    eval(task, model=model, log_dir=form, log_format=form, display="none", max_samples=1)
'''

_LOGFIRE = '''
import json

import logfire
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

exporter = InMemorySpanExporter()
logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[SimpleSpanProcessor(exporter)])
logfire.instrument_pydantic_ai()


def answer(messages, info):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("weather", {"city": "Lyon"}, tool_call_id="call_1")])
    return ModelResponse(parts=[TextPart("It is clear.")])


agent = Agent(FunctionModel(answer), system_prompt="Be brief.")


@agent.tool_plain
def weather(city: str) -> str:
    """Looks the weather up."""
    return f"clear in {city}"


agent.run_sync("How is Lyon?")
with open("spans.json", "w") as file:
    json.dump([json.loads(span.to_json()) for span in exporter.get_finished_spans()], file)
'''


def run_program(program: str, folder: Path, *packages: str) -> None:
    """Runs a program in a new environment with these packages, in the folder."""
    python = make_environment(folder, *packages)
    subprocess.run([str(python), "-c", program], cwd=folder, check=True)


@pytest.mark.thorough
def test_logs_of_inspect_are_read_in_both_of_its_forms(tmp_path: Path) -> None:
    run_program(_INSPECT, tmp_path, "inspect-ai>=0.3.285", "openai")
    for form in ("eval", "json"):
        runs = read_many(tmp_path / form)
        assert not runs.unread
        lyon, nowhere = (run.transcript for run in runs)
        for transcript, city in ((lyon, "Lyon"), (nowhere, "Nowhere")):
            assert [message.role for message in transcript] == ["system", "user", "assistant"]
            assert transcript[1].text == f"How is {city}?"
            assert transcript[2].text == f"I'll look.\n\nThat is all about {city}."
        (clear,), (failed,) = lyon.calls.values(), nowhere.calls.values()
        assert (clear.name, clear.input, clear.output) == ("weather", {"city": "Lyon"}, "clear in Lyon")
        assert (failed.state, failed.error) == (State.OUTPUT_ERROR, "no such city")
        assert clear.seconds is not None
        assert failed.seconds is not None


@pytest.mark.thorough
def test_spans_of_logfire_are_read(tmp_path: Path) -> None:
    run_program(_LOGFIRE, tmp_path, "logfire>=5", "pydantic-ai-slim>=2.68")
    transcript = read(tmp_path / "spans.json")
    assert [(message.role, message.text) for message in transcript] == [
        ("system", "Be brief."),
        ("user", "How is Lyon?"),
        ("assistant", "It is clear."),
    ]
    (call,) = transcript.calls.values()
    assert (call.id, call.input, call.output) == ("call_1", {"city": "Lyon"}, "clear in Lyon")
    assert call.seconds is not None
