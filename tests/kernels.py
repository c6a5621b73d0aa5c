"""A kernel for tests, spoken to as a page does: messages in, messages out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

__all__ = ["Kernel", "running_kernel"]

_REPOSITORY = Path(__file__).resolve().parents[1]
_WITHIN = 60


class Kernel:
    """Runs cells and keeps what they published."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client

    def run(self, code: str, *, attended: bool = True) -> list[dict[str, Any]]:
        """What the cell published, until the kernel was idle. ``attended``: a person could be asked."""
        sent = self._client.execute(code, allow_stdin=attended)
        return self._until_idle(sent)

    def send(self, comm: str, content: dict[str, Any]) -> list[dict[str, Any]]:
        """A custom message of a widget's page; gives what it made the kernel publish."""
        data = {"method": "custom", "content": content}
        message = self._client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self._client.shell_channel.send(message)
        return self._until_idle(message["header"]["msg_id"])

    def _until_idle(self, sent: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            message = self._client.get_iopub_msg(timeout=_WITHIN)
            if _ends(message, sent):
                return found
            found.append(message)


def _ends(message: dict[str, Any], sent: str) -> bool:
    is_idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
    return bool(is_idle and message["parent_header"].get("msg_id") == sent)


@contextmanager
def running_kernel(home: Path) -> Iterator[Kernel]:
    """An IPython kernel with the repository on its path and settings of its own."""
    path = os.pathsep.join(part for part in (str(_REPOSITORY), os.environ.get("PYTHONPATH", "")) if part)
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(home)}, cwd=str(home))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=_WITHIN)
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
