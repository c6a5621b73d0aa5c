"""Loading and unloading: the magics, their completion, the display hooks, and what runs leave behind."""

from __future__ import annotations

import sys
from typing import Any

from toolcall_nb.notebook import completion
from toolcall_nb.notebook.magic import ToolchatMagics

__all__ = ["load", "unload"]


def load(ipython: Any) -> None:
    """Register the magics and the display hooks; loading again starts anew."""
    unload(ipython)
    ipython.register_magics(ToolchatMagics)
    magics = ipython.magics_manager.registry[ToolchatMagics.__name__]
    magics.hooks.install()
    completion.install(ipython.Completer, magics)


def unload(ipython: Any) -> None:
    """Take everything out again; does nothing where nothing is loaded."""
    magics = ipython.magics_manager.registry.pop(ToolchatMagics.__name__, None)
    if magics is not None:
        magics.close()
    for kind in ("line", "cell"):
        ipython.magics_manager.magics[kind].pop("toolchat", None)
    completion.remove(ipython.Completer)
    widget = sys.modules.get("toolcall_nb.notebook.widget")
    if widget is not None:
        widget.close_all()
