"""Starts Firefox and relays its WebDriver BiDi protocol to Playwright, which starts this program in Firefox's place.

Playwright sets the colour scheme of each context and page. Debian's Firefox does not know that command of the
protocol, and Playwright takes its error for fatal. Here such an error becomes a success: pages keep the colour scheme
that Firefox has. All other messages are passed on as they are.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

_OPTIONAL = "emulation.setMediaFeaturesOverride"
_LISTENS = re.compile(rb"WebDriver BiDi listening on (ws://\S+)")


async def main() -> int:
    """Runs Firefox with the arguments of this program until it ends; returns its exit code."""
    firefox = await asyncio.create_subprocess_exec(
        os.environ["TOOLCALL_NB_FIREFOX"], *sys.argv[1:], stderr=asyncio.subprocess.PIPE
    )
    assert firefox.stderr is not None
    async for line in firefox.stderr:
        if found := _LISTENS.search(line):
            break
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
    else:
        return await firefox.wait()
    address = found[1].decode()

    async def relay(playwright: ServerConnection) -> None:
        request = playwright.request
        assert request is not None
        async with connect(address + request.path, max_size=None, compression=None) as browser:
            await _relay(playwright, browser)

    async with serve(relay, "127.0.0.1", 0, max_size=None, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        print(f"WebDriver BiDi listening on ws://127.0.0.1:{port}", file=sys.stderr, flush=True)
        async for line in firefox.stderr:
            sys.stderr.buffer.write(line)
            sys.stderr.flush()
        return await firefox.wait()


async def _relay(playwright: ServerConnection, browser: ClientConnection) -> None:
    """Passes messages on in both directions until one side closes its connection."""
    optional: set[int] = set()

    async def send() -> None:
        async for text in playwright:
            if _OPTIONAL in str(text):
                optional.add(json.loads(text)["id"])
            await browser.send(text)
        await browser.close()

    async def receive() -> None:
        async for text in browser:
            message = json.loads(text) if optional else {}
            if message.get("id") in optional:
                optional.remove(message["id"])
                if message.get("error") == "unknown command":
                    text = json.dumps({"type": "success", "id": message["id"], "result": {}})
            await playwright.send(text)
        await playwright.close()

    await asyncio.gather(send(), receive(), return_exceptions=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
