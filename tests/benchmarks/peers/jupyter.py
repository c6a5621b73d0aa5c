"""A real kernel, fresh for this, in which a growing document is shown in each of the ways that there are."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.benchmarks.measuring import exponent
from tests.benchmarks.report import Cost, LeftOut, packaged
from tests.benchmarks.scale import Scale

__all__ = ["costs"]

_ROOT = Path(__file__).resolve().parents[3]
_WITHIN = 600
_MOST_DRAWN = 20_000

_UNSEEN = "the page then reads and draws all of it, not counted"
_WAYS = {
    "ours": ("toolcall_nb in a kernel", "toolcall-nb", "text to events to HTML, patches to the widget's comm"),
    "source": ("update_display of the source", "ipython", f"handle.update(Markdown(text)); {_UNSEEN}"),
    "html": ("update_display of the HTML", "ipython", f"handle.update(HTML(md.render(text))); {_UNSEEN}"),
    "chatlas": ("chatlas", "chatlas", f"IPyMarkdownDisplay.echo(delta); {_UNSEEN}"),
}
"""Ways of `kernel_side`: a name, a package, and what is run."""


def costs(scale: Scale) -> Iterator[Cost]:
    """Ours, the two forms of the pattern in which everything is displayed again, and chatlas."""
    with TemporaryDirectory() as home, _running_kernel(Path(home)) as client:
        for way, (name, package, how) in _WAYS.items():
            sizes = [size for size in scale.peers if way != "html" or size <= _MOST_DRAWN]
            _run(client, way, sizes[0], Path(home))  # imports and first uses
            found = {size: _run(client, way, size, Path(home)) for size in sizes}
            yield _cost(name, packaged(package), f"in a kernel, a message at each delta: {how}", found)


@contextmanager
def _running_kernel(home: Path) -> Iterator[BlockingKernelClient]:
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(home)}, cwd=str(home))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=_WITHIN)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _run(client: BlockingKernelClient, way: str, size: int, home: Path) -> Mapping[str, Any]:
    """One document shown one way. What the kernel sends is taken and thrown away: nobody here is slower than it."""
    result = home / f"{way}-{size}.json"
    result.unlink(missing_ok=True)
    client.execute(f"from tests.benchmarks.peers.kernel_side import run; run({way!r}, {size}, {str(result)!r})")
    end = time.monotonic() + _WITHIN
    while not client.shell_channel.socket.poll(0):
        while client.iopub_channel.socket.poll(20):
            client.iopub_channel.socket.recv_multipart()
        if time.monotonic() > end:
            break
    while client.shell_channel.socket.poll(0):
        client.shell_channel.socket.recv_multipart()
    if not result.exists():
        raise LeftOut(f"{_WAYS[way][1]} could not be run in the kernel: is it installed?")
    found: dict[str, Any] = json.loads(result.read_text("utf-8"))
    return found


def _cost(name: str, package: str, how: str, found: Mapping[int, Mapping[str, Any]]) -> Cost:
    seconds = {size: each["seconds"] / each["deltas"] for size, each in found.items()}
    sent = {size: each["bytes"] / each["deltas"] for size, each in found.items()}
    growth = exponent({size: each["seconds"] for size, each in found.items()})
    return Cost(name, package, how, seconds, sent, growth)
