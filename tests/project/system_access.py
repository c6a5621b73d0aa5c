"""Records by Python's audit events when code uses the network, starts programs or writes files.

``python -m tests.project.system_access`` reads steps from standard input, as JSON: pairs of a name and code. It runs
them in one namespace and prints as JSON what each step did. Source: Python's table of audit events.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

__all__ = ["describe_request"]

_NETWORK = {
    *("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyaddr", "socket.gethostbyname"),
    *("socket.getnameinfo", "socket.sendmsg", "socket.sendto", "urllib.Request", "http.client.connect"),
}
_PROGRAMS = {
    *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system"),
    *("pty.spawn", "subprocess.Popen", "webbrowser.open"),
}
_FILES = {
    *("os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"),
    *("shutil.copyfile", "shutil.move", "shutil.rmtree", "sqlite3.connect", "tempfile.mkdtemp", "tempfile.mkstemp"),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


def describe_request(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Describes an audit event of these kinds; returns None for others."""
    if event in _NETWORK | _PROGRAMS | _FILES:
        return f"{event} {arguments!r:.200}"
    if event == "open" and arguments[0] != os.devnull:
        _, mode, flags = arguments
        if set(mode or "") & set("wax+") or (isinstance(flags, int) and flags & _WRITING):
            return f"write {arguments!r:.200}"
    return None


def _main() -> None:
    asked: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if (found := describe_request(event, arguments)) is not None:
            asked.append(found)

    steps = json.load(sys.stdin)
    sys.addaudithook(watch)
    told: dict[str, list[str]] = {}
    namespace: dict[str, Any] = {}
    for name, code in steps:
        asked.clear()
        exec(code, namespace)
        told[name] = [*asked]
    print(json.dumps(told))


if __name__ == "__main__":
    _main()
