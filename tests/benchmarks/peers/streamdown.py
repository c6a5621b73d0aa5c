"""Measures how Streamdown splits the text into blocks, in Node: its work for each delta before it renders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.documents import deltas, mixed
from tests.benchmarks.measuring import exponent
from tests.benchmarks.report import Cost, LeftOut
from tests.benchmarks.scale import Scale

__all__ = ["costs"]

_PACKAGES = ("streamdown@2.7.1", "react@19", "react-dom@19")
_FOLDER = Path(__file__).resolve().parents[3] / "build" / "streamdown"
_SCRIPT = Path(__file__).with_name("streamdown.mjs")


def costs(scale: Scale) -> Iterator[Cost]:
    """Measures each size in a new process, so that the compiler has not optimised for it."""
    node = shutil.which("node")
    if node is None:
        raise LeftOut("Node is not installed")
    folder = _installed()
    parts = {size: deltas(mixed(size)) for size in sorted({*scale.peers, scale.documents[-2]})}
    whole = {size: _seconds(node, folder, each) for size, each in parts.items()}
    seconds = {size: whole[size] / len(parts[size]) for size in whole}
    how = (
        "parseMarkdownIntoBlocks(text) at each delta, in node; healing, parsing and drawing of blocks not counted; "
        "small sizes are mostly the compiler's start"
    )
    yield Cost("Streamdown's block splitting", "streamdown 2.7.1", how, seconds, growth=exponent(whole))


def _installed() -> Path:
    """Returns the folder with the packages: TOOLCALL_NB_STREAMDOWN, else one that npm creates once."""
    named = os.environ.get("TOOLCALL_NB_STREAMDOWN")
    folder = Path(named) if named else _FOLDER
    if not (folder / "node_modules" / "streamdown").is_dir():
        npm = shutil.which("npm")
        if npm is None:
            raise LeftOut("npm is not installed, which would install it")
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent", *_PACKAGES]
        if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
            raise LeftOut("npm could not install it")
    return folder


def _seconds(node: str, folder: Path, parts: list[str]) -> float:
    script, given = folder / _SCRIPT.name, folder / "deltas.json"  # Node searches for packages in the script's folder
    script.write_text(_SCRIPT.read_text("utf-8"), "utf-8")
    given.write_text(json.dumps(parts), "utf-8")
    done = subprocess.run([node, str(script), str(given)], capture_output=True, text=True, check=False)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "Error" in line]
        raise LeftOut(f"it failed: {reasons[:1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return float(found["seconds"])
