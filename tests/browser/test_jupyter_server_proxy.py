"""The server's page through the real jupyter-server-proxy, below the base URL of a real Jupyter server.

The environment of the other tests has no jupyter-server-proxy, so Jupyter runs in an environment of its own.
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
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.environments import ROOT, clean_variables, make_environment

BASE = "/user/ada/"
TOKEN = "of-jupyter"
CELL = '''
import threading, time
%load_ext toolcall_nb
from toolcall_nb import tool
from toolcall_nb.core import events as ev

class Model:
    """Writes a word, waits until the page could show it, and calls a tool; asked to wait, it waits for a stop."""
    name = "scripted"
    def stream(self, messages, tools):
        prompt = [message for message in messages if message.role == "user"][-1].text
        answered = messages[-1].role == "assistant"
        yield ev.TextStart("t")
        if "wait" in prompt:
            for _ in range(3000):
                yield ev.TextDelta("t", "waiting ")
                time.sleep(0.05)
        yield ev.TextDelta("t", "Finished." if answered else "First words. ")
        yield ev.TextEnd("t")
        if not answered:
            time.sleep(1)
            yield ev.ToolInputAvailable("c", "weather", {"city": "Rome"})

@tool
def weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"

scripted = Model()
%toolchat model scripted
%toolchat approve ask
%toolchat serve 0
'''

RUN = """async ([code, base, token]) => {
    const kernel = await (await fetch(`${base}api/kernels`, {
        method: "POST", headers: { Authorization: `token ${token}` },
    })).json();
    const socket = new WebSocket(`ws://${location.host}${base}api/kernels/${kernel.id}/channels`);
    await new Promise((done) => (socket.onopen = done));
    const id = "run-1";
    socket.send(JSON.stringify({
        header: { msg_id: id, username: "", session: "s", msg_type: "execute_request", version: "5.3", date: "" },
        parent_header: {}, metadata: {}, channel: "shell", buffers: [],
        content: { code, silent: false, store_history: true, user_expressions: {}, allow_stdin: true },
    }));
    const outputs = [];
    return await new Promise((done) => {
        socket.onmessage = ({ data }) => {
            const message = JSON.parse(data);
            if (message.parent_header?.msg_id !== id) return;
            if (message.channel === "iopub") outputs.push(message.content);
            if (message.channel === "iopub" && message.content.execution_state === "idle") done(outputs);
        };
    });
}"""


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Jupyter server with jupyter-server-proxy and a base URL."""
    home = tmp_path_factory.mktemp("jupyter")
    programs = make_environment(home, f"{ROOT}[server]", "jupyter-server", "jupyter-server-proxy", "ipykernel").parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    options = {
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.base_url": BASE,
        "ServerApp.root_dir": home,
        "ServerApp.allow_root": True,
        "ServerApp.allow_remote_access": True,
        "IdentityProvider.token": TOKEN,
    }
    command = [
        str(programs / "python"),
        "-m",
        "jupyter_server",
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    log = home / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env=clean_variables(home), stdout=output, stderr=output)
    try:
        _wait_for(port, log)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(port: int, log: Path) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{BASE}api", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise RuntimeError(f"Jupyter did not start:\n{log.read_text()[-3000:]}")


@pytest.mark.thorough
@pytest.mark.parametrize("host", ["127.0.0.1", "hub.localhost"], ids=["this machine", "another name"])
def test_the_page_that_the_notebook_links_to_is_live_behind_jupyter(chromium: Browser, jupyter: int, host: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    origin = f"http://{host}:{jupyter}"
    try:
        page.goto(f"{origin}{BASE}lab?token={TOKEN}")  # logs in; without JupyterLab this is a 404
        outputs = page.evaluate(RUN, [CELL, BASE, TOKEN])
        link = _link(outputs)
        assert link.startswith(f"{BASE}proxy/")
        page.goto(origin + link)
        _use(page)
        assert problems == []
    finally:
        context.close()


def _link(outputs: list[Any]) -> str:
    (html,) = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    return str(re.search(r'href="([^"]*)"', html)[1])  # type: ignore[index]  # the output is a link


def _use(page: Page) -> None:
    """Has a turn with an approval, reloads, and stops another turn."""
    prompt = page.get_by_label("Message")
    prompt.fill("The weather in Rome?")
    prompt.press("Enter")
    expect(page.get_by_text("First words.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.get_by_role("group", name="May weather run?").get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Finished.")).to_be_visible()
    expect(page.locator(".tc-call")).to_contain_text("Completed")
    page.reload()
    expect(page.get_by_text("Finished.")).to_be_visible()
    prompt.fill("Now wait")
    prompt.press("Enter")
    expect(page.get_by_text("waiting").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
