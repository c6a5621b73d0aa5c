"""Measures each way of showing a growing document, in a new kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient

from tests.benchmarks.kernels import run, running_kernel
from tests.benchmarks.measuring import exponent
from tests.benchmarks.report import Cost, LeftOut, packaged
from tests.benchmarks.scale import Scale

__all__ = ["costs"]

_MOST_DRAWN = 20_000

_UNSEEN = "the page then reads and draws all of it, not counted"
_WAYS = {
    "ours": ("toolcall_nb in a kernel", "toolcall-nb", "text to events to HTML, patches to the widget's comm"),
    "source": ("update_display of the source", "ipython", f"handle.update(Markdown(text)); {_UNSEEN}"),
    "html": ("update_display of the HTML", "ipython", f"handle.update(HTML(md.render(text))); {_UNSEEN}"),
    "chatlas": ("chatlas", "chatlas", f"IPyMarkdownDisplay.echo(delta); {_UNSEEN}"),
}
"""The ways of `kernel_side`: name, package, and the code that runs."""


def costs(scale: Scale) -> Iterator[Cost]:
    """Measures our own way, the two ways of displaying everything again, and chatlas."""
    with TemporaryDirectory() as home, running_kernel(Path(home)) as client:
        for way, (name, package, how) in _WAYS.items():
            sizes = [size for size in scale.peers if way != "html" or size <= _MOST_DRAWN]
            _run(client, way, sizes[0], Path(home))  # imports at first use
            found = {size: _run(client, way, size, Path(home)) for size in sizes}
            yield _cost(name, packaged(package), f"in a kernel, a message at each delta: {how}", found)


def _run(client: BlockingKernelClient, way: str, size: int, home: Path) -> Mapping[str, Any]:
    """Shows one document in one way; returns the result."""
    result = home / f"{way}-{size}.json"
    result.unlink(missing_ok=True)
    run(client, f"from tests.benchmarks.peers.kernel_side import run; run({way!r}, {size}, {str(result)!r})")
    if not result.exists():
        raise LeftOut(f"{_WAYS[way][1]} could not be run in the kernel: is it installed?")
    found: dict[str, Any] = json.loads(result.read_text("utf-8"))
    return found


def _cost(name: str, package: str, how: str, found: Mapping[int, Mapping[str, Any]]) -> Cost:
    seconds = {size: each["seconds"] / each["deltas"] for size, each in found.items()}
    sent = {size: each["bytes"] / each["deltas"] for size, each in found.items()}
    growth = exponent({size: each["seconds"] for size, each in found.items()})
    return Cost(name, package, how, seconds, sent, growth)
