"""A real kernel, fresh for this, in which a growing document is shown in each of the ways that there are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.measuring import exponent
from tests.benchmarks.report import Cost, LeftOut, packaged
from tests.benchmarks.scale import Scale
from tests.kernels import Kernel, running_kernel

__all__ = ["costs"]

_Found = Mapping[int, Mapping[str, Any]]

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
    with TemporaryDirectory() as home, running_kernel(Path(home)) as kernel:
        for way, (name, package, how) in _WAYS.items():
            _run(kernel, way, scale.peers[:1], home)  # imports and first uses
            yield _cost(
                name, package, f"in a kernel, a message at each delta: {how}", _run(kernel, way, scale.peers, home)
            )


def _run(kernel: Kernel, way: str, sizes: Sequence[int], home: str) -> _Found:
    found: dict[int, dict[str, Any]] = {}
    for size in sizes:
        result = Path(home) / f"{way}-{size}.json"
        kernel.run(f"from tests.benchmarks.peers.kernel_side import run; run({way!r}, {size}, {str(result)!r})")
        if not result.exists():
            raise LeftOut(f"{_WAYS[way][1]} could not be run in the kernel: is it installed?")
        found[size] = json.loads(result.read_text("utf-8"))
    return found


def _cost(name: str, package: str, how: str, found: _Found) -> Cost:
    seconds = {size: each["seconds"] / each["deltas"] for size, each in found.items()}
    sent = {size: each["bytes"] / each["deltas"] for size, each in found.items()}
    return Cost(
        name, packaged(package), how, seconds, sent, exponent({size: each["seconds"] for size, each in found.items()})
    )
