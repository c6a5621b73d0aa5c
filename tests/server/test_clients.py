"""Published clients (the AI SDK's chat and AG-UI's agent, in Node) against a running server."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.support.node_clients import running_client
from tests.support.servers import PATIENCE, Gated, call, serving, words
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Message
from toolcall_nb.server.requests import RequestReader
from toolcall_nb.server.settings import Settings


def asking(*answers: str) -> Gated:
    return Gated(call("c", "weather", city="Rome"), *map(words, answers))


VERSIONS = pytest.mark.parametrize("ai_sdk", ["ai", "ai-6"])


def ran(scenario: str, model: Any = "mock", ai_sdk: str = "ai", **options: Any) -> tuple[dict[str, Any], str]:
    """What the client has in the end, and what the server has of the thread, as Markdown."""
    with (
        serving(model, **options) as client,
        running_client(scenario, str(client.base_url).rstrip("/"), ai_sdk) as node,
    ):
        found = ended(node)
        return found, client.get("/api/threads/t").text


def ended(node: subprocess.Popen[str]) -> dict[str, Any]:
    said, errors = node.communicate(timeout=PATIENCE)
    assert node.returncode == 0, errors
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def texts(message: dict[str, Any]) -> str:
    return "\n\n".join(part["text"] for part in message["parts"] if part["type"] == "text")


def the_tool(message: dict[str, Any]) -> dict[str, Any]:
    (part,) = (part for part in message["parts"] if part["type"].startswith("tool-"))
    return dict(part)


# The AI SDK's chat ------------------------------------------------------------------------------------------


@VERSIONS
def test_the_ai_sdks_chat_has_turns_and_can_regenerate_an_answer(ai_sdk: str) -> None:
    model = Gated(call("c", "weather", city="Lisbon"), words("Sunny."), words("Cold."), words("Cold, I say."))
    found, stored = ran("ai-turns", model, ai_sdk)
    assert (found["status"], found["error"], found["two"]) == ("ready", None, 4)
    first, second = [message for message in found["messages"] if message["role"] == "assistant"]
    assert (the_tool(first)["state"], the_tool(first)["output"]) == ("output-available", "sunny in Lisbon")
    assert (texts(first), texts(second)) == ("Sunny.", "Cold, I say.")
    assert "Cold, I say." in stored
    assert "Cold." not in stored


@VERSIONS
def test_the_ai_sdks_chat_asks_its_user_and_the_answer_goes_on_in_the_same_message(ai_sdk: str) -> None:
    found, _ = ran("ai-approved", asking("It is sunny."), ai_sdk, approval_mode="ask")
    assert found["asked"]["input"] == {"city": "Rome"}
    assert (found["status"], found["error"], len(found["messages"])) == ("ready", None, 2)
    answer = found["messages"][-1]
    assert (the_tool(answer)["state"], the_tool(answer)["output"]) == ("output-available", "sunny in Rome")
    assert texts(answer) == "It is sunny."


@VERSIONS
def test_the_ai_sdks_chat_denies_a_call_with_a_reason(ai_sdk: str) -> None:
    found, stored = ran("ai-denied", asking("Then not."), ai_sdk, approval_mode="ask")
    assert (found["status"], found["error"], len(found["messages"])) == ("ready", None, 2)
    assert the_tool(found["messages"][-1])["state"] == "output-denied"
    assert texts(found["messages"][-1]) == "Then not."
    assert "Not today." in stored


@VERSIONS
def test_the_ai_sdks_chat_reconnects_to_a_running_stream(ai_sdk: str) -> None:
    gate = threading.Event()
    model = Gated([*words("Before it left."), gate, *words("After it came back.", "u")])
    with serving(model) as client, running_client("ai-resumed", str(client.base_url).rstrip("/"), ai_sdk) as node:
        assert node.stdout is not None
        assert json.loads(node.stdout.readline()) == {"told": "resumed"}
        gate.set()
        found = ended(node)
    assert (found["status"], found["error"]) == ("ready", None)
    assert [message["role"] for message in found["messages"]] == ["user", "assistant"]
    assert texts(found["messages"][-1]) == "Before it left.\n\nAfter it came back."
    assert found["again"] == {"status": "ready", "error": None, "messages": found["messages"]}


def test_the_ai_sdks_chat_shows_why_the_server_refused_a_request() -> None:
    with (
        serving(limits={"message": 1_000}) as client,
        running_client("ai-refused", str(client.base_url).rstrip("/")) as node,
    ):
        found = ended(node)
    assert found["status"] == "error"
    assert "longer than 1,000 characters" in found["error"]  # the body of the answer, as it is


# AG-UI's agent ----------------------------------------------------------------------------------------------


def test_ag_uis_agent_has_turns() -> None:
    found, _ = ran("ag-ui-turns", Gated(call("c", "weather", city="Lisbon"), words("Sunny."), words("Cold.")))
    assert (found["failure"], found["errors"], found["interrupts"]) == (None, [], [])
    said = [(message["role"], message.get("content")) for message in found["messages"] if message.get("content")]
    assert said == [
        ("user", "What is the weather in Lisbon?"),
        ("tool", "sunny in Lisbon"),
        ("assistant", "Sunny."),
        ("user", "And in Oslo?"),
        ("assistant", "Cold."),
    ]


@pytest.mark.parametrize(
    ("scenario", "answer", "result"),
    [("ag-ui-approved", "It is sunny.", "sunny in Rome"), ("ag-ui-cancelled", "Then not.", None)],
)
def test_ag_uis_agent_is_interrupted_by_a_question_and_resumes(scenario: str, answer: str, result: str | None) -> None:
    found, _ = ran(scenario, asking(answer), approval_mode="ask")
    assert (found["failure"], found["errors"], found["interrupts"]) == (None, [], [])
    contents = [message.get("content") for message in found["messages"]]
    assert contents[-1] == answer
    assert result is None or result in contents


# Histories that clients send ----------------------------------------------------------------------------------

STEPS = [["c"], ["d"], ["Sunny."]]


def in_steps() -> Gated:
    """Two requests that are answered by a call alone, and an answer, which only their steps tell apart."""
    return Gated(*(call(name, "weather", city="Rome") for name in "cd"), *map(words, ("Sunny.", "Cold.", "Cold.")))


def steps_read(body: dict[str, Any]) -> list[list[str]]:
    """The texts and calls of each step of the answer in a request's history."""
    history = RequestReader(Settings()).read(body).history
    assert history is not None
    return [[getattr(part, "text", getattr(part, "id", "")) for part in step.parts] for step in history[1].steps]


