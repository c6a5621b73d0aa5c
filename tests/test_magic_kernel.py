"""The magics in a real kernel, as a page runs them: cells that wait, what a mistake prints, what is completed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kernels import Kernel, Messages, running_kernel

SETUP = """%load_ext toolcall_nb
import threading
from toolcall_nb.models import MockModel

class Waiting:
    "A model that answers when the gate is open."
    def __init__(self):
        self.gate = threading.Event()

    def stream(self, messages, tools):
        self.gate.wait(60)
        yield from MockModel(scenario="text", speed=None).stream(messages, tools)

slow = Waiting()
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with running_kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


@pytest.fixture
def kernel(started: Kernel) -> Kernel:
    started.run("%reset -f")
    started.run(f"%reload_ext toolcall_nb\n{SETUP}")
    return started


def of_kind(messages: Messages, kind: str) -> list[dict[str, Any]]:
    return [message["content"] for message in messages if message["msg_type"] == kind]


def printed(messages: Messages) -> str:
    return "".join(content["text"] for content in of_kind(messages, "stream"))


def status(messages: Messages) -> str:
    """Whether Run All goes on after the cell: ``ok`` or ``error``."""
    (reply,) = of_kind(messages, "execute_reply")
    return str(reply["status"])


# Cells that follow a run in the background


def open_the_gate(kernel: Kernel) -> None:
    kernel.run("threading.Timer(0.5, slow.gate.set).start()")


@pytest.mark.parametrize("options", ["", "--new", "--background"])
def test_a_cell_waits_for_the_answer_in_the_background_and_run_all_goes_on(kernel: Kernel, options: str) -> None:
    assert status(kernel.run("%%toolchat --model slow --background\nOne")) == "ok"
    open_the_gate(kernel)
    messages = kernel.run(f"%%toolchat --speed 0 {options}\nTwo")
    assert status(messages) == "ok"
    notes = [*of_kind(messages, "display_data"), *of_kind(messages, "update_display_data")]
    texts = [note["data"]["text/plain"] for note in notes if set(note["data"]) == {"text/plain"}]
    assert texts == ["Waiting for the answer in the thread 'main'.", "Waited for the answer in the thread 'main'."]
    kernel.run("%%toolchat --speed 0\nThree")
    count = 4 if options == "--new" else 6
    assert printed(kernel.run("print(len(chat.transcript.messages))")) == f"{count}\n"


@pytest.mark.parametrize("command", ["new", "load notes.md"])
def test_a_command_that_needs_the_thread_waits_for_it_too(kernel: Kernel, command: str) -> None:
    kernel.run("from pathlib import Path\n_ = Path('notes.md').write_text('Hello')")
    kernel.run("%%toolchat --model slow --background\nOne")
    open_the_gate(kernel)
    assert status(kernel.run(f"%toolchat {command}")) == "ok"
    assert status(kernel.run("%%toolchat --speed 0\nTwo")) == "ok"


def test_an_interrupt_ends_the_waiting_and_not_the_answer(kernel: Kernel) -> None:
    def interrupt(message: dict[str, Any]) -> None:
        if "Waiting for" in message["content"].get("data", {}).get("text/plain", ""):
            kernel.interrupt()

    kernel.run("%%toolchat --model slow --background\nOne")
    messages = kernel.run("%%toolchat --speed 0\nTwo", react=interrupt)
    assert printed(messages).startswith("UsageError: The thread 'main' is still answering, and this cell was interr")
    assert status(messages) == "error"
    open_the_gate(kernel)
    kernel.run("%%toolchat --speed 0\nThree")
    said = printed(kernel.run("print([m.text for m in chat.transcript.messages if m.role == 'user'])"))
    assert said == "['One', 'Three']\n"


def test_another_thread_does_not_wait(kernel: Kernel) -> None:
    kernel.run("%%toolchat --model slow --background\nOne")
    assert "Wait" not in str(kernel.run("%%toolchat --speed 0 --thread other\nTwo"))
    kernel.run("slow.gate.set()")


def test_replays_in_the_background_take_no_name_from_a_thread(kernel: Kernel) -> None:
    for _ in range(2):
        assert status(kernel.run("%%toolchat --replay --speed 0.01 --background\nA long story, slowly told.")) == "ok"
    messages = kernel.run("%%toolchat --thread replay --speed 0\nHello")
    assert status(messages) == "ok"
    assert "Wait" not in str(messages)
    assert printed(kernel.run("print(chat.thread)")) == "replay\n"
    assert printed(kernel.run("%toolchat stop")) == ""
    assert printed(kernel.run("%toolchat stop")) == "Nothing is running.\n"
