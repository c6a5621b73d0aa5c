"""Measures Textual's Markdown widget, in Textual's headless test harness."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import process_time

from tests.benchmarks.documents import deltas, mixed
from tests.benchmarks.measuring import exponent
from tests.benchmarks.report import Cost, LeftOut, packaged
from tests.benchmarks.scale import Scale

__all__ = ["costs"]


def costs(scale: Scale) -> Iterator[Cost]:
    """Measures the work of `MarkdownStream` for an update at each delta; it would join faster deltas."""
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise LeftOut("textual is not installed") from error
    parts = {size: deltas(mixed(size)) for size in scale.peers[:2]}  # a third size would take minutes
    asyncio.run(_shown(deltas(mixed(500))))  # imports and first uses
    whole = {size: asyncio.run(_shown(each)) for size, each in parts.items()}
    seconds = {size: whole[size] / len(parts[size]) for size in whole}
    how = "await Markdown.append(delta), as its MarkdownStream does, in App.run_test(); widgets are made and laid out"
    yield Cost("Textual's Markdown stream", packaged("textual"), how, seconds, growth=exponent(whole))


async def _shown(parts: list[str]) -> float:
    from textual.app import App
    from textual.widgets import Markdown

    app: App[None] = App()
    async with app.run_test() as pilot:
        markdown = Markdown()
        await app.mount(markdown)
        await pilot.pause()
        start = process_time()
        for part in parts:
            await markdown.append(part)
        await pilot.pause()
        return process_time() - start
