"""Others' published code, in Node: the readers of the wires, many cases in one process (tests/js/peers.mjs), and their
clients, which ask a server that runs (tests/js/live.mjs)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

__all__ = ["Case", "answers", "live"]

_FOLDER = Path(__file__).resolve().parents[1] / "js"
_SCRIPT = _FOLDER / "peers.mjs"
_LIVE = _FOLDER / "live.mjs"


class Case(NamedTuple):
    """A response for one of the readers ``ai``, ``ag-ui`` and ``eventsource``, and where it is cut."""

    reader: str
    body: bytes
    cuts: Sequence[int] = ()


def answers(cases: Iterable[Case]) -> list[Any]:
    """What the reader of each case has made of it. Skips where Node, or its packages, are not installed."""
    node = _node()
    lines = [
        json.dumps({"reader": case.reader, "body": base64.b64encode(case.body).decode(), "cuts": [*case.cuts]})
        for case in cases
    ]
    sent = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([node, str(_SCRIPT)], input=sent, capture_output=True, text=True, check=False, cwd=_FOLDER)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert len(found) == len(lines), done.stderr
    assert [answer for answer in found if "crash" in answer] == []
    return found


@contextmanager
def live(scenario: str, address: str) -> Iterator[subprocess.Popen[str]]:
    """A client that goes through a scenario with the server at ``address``; it ends with the block. Skips as above."""
    command = [_node(), str(_LIVE), scenario, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_FOLDER) as node:
        try:
            yield node
        finally:
            node.kill()


def _node() -> str:
    node = shutil.which("node")
    if node is None or not (_FOLDER / "node_modules").is_dir():
        assert "TOOLCALL_NB_PEERS" not in os.environ, "./dev test has promised that Node and its packages are there"
        pytest.skip("no peers in Node: ./dev test installs them")
    return node
