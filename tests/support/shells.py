"""An IPython shell for tests of code that calls ``get_ipython()``; there is none after the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

__all__ = ["the_shell"]


@contextmanager
def the_shell() -> Iterator[Any]:
    """Creates the shell that ``get_ipython()`` returns."""
    kind: Any = InteractiveShell
    shell = kind.instance(colors="nocolor")
    try:
        yield shell
    finally:
        shell.restore_sys_module_state()
        kind.clear_instance()