@VERSIONS
def test_what_the_ai_sdks_chat_sends_of_an_answer_comes_back_with_its_steps(ai_sdk: str) -> None:
    found, _ = ran("ai-turns", in_steps(), ai_sdk)
    assert steps_read({"id": "new", "messages": found["messages"][:3]}) == STEPS


def test_what_ag_uis_agent_sends_of_an_answer_comes_back_with_its_steps() -> None:
    found, _ = ran("ag-ui-turns", in_steps())
    messages = found["messages"]
    second = next(number for number, message in enumerate(messages) if number and message["role"] == "user")
    assert steps_read({"threadId": "new", "runId": "r", "messages": messages[: second + 1]}) == STEPS


def request_of(messages: Sequence[Message]) -> list[Any]:
    """What a provider is sent of the messages: each step of an answer, and the results of its calls."""
    sent: list[Any] = []
    for message in messages:
        sent += [] if message.role == "assistant" else [(message.role, message.text)]
        for step in message.steps if message.role == "assistant" else ():
            sent.append(("assistant", step.text, [(call.id, call.input) for call in step.calls]))
            sent += [("tool", [(call.id, call.output) for call in step.calls])] if step.calls else []
    return sent


def test_what_one_request_was_answered_with_is_one_step_however_many_messages_it_is() -> None:
    reply = [
        *(ev.ReasoningDelta("r", "Hm"), ev.ReasoningEnd("r"), ev.TextDelta("t", "I look."), ev.TextEnd("t")),
        *(ev.ReasoningDelta("q", "So"), ev.ReasoningEnd("q"), ev.TextDelta("u", "At once."), ev.TextEnd("u")),
        *call("c", "weather", city="Rome"),
    ]
    found, _ = ran("ag-ui-turns", Gated(reply, words("Sunny."), words("Cold.")))
    messages = found["messages"]
    assert [message["role"] for message in messages[1:5]] == ["reasoning", "assistant"] * 2
    second = next(number for number, message in enumerate(messages) if number and message["role"] == "user")
    body = {"threadId": "new", "runId": "r", "messages": messages[: second + 1]}
    assert steps_read(body) == [["Hm", "I look.", "So", "At once.", "c"], ["Sunny."]]


@pytest.mark.parametrize("is_known", [True, False], ids=["its own thread", "a thread that it does not know"])
def test_each_request_to_the_model_is_a_prefix_of_the_next(is_known: bool) -> None:
    model = in_steps()
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "How warm is it?"}]}
    with serving(model) as client:
        client.post("/api/chat", json={"id": "t", "messages": [question]})
        shown = client.get("/api/threads/t", headers={"accept": "application/json"}).json()["messages"]
        again = {**question, "id": "u2"}
        body = {"id": "t" if is_known else "other", "messages": [*shown, again]}
        client.post("/api/chat", json=body)
    sent = [request_of(messages) for messages in model.asked]
    assert [len(each) for each in sent] == [1, 3, 5, 7]
    assert all(after[: len(before)] == before for before, after in pairwise(sent))
