"""Interrupting a thread that runs somebody else's code, as far as Python allows."""

from __future__ import annotations

import threading

__all__ = ["stop_thread"]


def stop_thread(thread: threading.Thread, exception: type[BaseException] = KeyboardInterrupt) -> bool:
    """Raise ``exception`` in another thread, before its next step of Python code; whether that was possible.

    A call into C (a sleep, a read, a long computation) is not cut short: the exception waits for its return. Where
    Python has no such function (other implementations than CPython) nothing happens.
    """
    if thread.ident is None or not thread.is_alive():
        return False
    try:
        import ctypes

        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    except (ImportError, AttributeError):
        return False
    return bool(raise_in(ctypes.c_ulong(thread.ident), ctypes.py_object(exception)) == 1)
