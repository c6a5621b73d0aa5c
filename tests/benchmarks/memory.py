"""Measures the memory that a long stream takes; each case runs in a new process, which prints its figures.

Figures are the resident memory beyond that before the stream, with everything imported: its peak, and at the end. The
text is generated on the fly and not kept. As in a cell, the transcript with all of its text, the HTML of all blocks and
the tree of nodes are kept.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.documents import blocks
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.dialects import detector
from toolcall_nb.render import LiveHtml

__all__ = ["peak_bytes", "resident_bytes", "rows"]

_ROOT = Path(__file__).resolve().parents[2]
_MESSAGE = 20_000

_CASES = {
    "one": ("shown live, one message", 1),
    "many": (f"shown live, messages of {_MESSAGE // 1000} kB", 10),
    "unseen": ("taken in and not shown, one message", 10),
}
"""By case, its description, and the fraction of the full size with which it runs."""


def rows(scale: Scale) -> Iterator[Row]:
    """Measures the peak memory divided by the text's size."""
    for case, (words, part) in _CASES.items():
        found = _measure(case, scale.stream // part)
        size = found["text"]
        detail = (
            f"{size / 1e6:.3g} MB of text; left at the end {found['left'] / size:.2f} times, {found['seconds']:.0f} s"
        )
        name = f"memory after a stream of {scale.stream / part / 1e6:g} MB, {words}"
        yield Row(name, found["peak"] / size, "times", 3, 2, detail)


def _measure(case: str, size: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.memory", case, str(size)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _run(case: str, size: int) -> dict[str, float]:
    """Runs a case in the new process."""
    live, builder = LiveHtml(), TranscriptBuilder()
    take: Callable[[Event], object] = builder.apply if case == "unseen" else live.apply
    _take(take, _MESSAGE, "many")  # imports at first use
    before, start = resident_bytes(), os.times().user
    text = _take(take, size, case)
    gc.collect()
    seconds = os.times().user - start
    return {"text": text, "peak": peak_bytes() - before, "left": resident_bytes() - before, "seconds": seconds}


def _take(take: Callable[[Event], object], size: int, case: str) -> int:
    """Feeds about ``size`` bytes of text; returns their exact number."""
    detect = detector("callout")
    taken = 0
    take(ev.Start())
    for piece in _pieces(size):
        for event in detect.feed(piece):
            take(event)
        taken += len(piece)
        if case == "many":
            for event in [*detect.close(), ev.Finish(), ev.Start()]:
                take(event)
            detect = detector("callout")
    for event in [*detect.close(), ev.Finish()]:
        take(event)
    return taken


def _pieces(size: int) -> Iterator[str]:
    """Yields complete blocks, joined into messages."""
    piece: list[str] = []
    length = 0
    for block in blocks(size):
        piece.append(block)
        length += len(block)
        if length >= _MESSAGE:
            yield "".join(piece)
            piece, length = [], 0
    yield "".join(piece)


def resident_bytes() -> int:
    """Returns the resident bytes of this process; its peak so far if the system does not report them."""
    return _of_system("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """Returns the peak of resident bytes. `getrusage` alone would give the parent's peak if that is higher."""
    return _of_system("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _of_system(name: str) -> int:
    """Returns a figure of this process from Linux, in bytes; 0 on other systems."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], int(sys.argv[2]))))
