"""What a process asks of the system, watched by Python's audit events: network, other programs, files written.

Run as ``python -m tests.support.watched`` with steps on standard input, as JSON: pairs of a name and code. Each step
runs in
one namespace; what it asked for is printed as JSON by the step's name. Source: the table of audit events of Python.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

__all__ = ["ask"]

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


def ask(event: str, arguments: tuple[Any, ...]) -> str | None:
    """What an audit event asks the system for; None where that is nothing of these."""
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
        if (found := ask(event, arguments)) is not None:
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
