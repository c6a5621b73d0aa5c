"""Makes environments for programs that the tests' own environment lacks: `own_environment`. The tier "all" uses it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["clean_variables", "own_environment"]

_ROOT = Path(__file__).resolve().parents[2]


def own_environment(folder: Path, *packages: str, extras: str = "") -> Path:
    """Makes an environment with the project, editable, and these packages; returns its folder of programs."""
    uv, programs = (sys.executable, "-m", "uv"), folder / "environment" / "bin"
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, "environment"], cwd=folder, check=True)
    wanted = ["--editable", f"{_ROOT}{extras}", *packages]
    python = str(programs / "python")
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", python, *wanted], cwd=folder, check=True)
    return programs


def clean_variables(home: Path) -> dict[str, str]:
    """Returns the variables for a program of such an environment, with Jupyter's folders in ``home``."""
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))}
    return {**kept, **{name: str(home / name.lower()) for name in own}}
