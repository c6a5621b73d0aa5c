"""Checks that run in an environment with only the lowest declared version of each requirement.

    python lowest_versions.py [models | server | mcp | otel | redis | traces]

Without an argument, it runs the checks that need no extra. It prints ``well`` if all pass; a failing check raises.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]

RICH = r"""> [!user]
> Show me.

A formula $x^2$, a table and code:

| a | b |
| - | - |
| 1 | 2 |

```python
def f(): return 1
```

<img src="https://h.example/p.png" alt="A <map>">

> [!tool look call_1]
> input:
>   at: [1, 2]
> output: ok
"""


def chat() -> None:
    """Checks the extension in IPython: a cell that calls a tool, its static form, live view, completion, a schema."""
    from IPython.core.completer import provisionalcompleter
    from IPython.core.interactiveshell import InteractiveShell

    make: Any = InteractiveShell
    shell = make.instance()
    run(shell, "%load_ext toolcall_nb")
    run(shell, "from toolcall_nb import tool\n@tool\ndef add(a: int, b: int) -> int:\n    'Adds.'\n    return a + b")
    run(shell, "%%toolchat --speed 0\nWhat is 2 + 3?")
    (call,) = shell.user_ns["chat"].calls.values()
    assert (call.name, call.output) == ("add", call.input["a"] + call.input["b"]), call
    with provisionalcompleter():
        assert [found.text for found in shell.Completer.completions("%%toolchat --ap", 15)] == ["--approve"]
    rendered()
    live()
    schema()


def run(shell: Any, cell: str) -> None:
    shell.run_cell(cell).raise_error()


def rendered() -> None:
    from toolcall_nb import Transcript
    from toolcall_nb.render.html_output.sanitising import sanitise
    from toolcall_nb.render.saved_output import saved_bundle

    bundle = saved_bundle(Transcript.from_markdown(RICH))
    assert Transcript.from_markdown(bundle["text/markdown"]) == Transcript.from_markdown(RICH)
    assert [
        piece for piece in ("<msup>", "<table>", "<span class=", "<details") if piece not in bundle["text/html"]
    ] == []
    assert "<map>" not in sanitise('<img src="https://h.example/p.png" alt="A <map>">').html


def live() -> None:
    from toolcall_nb import Transcript
    from toolcall_nb.notebook.environment import Environment
    from toolcall_nb.notebook.live_display import LiveDisplay
    from toolcall_nb.notebook.run_displays import make_display

    transcript = Transcript.from_markdown(RICH)
    face = make_display(Environment.LIVE, info="x", on_stop=lambda: None, timings={})
    assert isinstance(face, LiveDisplay)
    for event in transcript.events():
        face.show(event)
    face.close("x")
    assert face.transcript == transcript


def schema() -> None:
    from toolcall_nb.tools import as_tool

    def several(ids: set[int], by_name: dict[str, float] | None = None) -> None:
        """Takes several."""

    assert as_tool(several).parameters["properties"]["ids"]["uniqueItems"] is True


def models() -> None:
    """Checks a turn with a tool call on each provider's wire, through the provider's own package."""
    sys.path.append(str(HERE.parent))
    from tests.support.provider_bodies import NAMES, call_reply, text_reply
    from tests.support.replay_server import ReplayServer, Reply
    from toolcall_nb import Chat
    from toolcall_nb.models import model
    from toolcall_nb.models.config import Config

    def weather(city: str) -> str:
        """The weather."""
        return f"Sunny in {city}"

    others = [("openai_chat", "groq:llama", ""), ("openai_chat", "mistral:large", "")]
    for wire, name, suffix in [*((wire, *named) for wire, named in NAMES.items()), *others]:
        replies = (
            Reply(call_reply(wire, "call_a", "weather", {"city": "Oslo"})),
            Reply(text_reply(wire, "It is sunny.")),
        )
        with ReplayServer(*replies) as server:
            asked = Chat(model(name, config=Config(base_url=server.url + suffix, api_key="k")), tools=[weather])
            answer = asked.send("How is Oslo?")
        assert answer.text == "It is sunny.", (name, answer)
        assert [call.output for call in answer.calls] == ["Sunny in Oslo"], (name, answer)
        assert asked.usage, name


def server() -> None:
    """Checks a request to the server, answered by server-sent events, and the server's page."""
    from toolcall_nb.server.serving import Server
    from toolcall_nb.server.settings import Settings

    served = Server(Settings(), port=0)
    served.start()
    try:
        assert b"<!doctype html>" in urllib.request.urlopen(served.address).read().lower()
        body = {"id": "t", "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}]}
        asked = urllib.request.Request(
            f"{served.address}/api/chat", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        stream = urllib.request.urlopen(asked).read().decode()
    finally:
        served.stop()
    assert '"type":"text-delta"' in stream
    assert stream.rstrip().endswith("data: [DONE]")


def mcp() -> None:
    """Checks that the mock model calls a tool of an MCP server."""
    from toolcall_nb import Chat
    from toolcall_nb.tools.mcp import mcp_tools

    with mcp_tools([sys.executable, str(HERE / "support" / "mcp_server.py")]) as there:
        asked = Chat("mock", tools=[tool for tool in there.tools if tool.name == "add"], speed=None)
        answer = asked.send("What is 2 + 3?")
    (call,) = answer.calls
    assert (call.name, call.error) == ("add", None), call


def otel() -> None:
    """Checks that a watch shows a call and a chat, each once."""
    from toolcall_nb import Chat, tool, watch

    @tool
    def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    with watch() as run:
        double(2)
        Chat("mock", tools=[double], speed=None).send("What is twice 3?")
    assert [call.name for call in run.calls.values()] == ["double", "double"], run.transcript


def redis() -> None:
    """Checks that the client takes the options of the store in Redis."""
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    client = Redis.from_url("redis://127.0.0.1/0", protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=1.0)
    assert callable(client.xread), client


def traces() -> None:
    """Checks tables of runs, their Parquet files, a query, and files that fsspec reads."""
    from toolcall_nb import read_many

    Path("one.md").write_text(RICH, encoding="utf-8")
    runs = read_many("one.md")
    assert runs.calls.df["name"].tolist() == ["look"]
    runs.to_parquet("cache")
    cached = read_many("cache")
    assert [run.transcript for run in cached] == [run.transcript for run in runs]
    assert cached.sql("select name, count(*) as n from calls group by all").values.tolist() == [["look", 1]]
    assert len(read_many(Path("one.md").absolute().as_uri())) == 1


if __name__ == "__main__":
    checks = {"models": models, "server": server, "mcp": mcp, "otel": otel, "redis": redis, "traces": traces}
    checks[sys.argv[1]]() if sys.argv[1:] else chat()
    print("well")
