"""Finds the running IPython shell without importing IPython: `ipython_shell`."""

from __future__ import annotations

import sys
from typing import Any


def ipython_shell() -> Any:
    """Returns the shell of this process; None where IPython is not imported or has no shell."""
    interactive = sys.modules.get("IPython.core.getipython")
    return interactive.get_ipython() if interactive is not None else None
