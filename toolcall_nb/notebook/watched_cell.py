"""Runs the cell of ``%%toolchat --watch``: `run_watched_cell`."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from toolcall_nb.errors import UsageError
from toolcall_nb.notebook.watch import watch

_VARIABLE = "watched"
_AWAITS = (
    "A cell with --watch cannot await at its top level. Write this around the code instead: "
    "with toolcall_nb.watch() as run:"
)


def run_watched_cell(shell: Any, cell: str) -> None:
    """Runs a cell as IPython does, inside `watch`; the run is the variable ``watched``, unless the user has another.

    Raises what the cell raises, and `UsageError` for a cell that awaits.
    """
    text = shell.transform_cell(cell)
    name = shell.compile.cache(text, shell.execution_count, raw_code=cell)
    tree = shell.transform_ast(shell.compile.ast_parse(text, name))
    steps: list[ast.Module | ast.Interactive] = [ast.Module(tree.body, [])]
    if tree.body and isinstance(tree.body[-1], ast.Expr):  # its value is shown, as in any cell
        steps = [ast.Module(tree.body[:-1], []), ast.Interactive([tree.body[-1]])]
    modes = [(step, "single" if isinstance(step, ast.Interactive) else "exec") for step in steps]
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    codes = [compile(step, name, mode, flags | shell.compile.flags, dont_inherit=True) for step, mode in modes]
    if any(code.co_flags & inspect.CO_COROUTINE for code in codes):
        raise UsageError(_AWAITS)
    with watch() as run:
        known = shell.user_ns.get(_VARIABLE)
        if known is None or isinstance(known, type(run)):
            shell.user_ns[_VARIABLE] = run
        for code in codes:
            exec(code, shell.user_global_ns, shell.user_ns)
