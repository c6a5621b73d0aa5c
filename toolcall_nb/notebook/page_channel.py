"""Receives a page's messages in a kernel that runs in the page's browser, as JupyterLite's does: `PageChannel`.

JupyterLite hands a widget's message to the kernel when the cell has ended. So the page also sends the message on a
channel of the browser (a BroadcastChannel). Pyodide handles it while the one thread of the kernel sleeps: its
``time.sleep`` lets the browser's events happen, where the browser can switch stacks (JavaScript Promise Integration).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcall_nb.threads.interrupts import IN_BROWSER


class PageChannel:
    """Has ``receive`` called with the data of each message that a page sends on the channel ``name``, until `close`."""

    def __init__(self, name: str, receive: Callable[[Any], None]) -> None:
        from js import BroadcastChannel  # type: ignore[import-not-found]  # a module of Pyodide
        from pyodide.ffi import create_proxy  # type: ignore[import-not-found]

        self.name = name
        self._channel = BroadcastChannel.new(name)
        self._receive = create_proxy(lambda event: receive({"method": "custom", "content": event.data.to_py()}))
        self._channel.onmessage = self._receive

    @classmethod
    def open(cls, name: str, receive: Callable[[Any], None]) -> PageChannel | None:
        """Opens a channel; returns None where messages could not arrive before the end of the cell."""
        if not IN_BROWSER:
            return None
        from pyodide.ffi import can_run_sync

        return cls(name, receive) if can_run_sync() else None

    def close(self) -> None:
        """Closes the channel. Nothing is received any more."""
        self._channel.close()
        self._receive.destroy()
