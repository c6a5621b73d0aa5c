"""Finds the running IPython shell without importing IPython: `ipython_shell`, `is_in_kernel`."""

from __future__ import annotations

import sys
from typing import Any


def ipython_shell() -> Any:
    """Returns the shell of this process; None where IPython is not imported or has no shell."""
    interactive = sys.modules.get("IPython.core.getipython")
    return interactive.get_ipython() if interactive is not None else None


def is_in_kernel() -> bool:
    """Whether this process is a kernel of IPython, as behind a notebook."""
    return getattr(ipython_shell(), "kernel", None) is not None
