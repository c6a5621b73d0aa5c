"""Runs in the kernel: shows a growing document in a cell at each delta, in one of several ways.

The time is the CPU time of the whole kernel process, including the thread that sends. Bytes are those of the whole
message with its envelope, as jupyter_client packs it.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any

from tests.benchmarks.documents import deltas, mixed
from tests.benchmarks.measuring import one_shot

__all__ = ["WAYS", "run"]


def _ours(parts: Sequence[str]) -> None:
    from toolcall_nb.dialects import detector
    from toolcall_nb.live_runs.document import LiveDocument
    from toolcall_nb.notebook.widget import ShownRun, TranscriptWidget
    from toolcall_nb.render import LiveHtml

    document = LiveDocument(LiveHtml(), lambda step: widget.send(step))
    run = ShownRun(document, lambda: None, lambda answer: None, lambda seconds: None, lambda: None)
    widget = TranscriptWidget(run)
    detect = detector("callout")
    for part in parts:
        for event in detect.feed(part):
            document.apply(event)
        document.flush()
    widget.close()


def _source_again(parts: Sequence[str]) -> None:
    from IPython.display import Markdown, display

    text = ""
    handle: Any = display(Markdown(text), display_id=True)  # type: ignore[no-untyped-call]  # IPython has no types
    for part in parts:
        text += part
        handle.update(Markdown(text))  # type: ignore[no-untyped-call]


def _html_again(parts: Sequence[str]) -> None:
    from IPython.display import HTML, display

    text = ""
    handle: Any = display(HTML(text), display_id=True)  # type: ignore[no-untyped-call]  # IPython has no types
    for part in parts:
        text += part
        handle.update(HTML(one_shot(text)))  # type: ignore[no-untyped-call]


def _chatlas(parts: Sequence[str]) -> None:
    from chatlas._display import EchoDisplayOptions, IPyMarkdownDisplay

    options = EchoDisplayOptions(
        rich_markdown={},
        rich_console={},
        css_styles={},
        tool_result_max_lines=None,
        tool_result_max_height=None,
        thinking_max_lines=None,
        web_activity_max_sources=None,
        image_max_lines=None,
    )
    with IPyMarkdownDisplay(options) as display:
        for part in parts:
            display.echo(part)


WAYS: dict[str, Callable[[Sequence[str]], None]] = {
    "ours": _ours,
    "source": _source_again,
    "html": _html_again,
    "chatlas": _chatlas,
}


@contextmanager
def _counted() -> Iterator[list[int]]:
    """Yields a list that collects the bytes of each message that this kernel sends inside the block."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    session = shell.kernel.session
    serialize, sizes = session.serialize, []

    def counting(*args: Any, **options: Any) -> Any:
        frames = serialize(*args, **options)
        sizes.append(sum(map(len, frames)))
        return frames

    session.serialize = counting
    try:
        yield sizes
    finally:
        session.serialize = serialize


def run(way: str, size: int, result: str) -> None:
    """Shows one document in one way; writes the cost to the file ``result``, since JupyterLab may drop output."""
    parts = deltas(mixed(size))
    gc.collect()
    with _counted() as sizes:
        start = process_time()
        WAYS[way](parts)
        seconds = process_time() - start
    found = {"seconds": seconds, "deltas": len(parts), "bytes": sum(sizes), "messages": len(sizes)}
    Path(result).write_text(json.dumps(found), "utf-8")
