"""Completion for ``%%toolchat`` and ``%toolchat``: options, their values, commands, tools, models, files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolcall_nb.notebook.magic import APPROVALS, COMMANDS, DIALECTS, OPTIONS, SWITCH, ToolchatMagics

__all__ = ["complete"]


def complete(shell: Any, event: Any) -> list[str]:
    """IPython's ``complete_command`` hook; ``event`` has the line, the symbol and the text up to the cursor."""
    words = event.text_until_cursor.split()
    is_fresh = event.text_until_cursor[-1:].isspace()
    before, symbol = (words, "") if is_fresh else (words[:-1], words[-1])
    magics = shell.magics_manager.registry.get(ToolchatMagics.__name__)
    if magics is None:
        return []
    is_line = len(before) > 1 and before[0] == "%toolchat"
    find = _LINE.get(before[1]) if is_line and (len(before) == 2 or before[1] == "config") else None
    if find is None:
        find = _VALUES.get(before[-1]) or (_commands if before == ["%toolchat"] else _options)
    # IPython replaces what it takes for the symbol, which begins after the last delimiter it knows.
    cut = len(symbol) - len(event.symbol) if symbol.endswith(event.symbol) else 0
    return [found[cut:] for found in find(magics, symbol) if found.startswith(symbol)]


def _options(_magics: ToolchatMagics, _symbol: str) -> list[str]:
    return list(OPTIONS)


def _commands(_magics: ToolchatMagics, _symbol: str) -> list[str]:
    return list(COMMANDS)


def _models(magics: ToolchatMagics, _symbol: str) -> list[str]:
    from toolcall_nb.models import names

    return [*names(), *magics.threads.model_variables()]


def _config(magics: ToolchatMagics, symbol: str) -> list[str]:
    from toolcall_nb.notebook.config import KEYS, RESET

    if symbol.startswith("key="):
        return [f"key={name}" for name in sorted(os.environ) if name.endswith(("KEY", "TOKEN"))]
    return [*(f"{name}=" for name in KEYS), RESET]


def _tools(magics: ToolchatMagics, symbol: str) -> list[str]:
    """Names for the last place of a list that commas part."""
    chosen = symbol.rpartition(",")[0]
    prefix = f"{chosen}," if chosen else ""
    taken = set(chosen.split(","))
    return [prefix + name for name in magics.threads.tool_names() if name not in taken]


def _threads(magics: ToolchatMagics, _symbol: str) -> list[str]:
    return magics.threads.names()


def _calls(magics: ToolchatMagics, _symbol: str) -> list[str]:
    return magics.threads.call_ids()


def _shown(magics: ToolchatMagics, symbol: str) -> list[str]:
    return [*_threads(magics, symbol), *magics.threads.call_ids()]


def _files(_magics: ToolchatMagics, symbol: str) -> list[str]:
    folder, _, beginning = symbol.rpartition("/")
    here = Path(f"{folder}/" if folder or symbol.startswith("/") else ".").expanduser()
    if not here.is_dir():
        return []
    prefix = symbol[: len(symbol) - len(beginning)]
    found = [path for path in sorted(here.iterdir()) if path.is_dir() or path.suffix == ".md"]
    return [f"{prefix}{path.name}{'/' if path.is_dir() else ''}" for path in found if not path.name.startswith(".")]


Finder = Callable[[ToolchatMagics, str], list[str]]

_VALUES: Mapping[str, Finder] = {
    "--model": _models,
    "--tools": _tools,
    "--thread": _threads,
    "--dialect": lambda _magics, _symbol: list(DIALECTS),
    "--approve": lambda _magics, _symbol: list(APPROVALS),
}
_LINE: Mapping[str, Finder] = {
    "model": _models,
    "config": _config,
    "tools": _tools,
    "approve": lambda _magics, _symbol: list(APPROVALS),
    "hooks": lambda _magics, _symbol: list(SWITCH),
    "images": lambda _magics, _symbol: ["off"],
    "secrets": lambda _magics, _symbol: [*SWITCH, "add"],
    "stop": _threads,
    "code": _calls,
    "thread": _threads,
    "show": _shown,
    "save": _files,
    "load": _files,
    "replay": _files,
}
