"""Measures ``%load_ext toolcall_nb`` and the first run in a new kernel, relative to a bare anywidget there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.benchmarks.kernels import run, running_kernel, seconds_to_display
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale

__all__ = ["rows"]

_LOAD = "get_ipython().run_line_magic('load_ext', 'toolcall_nb')"
_VIEW = (
    "from toolcall_nb.notebook.live_display import LiveDisplay;"
    " import toolcall_nb.notebook.widget, toolcall_nb.dialects.callout"
)

_WIDGET = """import anywidget
class Bare(anywidget.AnyWidget):
    _esm = "export default {render() {}}"
Bare()"""
_IDLE = 1.5
"""Seconds between the cell that loads the extension and the first run, in which a person types."""

_TIMED = """
import time
from pathlib import Path
start = time.process_time()
{code}
Path({result!r}).write_text(str(time.process_time() - start))
"""


def rows(scale: Scale) -> Iterator[Row]:
    """Measures CPU seconds in new kernels, in turn; the first round fills caches and does not count."""
    codes = {"anywidget": "import anywidget", "load": _LOAD, "view": f"{_LOAD}\n{_VIEW}"}
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(scale.fresh + 1):
        for name, code in codes.items():
            times[name].append(_seconds(code))
    base, load, view = (median(each[1:] or each) for each in times.values())
    detail = f"{load * 1e3:.0f} ms against {base * 1e3:.0f} ms, medians of {scale.fresh} kernels each"
    yield Row("%load_ext in a kernel, against importing anywidget", load / base, "times", 1.6, 1.1, detail)
    yield Row("%load_ext and what the first live run imports, against the same", view / base, "times")
    yield from _first_runs(scale)


def _first_runs(scale: Scale) -> Iterator[Row]:
    """Measures seconds from the request to the first display: after a pause in which a person types, and at once."""
    run_cell = "%%toolchat\nHello"
    cells = {"bare": ("", _WIDGET, 0.0), "typed": (_LOAD, run_cell, _IDLE), "at once": (_LOAD, run_cell, 0.0)}
    times: dict[str, list[float]] = {name: [] for name in cells}
    for _ in range(scale.fresh + 1):
        for name, (before, cell, pause) in cells.items():
            with TemporaryDirectory() as home, running_kernel(Path(home)) as client:
                run(client, before)
                time.sleep(pause)
                times[name].append(seconds_to_display(client, cell))
    bare, typed, at_once = (median(each[1:] or each) for each in times.values())
    detail = f"{typed * 1e3:.0f} ms against {bare * 1e3:.0f} ms, medians of {scale.fresh} kernels each"
    yield Row(
        "first %%toolchat until its first display, against a bare anywidget's", typed / bare, "times", 1.3, 1.1, detail
    )
    detail = f"{at_once * 1e3:.0f} ms against {bare * 1e3:.0f} ms"
    yield Row("the same right after %load_ext, as with Run All", at_once / bare, "times", 1.3, 1.1, detail)


def _seconds(code: str) -> float:
    with TemporaryDirectory() as home, running_kernel(Path(home)) as client:
        result = Path(home) / "seconds"
        run(client, _TIMED.format(code=code, result=str(result)))
        return float(result.read_text())
