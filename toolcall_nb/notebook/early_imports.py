"""Imports what the first run needs while a person's kernel is idle, so that the first run starts without delay.

`EarlyImports` begins when the cell of ``%load_ext`` has ended. While a cell runs it pauses; at most one group of
modules is then still being imported.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

_MODULES = (
    "ipywidgets",
    "anywidget",
    "toolcall_nb.notebook.widget",
    "toolcall_nb.core.reducer",
    "toolcall_nb.tools.sources",
    "toolcall_nb.redaction.masker",
    "toolcall_nb.models",
    "toolcall_nb.chat",
    "toolcall_nb.dialects.callout",
    "toolcall_nb.incremental_markdown.incremental",
    "toolcall_nb.notebook.conversations",
    "toolcall_nb.notebook.live_display",
)
"""Groups of about the same size, each with what it imports and those before it do not; the view's come first."""


class EarlyImports:
    """Imports `_MODULES` in a thread of its own, while no cell runs."""

    def __init__(self, events: Any) -> None:
        self._events = events  # IPython's EventManager
        self._is_idle = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._import, name="toolcall_nb-early-imports", daemon=True)
        events.register("pre_run_cell", self._pause)
        events.register("post_run_cell", self._go_on)

    def end(self) -> None:
        """Ends the imports, if they have not ended."""
        if self._is_over:
            return
        self._is_over = True
        self._is_idle.set()
        self._events.unregister("pre_run_cell", self._pause)
        self._events.unregister("post_run_cell", self._go_on)

    def _pause(self, _info: Any) -> None:
        self._is_idle.clear()

    def _go_on(self, _result: Any) -> None:
        self._is_idle.set()
        if self._thread.ident is None:
            try:
                self._thread.start()
            except RuntimeError:  # there are no threads, as in Pyodide
                self.end()

    def _import(self) -> None:
        for module in _MODULES:
            self._is_idle.wait()
            if self._is_over:
                return
            try:
                import_module(module)
            except Exception:  # the first run says what is wrong
                break
        self.end()
