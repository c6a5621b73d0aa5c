"""Measures what a person feels in JupyterLab: the first run, the time from token to paint, frames while calls stream.

A real kernel shows each in the page of a real JupyterLab, in turn with a bare anywidget that shows the same, since the
machine may have other work. A change counts as painted when the frame that first has it is: a `ResizeObserver` is
called after each frame's layout, and a message that it sends to its own page is handled after the paint. A word's time
is the one right before the model yields it; the clocks of kernel and page are compared once.

The times of tokens and frames are those of the best of several rounds: other work only makes them worse. The page's
work for a call is in seconds of its main thread's CPU.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import BrowserContext, CDPSession, Page

from tests.benchmarks.measuring import percentile
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from tests.browser.browser import Notebook, browser_profile, running_browser
from tests.browser.jupyter import Server, running_server

__all__ = ["rows"]

_TOKENS_A_SECOND = 100
_CALLS_A_SECOND = 100
_CALLS = 1_000
_PATIENCE = 120_000
_SETTLE = 1_000
"""Milliseconds after which the page has nothing more to do for the cells before."""

_SETUP = """import json
import time
from pathlib import Path

import anywidget
from tests.benchmarks.documents import conversation
from toolcall_nb import show
from toolcall_nb.core import events as ev

%load_ext toolcall_nb

class Bare(anywidget.AnyWidget):
    _esm = '''export default { render({ model, el }) {
        el.style.whiteSpace = "pre-wrap";
        model.on("msg:custom", text => el.append(text));
    } }'''

def evenly(things, a_second):
    start = time.monotonic()
    for number, thing in enumerate(things):
        time.sleep(max(0, start + number / a_second - time.monotonic()))
        yield thing

def words(label, count, a_second):
    "Yields so many words, and writes when each was yielded."
    times = []
    for number in evenly(range(count), a_second):
        end = "\\n\\n" if number % 40 == 39 else " "
        times.append(time.time())
        yield f"{label}w{number}{end}"
    Path(f"{label}.json").write_text(json.dumps(times))

class Writer:
    name = "writer"

    def __init__(self, label, *how):
        self.words = words(label, *how)

    def stream(self, messages, tools):
        yield ev.TextStart("t")
        for word in self.words:
            yield ev.TextDelta("t", word)

def calls(count, a_second):
    "Yields the events of so many calls, all events of one call at once."
    events = conversation(count)
    for _ in evenly(range(count), a_second):
        for event in events:
            yield event
            if isinstance(event, ev.ToolOutputAvailable):
                break
    yield from events

def line(event):
    "A line for a call, for the bare widget."
    return f"{event.tool_call_id} {event.output}\\n"
