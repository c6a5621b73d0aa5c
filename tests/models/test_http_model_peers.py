"""A URL as a model, served by the AI SDK itself: streamText with tools there, tools here, and approvals."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolcall_nb import Chat
from toolcall_nb.chat import Decision
from toolcall_nb.core.transcript import State, ToolCall
from toolcall_nb.models.config import Config
from toolcall_nb.models.http_model import HttpModel

_FOLDER = Path(__file__).resolve().parents[1] / "js"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the AI SDK's server answers."""
    node = shutil.which("node")
    if node is None or not (_FOLDER / "node_modules").is_dir():
        assert "TOOLCALL_NB_PEERS" not in os.environ, "./dev test has promised that Node and its packages are there"
        pytest.skip("no peers in Node: ./dev test installs them")
    command = [node, str(_FOLDER / "chat-server.mjs")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_FOLDER)
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/api/chat"
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


@pytest.mark.parametrize("wire", [None, "ui"])
@pytest.mark.parametrize(
    ("decision", "state", "told"),
    [
        (Decision(True), State.OUTPUT_AVAILABLE, "wiped sda"),
        (Decision(True, input={"disk": "sdb"}), State.OUTPUT_AVAILABLE, "wiped sdb"),
        (Decision(False, "Not that one"), State.OUTPUT_DENIED, "Not that one"),
    ],
    ids=["yes", "yes, but", "no"],
)
def test_the_ai_sdk_runs_its_tools_we_run_ours_and_a_person_is_asked(
    address: str, wire: str | None, decision: Decision, state: State, told: str
) -> None:
    def answer(call: ToolCall) -> Decision:
        return decision if call.name == "wipe" else Decision(True)

    chat = Chat(HttpModel(address, Config(wire=wire)), tools=[weather], ask_approval=answer)
    message = chat.send("Go")
    clock, here, wipe = message.calls
    assert (clock.name, clock.output) == ("clock", "noon")
    assert (here.name, here.output) == ("weather", "sunny in Oslo")
    assert (wipe.name, wipe.state) == ("wipe", state)
    assert [text in message.text for text in ("noon", "sunny in Oslo", told)] == [True] * 3
    assert chat.transcript.diagnostics == ()
    assert message.finish_reason is None


def test_the_ai_sdk_accepts_the_next_turn_too(address: str) -> None:
    chat = Chat(HttpModel(address), tools=[weather], ask_approval=lambda _: Decision(True))
    chat.send("Go")
    assert "wiped sda" in chat.send("And now?").text
    assert [message.role for message in chat.transcript.messages] == ["user", "assistant"] * 2
