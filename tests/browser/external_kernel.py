"""Runs a kernel that is not its server's child process, so that it survives when the server is killed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from jupyter_client.connect import write_connection_file
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager

from tests.browser.jupyter import Server

__all__ = ["KERNEL_ID", "ExternalKernelManager", "external_kernel_options", "open_session", "running_external_kernel"]

KERNEL_ID = str(uuid5(NAMESPACE_DNS, "toolcall-nb.invalid"))
"""The id under which the server knows the kernel of `running_external_kernel`."""


class ExternalKernelManager(AsyncMappingKernelManager):
    """Keeps the external kernel's id across restarts of the server, as a gateway does, from the first request on."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]  # jupyter_server has no types there
        self.list_kernel_ids()

    def new_kernel_id(self, **kwargs: Any) -> str:
        """Returns the fixed id."""
        return KERNEL_ID


def external_kernel_options(home: Path) -> Mapping[str, Any]:
    """Returns settings of a server whose kernel and sessions survive it."""
    return {
        "ServerApp.allow_external_kernels": True,
        "ServerApp.external_connection_dir": home / "external",
        "ServerApp.kernel_manager_class": f"{__name__}.ExternalKernelManager",
        "SessionManager.database_filepath": home / "sessions.db",
    }


@contextlib.contextmanager
def running_external_kernel(home: Path, server: Server) -> Iterator[None]:
    """Runs the kernel inside the block; the server finds it by its connection file."""
    (home / "external").mkdir(exist_ok=True)
    file, _ = write_connection_file(str(home / "external" / "kernel.json"), kernel_name="python3")
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", file]
    process = subprocess.Popen(
        command, env=server.environment, cwd=server.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait(15)


def open_session(server: Server, name: str) -> None:
    """Connects the notebook to the external kernel, which the server finds when it lists its kernels."""
    assert [each["id"] for each in server.api("kernels")] == [KERNEL_ID]
    kernel = {"id": KERNEL_ID, "name": "python3"}
    server.api("sessions", "POST", {"path": name, "name": name, "type": "notebook", "kernel": kernel})
