"""The store of a server's threads and turns: `Store`, and `LocalStore` for a server of one worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from toolcall_nb.core.transcript import Transcript
from toolcall_nb.server.settings import Settings
from toolcall_nb.server.store import ThreadStore
from toolcall_nb.server.turn import Journal, ServedTurn

_REDIS_URLS = ("redis://", "rediss://", "unix://")


class Store(Protocol):
    """Keeps threads, and lets several workers share their turns. Safe in any thread; its methods may wait for a disk.

    ``is_shared`` is whether other workers use it too. Then a turn's changes are kept by the journal of `claim`.
    """

    is_shared: bool

    def load(self, thread: str) -> Transcript | None:
        """Returns the thread, or None if there is none. Raises `DamagedThread`."""

    def save(self, thread: str, transcript: Transcript, *, is_running: bool = False) -> str:
        """Stores the thread; returns its version, which changes when another worker saves it.

        ``is_running`` is whether its turn goes on.
        """

    def claim(self, thread: str) -> Journal | None:
        """Reserves the thread for a turn of this worker; `Problem` 409 if a turn runs in it elsewhere.

        Returns where the turn's changes are written before readers see them; None if readers may see them at once.
        """

    def release(self, thread: str) -> None:
        """Gives up a claim whose turn did not begin."""

    def find(self, thread: str) -> ServedTurn | None:
        """Returns the newest turn of the thread, wherever it runs; None if it ended a while ago."""

    def ask_owner(self, turn: ServedTurn, command: dict[str, Any]) -> Any:
        """Lets the worker that runs the turn execute a command; returns the result, or raises its `Problem`."""

    def close(self) -> None:
        """Ends the connections."""


class LocalStore:
    """Threads in a folder, or with None in memory alone. Turns are this process's own."""

    is_shared = False

    def __init__(self, folder: str | None) -> None:
        self._threads = None if folder is None else ThreadStore(folder)
        self._lock = None if self._threads is None else self._threads.claim()

    def load(self, thread: str) -> Transcript | None:
        """See `Store`."""
        return None if self._threads is None else self._threads.load(thread)

    def save(self, thread: str, transcript: Transcript, *, is_running: bool = False) -> str:
        """See `Store`."""
        if self._threads is not None:
            self._threads.save(thread, transcript, is_running=is_running)
        return ""

    def claim(self, thread: str) -> Journal | None:
        """See `Store`."""
        return None

    def release(self, thread: str) -> None:
        """See `Store`."""

    def find(self, thread: str) -> ServedTurn | None:
        """See `Store`."""
        return None

    def ask_owner(self, turn: ServedTurn, command: dict[str, Any]) -> Any:
        """See `Store`."""
        raise NotImplementedError("Every turn of this store is the process's own.")

    def close(self) -> None:
        """See `Store`."""
        if self._lock is not None:
            self._lock.release()


def open_store(settings: Settings, execute: Callable[[dict[str, Any]], Any], clock: Callable[[], float]) -> Store:
    """Returns the store that the settings name. ``execute`` executes a command of another worker.

    Raises `UsageError` if the store cannot be used.
    """
    if settings.store is None or not settings.store.startswith(_REDIS_URLS):
        return LocalStore(settings.store)
    from toolcall_nb.server.redis_store import RedisStore

    return RedisStore(settings, execute, clock)
