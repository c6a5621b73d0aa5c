"""Generators as tools: each yield is what there is so far, and the last one is the result unless one is returned."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from typing import Any, TypeAlias

__all__ = ["Step", "drain", "drain_async"]

Step: TypeAlias = Callable[[Any], None]
"""Takes each value that was yielded."""


def drain(generator: Generator[Any, Any, Any], step: Step, is_over: Callable[[], bool]) -> Any:
    """Run it to its end, or until ``is_over``; however that comes, it is closed."""
    last = None
    try:
        while not is_over():
            last = next(generator)
            step(last)
    except StopIteration as end:
        return last if end.value is None else end.value
    finally:
        with suppress(Exception):  # how it takes its end does not change the result
            generator.close()
    return last


async def drain_async(generator: AsyncGenerator[Any, Any], step: Step) -> Any:
    """The same for an async generator, which cannot return a value."""
    last = None
    try:
        async for last in generator:
            step(last)
    finally:
        with suppress(Exception):
            await generator.aclose()
    return last