"""
_WORDS = {
    "ours": ("writer = Writer({label!r}, {count}, {rate})", "%%toolchat --model writer --new\nWrite."),
    "bare": (
        "bare = Bare(); bare",
        "for word in words({label!r}, {count}, {rate}): bare.send(word)",
    ),
}
"""By form, the cell before and the cell in which the words stream."""
_STREAM = {
    "ours": ("pass", "show(calls({count}, {rate}))"),
    "bare": (
        "bare = Bare(); bare",
        "for event in calls({count}, {rate}):\n"
        "    if isinstance(event, ev.ToolOutputAvailable): bare.send(line(event))",
    ),
}

_FIRST = {
    "ours": ("%load_ext toolcall_nb", "%%toolchat\nHello", ".tc-run"),
    "word": ("%load_ext toolcall_nb", "%%toolchat --speed 0\nHello", ".tc-run p"),
    "bare": (
        "pass",
        "import anywidget\n"
        "class Bare(anywidget.AnyWidget):\n"
        "    _esm = \"export default { render({ el }) { el.className = 'bare'; el.textContent = 'Hello'; } }\"\n"
        "Bare()",
        ".bare",
    ),
}
"""By form, the first cell of a new kernel, the cell right after it, and what the page shows then."""

_BEAT = """class Beat {
    /** Calls `painted` with the frame's things after the paint. */
    constructor(painted) {
        const { port1, port2 } = new MessageChannel();
        port2.onmessage = ({ data }) => painted(data);
        this.drawn = [];
        this.frames = [];
        this.element = document.body.appendChild(document.createElement("div"));
        this.element.style.cssText =
            "position: fixed; top: 0; left: 0; height: 1px; contain: strict; visibility: hidden";
        new ResizeObserver(() => {
            if (this.drawn.length) port1.postMessage(this.drawn);
            this.drawn = [];
        }).observe(this.element);
        const frame = now => {
            if (!this.element.isConnected) return;
            this.frames.push(now);
            this.element.style.width = this.frames.length % 2 ? "1px" : "2px";
            requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    }
}"""
_RUN_FIRST = """([before, cell, wanted]) => new Promise(resolve => {
    BEAT
    const panel = jupyterapp.shell.currentWidget;
    const run = async number => {
        panel.content.activeCellIndex = number;
        await jupyterapp.commands.execute("notebook:run-cell");
    };
    let start;
    const beat = new Beat(() => {
        beat.element.remove();
        resolve(performance.now() - start);
    });
    const look = new MutationObserver(() => {
        if (!panel.node.querySelector(wanted)) return;
        look.disconnect();
        beat.drawn.push(wanted);
    });
    look.observe(panel.node, { subtree: true, childList: true });
    run(0).then(() => {
        start = performance.now();
        return run(1);
    });
})""".replace("BEAT", _BEAT)

_WATCH = """async label => {
    BEAT
    let before = Date.now(), edge;
    while ((edge = Date.now()) === before);
    const clock = edge - performance.now();
    const word = new RegExp(label + "w(\\\\d+)", "g");
    const painted = [];
    const beat = new Beat(words => {
        for (const number of words) painted[number] = clock + performance.now();
    });
    let shown = -1, replaced;
    const note = text => {
        for (const [, number] of text.matchAll(word)) while (shown < number) beat.drawn.push(++shown);
    };
    const changes = new MutationObserver(records => {
        for (const { type, target, addedNodes, removedNodes } of records) {
            for (const node of removedNodes) if (node.querySelector?.(".tc-voice")) replaced ??= performance.now();
            if (type === "characterData") note(target.data);
            else for (const node of addedNodes) note(node.textContent);
        }
    });
    changes.observe(document.querySelector(".jp-Notebook"), { subtree: true, childList: true, characterData: true });
    const content = jupyterapp.shell.currentWidget.content;
    content.activeCellIndex = 2;
    await jupyterapp.commands.execute("notebook:run-cell");
    await new Promise(done => setTimeout(done, SETTLE));
    beat.element.remove();
    changes.disconnect();
    return [painted, beat.frames, replaced];
}""".replace("SETTLE", str(_SETTLE)).replace("BEAT", _BEAT)


class _Seen(NamedTuple):
    """What a page saw: milliseconds from token to paint of each word, and from frame to frame; its CPU in seconds.

    ``longest`` is the longest frame before the one in which static output takes the place of the live view.
    """

    delays: list[float]
    gaps: list[float]
    longest: float
    cpu: float


def rows(scale: Scale) -> Iterator[Row]:
    """Measures in one page of JupyterLab, each round in a new notebook with a new kernel."""
    load = f"load {os.getloadavg()[0]:.1f} at first"
    with TemporaryDirectory() as home, running_server(Path(home)) as server, running_browser() as browser:
        lab = _Lab(server, browser_profile(browser))
        yield from _first_rows(lab, scale, load)
        count = max(3, round(_TOKENS_A_SECOND * scale.seconds))
        yield from _token_rows(lab.alternating(_WORDS, scale.fresh, count, _TOKENS_A_SECOND), load)
        calls = min(_CALLS, scale.calls[0])
        yield from _frame_rows(lab.alternating(_STREAM, scale.fresh, calls, _CALLS_A_SECOND), calls, load)


def _first_rows(lab: _Lab, scale: Scale, load: str) -> Iterator[Row]:
    times: dict[str, list[float]] = {form: [] for form in _FIRST}
    for _ in range(scale.fresh + 1):  # in the first round, the page compiles its scripts
        for form, (before, cell, wanted) in _FIRST.items():
            times[form].append(lab.first(before, cell, wanted))
    took = {form: median(each[1:]) for form, each in times.items()}
    for form, what, must, aim in (("ours", "it", 1.3, 1.1), ("word", "the answer's first word", None, None)):
        detail = f"{took[form]:.0f} ms against {took['bare']:.0f} ms, medians of {scale.fresh} kernels each; {load}"
        name = f"first %%toolchat right after %load_ext until JupyterLab shows {what}, against a bare anywidget's"
        yield Row(name, took[form] / took["bare"], "times", must, aim, detail)


def _token_rows(seen: Mapping[str, Sequence[_Seen]], load: str) -> Iterator[Row]:
    for percent, must, aim in ((50, None, None), (95, 60, 45)):
        best = {form: min(percentile(each.delays, percent) for each in rounds) for form, rounds in seen.items()}
        detail = f"a bare anywidget {best['bare']:.0f} ms, {best['ours'] / best['bare']:.1f} times; {load}"
        name = f"token to paint in JupyterLab at {_TOKENS_A_SECOND} tokens a second, p{percent}"
        yield Row(name, best["ours"], "ms", must, aim, detail)


def _frame_rows(seen: Mapping[str, Sequence[_Seen]], calls: int, load: str) -> Iterator[Row]:
    name = f"while {calls:,} calls stream in JupyterLab, {_CALLS_A_SECOND} a second"
    for percent, word, must, aim in ((95, "p95", 33.4, 17), (99, "p99", 50.1, 33.4), (100, "longest", 150, 50)):
        best = {form: min(percentile(each.gaps, percent) for each in rounds) for form, rounds in seen.items()}
        detail = f"with a bare anywidget that shows a line a call {best['bare']:.0f} ms; {load}"
        if percent == 100:
            detail = f"{min(each.longest for each in seen['ours']):.0f} ms before the static output comes; {detail}"
        yield Row(f"{name}: frames, {word}", best["ours"], "ms", must, aim, detail)
    cpu = {form: median(each.cpu for each in rounds) / calls * 1e3 for form, rounds in seen.items()}
    detail = f"with the bare anywidget {cpu['bare']:.2f} ms"
    yield Row(f"{name}: CPU of the page's main thread", cpu["ours"], "ms/call", detail=detail)


class _Lab:
    """A JupyterLab that stays open in one page."""

    def __init__(self, server: Server, context: BrowserContext) -> None:
        self._server = server
        self._context = context
        self._page: Page | None = None
        self._count = 0

    @contextmanager
    def _open(self, name: str, *cells: str) -> Iterator[Notebook]:
        """Opens a new notebook inside the block, with a new kernel."""
        notebook = Notebook(self._server, self._context, self._server.write(f"{name}.ipynb", *cells), self._page)
        self._page = notebook.page
        self._page.set_default_timeout(_PATIENCE)
        yield notebook.open()
        self._page.evaluate("() => { for (const each of [...jupyterapp.shell.widgets('main')]) each.dispose(); }")
        notebook.leave()
        self._server.shut_down_kernels()

    def first(self, before: str, cell: str, wanted: str) -> float:
        """Returns the milliseconds until the page has painted what the second cell of a new kernel shows."""
        with self._open(self._label(), before, cell) as notebook:
            seconds: float = notebook.page.evaluate(_RUN_FIRST, [before, cell, wanted])
            notebook.wait_until_run(1)
            return seconds

    def alternating(
        self, forms: Mapping[str, tuple[str, str]], rounds: int, count: int, rate: int
    ) -> dict[str, list[_Seen]]:
        """Plays each form in each round."""
        seen: dict[str, list[_Seen]] = {form: [] for form in forms}
        for _ in range(rounds):
            for form, cells in forms.items():
                label = self._label()
                code = [cell.format(label=label, count=count, rate=rate) for cell in cells]
                with self._open(label, _SETUP, *code) as notebook:
                    seen[form].append(self._play(notebook, label))
        return seen

    def _label(self) -> str:
        self._count += 1
        return f"r{self._count}"

    def _play(self, notebook: Notebook, label: str) -> _Seen:
        """Runs the cells, and watches the page during the last."""
        page = notebook.page
        notebook.run(0)
        notebook.run(1)
        page.wait_for_timeout(_SETTLE)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = _cpu(devtools)
        painted, frames, replaced = page.evaluate(_WATCH, label)
        cpu = _cpu(devtools) - before
        devtools.detach()
        written = self._server.folder / f"{label}.json"
        yielded = json.loads(written.read_text("utf-8")) if written.exists() else []
        delays = [at - 1e3 * since for since, at in zip(yielded, painted, strict=False) if at is not None]
        gaps = [after - before for before, after in pairwise(frames)]
        before_end = [gap for gap, end in zip(gaps, frames[1:], strict=True) if replaced is None or end < replaced]
        return _Seen(delays, gaps, max(before_end), cpu)


def _cpu(devtools: CDPSession) -> float:
    """Returns the seconds of the page's tasks."""
    metrics = {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])
