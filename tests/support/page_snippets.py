"""Runs the snippets of a documentation page in the order of the page: `run_page`.

| fence | is |
| --- | --- |
| ``python`` | code, which may ``await``; or a file, if its first line is a comment with the file's name |
| ``ipython`` | a cell of a notebook, run by an IPython shell |
| ``sh`` | commands, run in the page's folder |
| ``text`` after one of these | exactly what it prints |

A snippet that must not be run has another fence, such as ``py``, or none.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.shells import the_shell
from toolcall_nb.tools import registry

__all__ = ["ROOT", "Snippet", "run_page", "snippets"]

ROOT = Path(__file__).resolve().parents[2]
_SNIPPET = re.compile(r"^```(python|ipython|sh)\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")


class Snippet(NamedTuple):
    """A snippet: its fence, its code, what the page says that it prints, and its line in the page."""

    fence: str
    code: str
    printed: str
    line: int


def snippets(text: str) -> Iterator[Snippet]:
    """Yields the snippets of a page."""
    for found in _SNIPPET.finditer(text):
        yield Snippet(found[1], found[2], found[3] or "", text.count("\n", 0, found.start()) + 1)


async def run_page(page: Path, folder: Path, not_run: Collection[str] = ()) -> None:
    """Runs the snippets of a page in an empty folder, and compares what they print with the page.

    Commands that begin with one of ``not_run`` are left out. Where a cell or a command has no ``text`` after it, its
    output is not compared; other code must print nothing then.
    """
    before = set(registry)
    with the_shell() as shell:
        namespace: dict[str, Any] = shell.user_ns
        for snippet in snippets(page.read_text("utf-8")):
            place = f"{page.name}:{snippet.line}"
            named = _FILE.match(snippet.code)
            if snippet.fence == "sh":
                printed = _run_commands(snippet.code, folder, tuple(not_run))
            elif snippet.fence == "ipython":
                printed = _run_cell(shell, snippet.code)
            elif named is not None:
                printed = ""
                (folder / named[1]).write_text(snippet.code, "utf-8")
            else:
                printed = await _run_code(snippet.code, place, namespace)
            if snippet.printed or snippet.fence == "python":
                assert printed.rstrip() == snippet.printed.rstrip(), f"{place} prints:\n{printed}"
    for name in set(registry) - before:
        registry.remove(name)


async def _run_code(code: str, place: str, namespace: dict[str, Any]) -> str:
    """Runs code as a cell runs it, with ``await`` outside of functions; returns what it prints."""
    compiled = compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        result = eval(compiled, namespace)
        if inspect.isawaitable(result):
            await result
    return printed.getvalue()


def _run_cell(shell: Any, code: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        shell.run_cell(code).raise_error()
    return printed.getvalue()


def _run_commands(code: str, folder: Path, not_run: tuple[str, ...]) -> str:
    """Runs the lines of a shell's snippet, all but those that begin with one of ``not_run``; each must succeed."""
    lines = "".join(line for line in code.splitlines(True) if not line.startswith(not_run))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "PYTEST_ADDOPTS": "-p no:cacheprovider -p toolcall_nb.testing.pytest_plugin",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    script = f'toolcall-nb() {{ "{sys.executable}" -m toolcall_nb "$@"; }}\n{lines}'
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{lines}{done.stdout}{done.stderr}"
    return done.stdout
