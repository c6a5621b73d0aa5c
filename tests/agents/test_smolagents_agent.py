"""Agents of smolagents answer a chat: tools, code, managed agents, history, stopping."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from PIL import Image
from smolagents import CodeAgent, Model, Tool, ToolCallingAgent
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
)
from smolagents.monitoring import TokenUsage

from tests.agents.scripted_smolagents import ADD, ANSWER, REPLIES, Add, Scripted, adder
from tests.support.outlines import outline
from toolcall_nb import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import ErrorPart, FilePart, ReasoningPart, State


class Streamed(Scripted):
    """Streams words, and arguments in pieces."""

    def generate_stream(self, messages: Any, *_: Any, **__: Any) -> Iterator[ChatMessageStreamDelta]:
        text, calls = self._reply(messages)
        for word in text.split(" "):
            yield ChatMessageStreamDelta(f"{word} ")
        for place, (name, given) in enumerate(calls):
            for piece_name, piece in ((name, given[:4]), ("", given[4:])):
                function = ChatMessageToolCallFunction(piece, piece_name)
                call_id = self.ids.format(name=name, place=place + 1)
                call = ChatMessageToolCallStreamDelta(place, call_id, "function", function)
                yield ChatMessageStreamDelta(tool_calls=[call])
        yield ChatMessageStreamDelta(token_usage=TokenUsage(3, 4))


@pytest.mark.parametrize("model", [Scripted(*REPLIES), Streamed(*REPLIES)], ids=["whole", "streamed"])
def test_an_agent_runs_its_tools(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    chat = Chat(adder(model))
    events = list(chat.stream("1 + 2?"))
    (call,) = chat.calls.values()
    assert (call.id, call.name, call.input, call.output) == ("add-1", "add", {"x": 1, "y": 2}, 3)
    assert chat.transcript.messages[-1].text.split() == ["Let", "me", "see.", "Three."]
    assert (chat.usage["inputTokens"], chat.usage["outputTokens"]) == (6, 8)
    deltas = [event.input_text_delta for event in events if isinstance(event, ev.ToolInputDelta)]
    assert deltas == (['{"x"', ': 1, "y": 2}'] if isinstance(model, Streamed) else [])
    assert chat.transcript.diagnostics == ()
    assert capsys.readouterr().out == ""


def test_in_jupyter_nothing_else_is_displayed(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed: list[Any] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("IPython.display.display", displayed.append)
    Chat(adder(Streamed(*REPLIES))).send("1 + 2?")
    assert displayed == []


def test_the_settings_of_the_agent_are_as_before_after_a_run() -> None:
    agent = adder(Streamed(*REPLIES))
    before = (agent.logger.console, agent.step_callbacks, agent.stream_outputs)
    Chat(agent).send("1 + 2?")
    assert (agent.logger.console, agent.step_callbacks, agent.stream_outputs) == before


def texts(messages: list[ChatMessage]) -> list[tuple[str, str]]:
    return [
        (message.role.value, "".join(part.get("text", "<image>") for part in message.content))
        for message in messages
        if isinstance(message.content, list)
    ]


def test_the_history_goes_with_each_turn() -> None:
    model = Streamed(*REPLIES, ("", [("final_answer", '{"answer": "Four."}')]))
    chat = Chat(adder(model))
    chat.send("1 + 2?")
    assert chat.send("And 1 more?").text.strip() == "Four."
    sent = texts(model.asked[-1])[1:]
    assert [role for role, _ in sent] == ["user", "assistant", "tool-call", "tool-response", "assistant", "user"]
    assert [sent[place][1].strip() for place in (0, 1, 3, 4, 5)] == [
        "New task:\n1 + 2?",
        "Let me see.",
        "Observation:\n3",
        "Three.",
        "New task:\nAnd 1 more?",
    ]


def test_code_is_a_call_and_its_prints_are_its_result() -> None:
    model = Streamed("Thought. <code>\nprint(add(x=1, y=2))\n</code>", '<code>\nfinal_answer("Three.")\n</code>')
    chat = Chat(CodeAgent(tools=[Add()], model=model))
    answer = chat.send("1 + 2?")
    first, second = chat.calls.values()
    assert (first.name, first.input) == ("python_interpreter", {"code": "print(add(x=1, y=2))"})
    assert "3" in str(first.output)
    assert second.state is State.OUTPUT_AVAILABLE
    assert answer.text.endswith("Three.")


def test_a_tool_that_fails_is_an_error_of_its_call_and_the_agent_goes_on() -> None:
    model = Streamed(("", [("add", '{"x": -1, "y": 2}')]), ("", [ANSWER]))
    chat = Chat(adder(model))
    assert chat.send("-1 + 2?").text.strip() == "Three."
    (call,) = chat.calls.values()
    assert call.state is State.OUTPUT_ERROR
    assert "ValueError: too small" in str(call.error)


def test_a_managed_agent_is_nested_in_the_call_that_runs_it() -> None:
    inner = adder(Streamed(*REPLIES), name="adder", description="Adds.")
    model = Streamed(("I ask.", [("adder", '{"task": "1 + 2?"}')]), ("", [("final_answer", '{"answer": "It is 3."}')]))
    chat = Chat(ToolCallingAgent(tools=[], model=model, managed_agents=[inner]))
    answer = chat.send("1 + 2?")
    calls = {call.name: call for call in chat.calls.values()}
    assert (calls["add"].parent, calls["add"].output) == (calls["adder"].id, "3")
    agents, texts, _ = zip(*outline(answer, calls["adder"].id), strict=True)
    assert (set(agents), texts[0].split()) == ({"adder"}, ["Let", "me", "see."])
    assert answer.text.split() == ["I", "ask.", "It", "is", "3."]
    assert "Three." in str(calls["adder"].output)
    assert chat.usage["inputTokens"] == 12


def test_a_call_of_a_managed_agent_that_fails_is_nested_too() -> None:
    """Its step has no calls but those of the model's message."""
    replies = [("", [("add", '{"x": -1, "y": 2}')]), ("", [ANSWER])]
    inner = adder(Streamed(*replies), name="adder", description="Adds.")
    model = Streamed(("", [("adder", '{"task": "-1 + 2?"}')]), ("", [("final_answer", '{"answer": "It is 1."}')]))
    chat = Chat(ToolCallingAgent(tools=[], model=model, managed_agents=[inner]))
    chat.send("-1 + 2?")
    outer, add = chat.calls.values()
    assert (outer.name, outer.state) == ("adder", State.OUTPUT_AVAILABLE)
    assert (add.name, add.input, add.parent, add.state) == ("add", {"x": -1, "y": 2}, outer.id, State.OUTPUT_ERROR)
    assert "ValueError: too small" in str(add.error)


