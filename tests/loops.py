"""A loop for a coroutine, whatever this thread is doing: a browser that is open has a loop running in the main one."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["run_in_loop"]

T = TypeVar("T")


def run_in_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine gives, from a loop of its own in a thread of its own, in this context."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()
