"""Runs a new kernel for one measurement; the messages that it publishes are received and discarded."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

__all__ = ["run", "running_kernel", "seconds_to_display"]

_ROOT = Path(__file__).resolve().parents[2]
_WITHIN = 600


@contextmanager
def running_kernel(home: Path) -> Iterator[BlockingKernelClient]:
    """Runs an IPython kernel inside the block, with the repository on its path and its own settings, without stderr."""
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    manager = KernelManager(kernel_name="python3")
    environment = {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(home)}
    manager.start_kernel(env=environment, cwd=str(home), stderr=subprocess.DEVNULL)
    client = manager.blocking_client()
    client.session.metadata = {"cellId": "cell-1"}  # as a notebook's requests; without it they would be a console's
    client.start_channels()
    try:
        client.wait_for_ready(timeout=_WITHIN)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run(client: BlockingKernelClient, code: str) -> None:
    """Runs ``code`` to its end; receives messages so fast that the kernel never waits."""
    sent = client.execute(code)
    published = client.iopub_channel.socket
    end = time.monotonic() + _WITHIN
    while time.monotonic() < end:
        while published.poll(20):
            published.recv_multipart()
        while client.shell_channel.msg_ready():  # a kernel that started slowly also answers earlier requests
            if client.get_shell_msg(timeout=_WITHIN)["parent_header"].get("msg_id") == sent:
                return


def seconds_to_display(client: BlockingKernelClient, code: str) -> float:
    """Runs ``code``; returns the seconds until its first display or widget, and waits for its end."""
    start = time.perf_counter()
    sent = client.execute(code)
    seconds = float("inf")
    while True:
        message = client.get_iopub_msg(timeout=_WITHIN)
        if message["parent_header"].get("msg_id") != sent:
            continue
        if message["msg_type"] in ("display_data", "execute_result", "comm_open"):
            seconds = min(seconds, time.perf_counter() - start)
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return seconds
