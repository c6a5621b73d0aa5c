"""Runs in a real marimo notebook: live widgets with approval and Stop, and displays of finished things.

The environment of the other tests has no marimo, so it runs in an environment of its own.
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.environments import ROOT, clean_variables, make_environment

NOTEBOOK = '''
import marimo

app = marimo.App()


@app.cell
def _():
    import time
    from toolcall_nb import Chat, Transcript, live, tool
    from toolcall_nb.core import events as ev

    class Model:
        """Says something, waits until the page could show it, and calls a tool; asked to wait, it waits for a stop."""

        name = "scripted"

        def stream(self, messages, tools):
            prompt = [message for message in messages if message.role == "user"][-1].text
            answered = messages[-1].role == "assistant"
            yield ev.TextStart("t")
            if "wait" in prompt:
                for _ in range(3000):
                    yield ev.TextDelta("t", "waiting ")
                    time.sleep(0.05)
            yield ev.TextDelta("t", "All is done." if answered else "First words.")
            yield ev.TextEnd("t")
            if not answered:
                time.sleep(1)
                yield ev.ToolInputAvailable("c", "weather", {"city": "Rome"})

    @tool
    def weather(city: str) -> str:
        """The weather."""
        return f"sunny in {city}"

    def chat():
        return Chat(Model(), tools=[weather])

    return Transcript, chat, live


@app.cell
def _(chat, live):
    live(chat(), "The weather in Rome?", approval_mode="ask")
    return


@app.cell
def _(chat, live):
    live(chat(), "Now wait")
    return


@app.cell
def _(Transcript):
    Transcript.from_markdown("> [!tool search id1]\\n> output: of a transcript\\n")
    return


@app.cell
def _(Transcript):
    Transcript.from_markdown("Some **bold** words").messages[0]
    return


@app.cell
def _(chat):
    chat()
    return


if __name__ == "__main__":
    app.run()
'''


@pytest.fixture(scope="module")
def marimo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a marimo app with the notebook above."""
    home = tmp_path_factory.mktemp("marimo")
    programs = make_environment(home, str(ROOT), "marimo").parent
    (home / "notebook.py").write_text(NOTEBOOK, "utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [str(programs / "marimo"), "run", "notebook.py", "--headless", "--no-token", "--port", str(port)]
    address, log = f"http://127.0.0.1:{port}", home / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=home, env=clean_variables(home), stdout=output, stderr=output)
    try:
        _wait_for(address, log)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(address: str, log: Path) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise RuntimeError(f"marimo did not start:\n{log.read_text()[-3000:]}")


@pytest.mark.thorough
def test_runs_are_live_in_marimo_and_can_be_approved_and_stopped(chromium: Browser, marimo: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    try:
        page.goto(marimo)
        expect(page.get_by_text("First words.")).to_be_visible()
        panel = page.get_by_role("group", name="May weather run?")
        expect(panel).to_be_visible()
        expect(page.get_by_text("All is done.")).to_have_count(0)
        panel.get_by_role("button", name="Approve", exact=True).click()
        expect(page.get_by_text("All is done.")).to_be_visible()
        expect(panel).to_have_count(0)
        waiting = page.get_by_text(re.compile("waiting waiting"))
        expect(waiting).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        expect(page.get_by_text("Stopped").first).to_be_visible()
        expect(page.get_by_text("search", exact=True)).to_be_visible()
        expect(page.locator("strong", has_text="bold")).to_be_visible()
        expect(page.get_by_text("approve: auto").first).to_be_visible()
        assert problems == []
    finally:
        context.close()