def test_a_plan_is_reasoning() -> None:
    chat = Chat(adder(Scripted("First I add.", *REPLIES), planning_interval=5))
    (plan,) = [part for part in chat.send("1 + 2?").parts if isinstance(part, ReasoningPart)]
    assert "First I add." in plan.text


def png(colour: str) -> bytes:
    data = BytesIO()
    Image.new("RGB", (2, 2), colour).save(data, "PNG")
    return data.getvalue()


class Paint(Tool):  # type: ignore[misc]
    name = "paint"
    description = "Paints."
    inputs: dict[str, Any] = {}  # noqa: RUF012
    output_type = "image"

    def forward(self) -> Any:
        return Image.new("RGB", (2, 2), "red")


def test_images_go_both_ways() -> None:
    model = Streamed(("", [("paint", "{}")]), ("", [("final_answer", '{"answer": "image.png"}')]))
    chat = Chat(ToolCallingAgent(tools=[Paint()], model=model))
    file = ev.File(f"data:image/png;base64,{base64.b64encode(png('blue')).decode()}", "image/png")
    list(chat.stream("Like this.", files=[file]))
    assert "<image>" in texts(model.asked[0])[1][1] + texts(model.asked[0])[-1][1]
    (painted,) = [part for part in chat.transcript.messages[-1].parts if isinstance(part, FilePart)]
    assert painted.media_type == "image/png"


def test_a_stopped_chat_interrupts_the_agent_after_its_step() -> None:
    is_stopped = threading.Event()

    class Wait(Tool):  # type: ignore[misc]
        name = "wait"
        description = "Waits."
        inputs: dict[str, Any] = {}  # noqa: RUF012
        output_type = "string"

        def forward(self) -> str:
            is_stopped.wait(10)
            return "waited"

    model = Streamed(("", [("wait", "{}")]), ("", [ANSWER]))
    agent = ToolCallingAgent(tools=[Wait()], model=model)
    chat = Chat(agent)
    for event in chat.stream("Wait."):
        if isinstance(event, ev.ToolExecution):
            chat.stop()
            is_stopped.set()
    assert chat.transcript.messages[-1].aborted == "stopped"
    assert len(model.asked) == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "toolcall_nb-smolagents"]


def test_an_exception_of_the_model_is_said() -> None:
    answer = Chat(adder(Streamed())).send("?")
    assert "pop from empty list" in "".join(part.text for part in answer.parts if isinstance(part, ErrorPart))


@pytest.mark.parametrize("kind", [Scripted, Streamed])
def test_a_call_with_the_id_of_another_one_is_shown(kind: type[Scripted]) -> None:
    model = kind(("Two.", [ADD, ("add", '{"x": 3, "y": 4}')]), ("", [ANSWER]))
    model.ids = "c1"
    chat = Chat(adder(model))
    chat.send("1 + 2, and 3 + 4?")
    assert [call.input for call in chat.calls.values()] == [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
