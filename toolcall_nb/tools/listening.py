"""Where output passes on its way, bent while somebody listens: streams, displays, and the start of threads.

The objects themselves are bent, not the names ``sys.stdout`` and ``sys.stderr``: so whoever holds a stream from
before, a logging handler for one, is heard as well. IPython puts a ``write`` of its own into the stream for each
cell and the one of before back after it, so that what is bent in one cell would be straight in the next: where the
stream's class can be bent, it is (`_HeardWrite`), and holds whatever is put into the stream.

Who listens is a matter of the context (`LISTENER`), so what others print at the same time goes its usual way;
threads begin with the listener of the thread that starts them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FunctionType
from typing import Any, Protocol, TypeAlias
from weakref import WeakSet

from toolcall_nb.core.events import Object
from toolcall_nb.tools.figures import figure_places
from toolcall_nb.tools.interrupting import STARTING

__all__ = ["LISTENER", "Bent", "Listener", "bent", "listener", "routed"]


class Listener(Protocol):
    """Takes what is printed in a context, until it is ``closed``; then the one ``around`` it does."""

    around: Listener | None
    closed: bool
    process: int

    def write(self, text: str) -> None:
        """Something was printed."""

    def show(self, data: Object, display_id: str | None = None, *, is_update: bool = False) -> bool:
        """Something was displayed: a MIME bundle. False for an update of what was not displayed here."""

    def clear(self, *, wait: bool = False) -> None:
        """What was displayed goes; with ``wait`` when something else is displayed."""

    def open(self, figure: Any) -> None:
        """A figure was opened."""

    def show_figures(self) -> None:
        """Show the figures that were opened."""

    def hold(self, method: Bent) -> None:
        """Keep this method bent as well, until the end."""


LISTENER: ContextVar[Listener | None] = ContextVar("toolcall_nb_listener", default=None)
"""Who was set to listen in this context."""

Bend: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From a method as it was to the one that stands in its place."""


def listener() -> Listener | None:
    """Who listens here: whoever was set, or was around it, and is not done. In a forked process nobody does."""
    found = LISTENER.get()
    while found is not None and found.closed:
        found = found.around
    return found if found is not None and found.process == os.getpid() else None


@contextmanager
def routed() -> Iterator[None]:
    """Within this, output goes to the `listener` of its context, where there is one."""
    methods: list[Bent] = []
    try:
        for owner, name, bend in _places():
            with suppress(AttributeError, TypeError):  # an object that takes no attributes is left alone
                methods.append(bent(owner, name, bend))
        yield
    finally:
        for method in methods:
            method.release()


def _places() -> Iterator[tuple[Any, str, Bend]]:
    yield threading.Thread, "start", _starting
    for stream in (sys.stdout, sys.stderr):
        yield _place_of_write(stream)
    interactive = sys.modules.get("IPython.core.getipython")
    publisher = getattr(interactive and interactive.get_ipython(), "display_pub", None)
    if publisher is not None:
        yield publisher, "publish", _publishing
        yield publisher, "clear_output", _clearing
    yield from figure_places(_opened, _show_figures)


def _place_of_write(stream: Any) -> tuple[Any, str, Bend]:
    """The stream's class, where it is one of Python's own making; else the stream."""
    if isinstance(getattr(type(stream), "write", None), FunctionType | _HeardWrite) and hasattr(stream, "__dict__"):
        with suppress(TypeError):  # an object that cannot be referred to weakly
            _HEARD.add(stream)
            return type(stream), "write", _HeardWrite
    return stream, "write", _writing


# What stands in the place of each method ----------------------------------------------------------------------


def _writing(write: Callable[..., Any]) -> Callable[..., Any]:
    straight = getattr(write, "straight", write)

    def routed_write(text: Any) -> Any:
        here = listener()
        if here is None or not isinstance(text, str):
            return straight(text)
        here.write(text)
        return len(text)

    setattr(routed_write, "straight", straight)  # noqa: B010 - type checkers know of no attributes of functions
    return routed_write


_HEARD: WeakSet[Any] = WeakSet()
"""Streams that output goes to; other objects of their classes are none of our business."""


class _HeardWrite:
    """The ``write`` of a class of streams: bent for those in `_HEARD`, whatever was put in its place in the object.

    What is read from here and put back later, as IPython does around each cell, is put back as it was without the
    bend: so none is left behind, and none grows upon another.
    """

    def __init__(self, write: Callable[..., Any]) -> None:
        self._write = write

    def __get__(self, stream: Any, owner: type | None = None) -> Any:
        if stream is None:
            return self
        write = vars(stream).get("write") or self._write.__get__(stream)
        return _writing(write) if stream in _HEARD else write

    def __set__(self, stream: Any, write: Any) -> None:
        vars(stream)["write"] = getattr(write, "straight", write)

    def __delete__(self, stream: Any) -> None:
        if vars(stream).pop("write", None) is None:
            raise AttributeError("write")

    def __call__(self, stream: Any, *arguments: Any) -> Any:
        """By the class's name: ``OutStream.write(stream, text)``."""
        return self.__get__(stream)(*arguments)


def _publishing(publish: Callable[..., Any]) -> Callable[..., Any]:
    def routed_publish(data: Any, *arguments: Any, **options: Any) -> Any:
        here = listener()
        if here is None or not isinstance(data, dict):
            return publish(data, *arguments, **options)
        bars = sys.modules.get("tqdm.notebook")
        if bars is not None:
            here.hold(bent(bars.tqdm_notebook, "display", _drawing))
        display_id = (options.get("transient") or {}).get("display_id")
        if here.show(data, display_id, is_update=bool(options.get("update"))):
            return None
        return publish(data, *arguments, **options)

    return routed_publish


def _clearing(clear: Callable[..., Any]) -> Callable[..., Any]:
    def routed_clear(wait: bool = False) -> Any:
        here = listener()
        return clear(wait) if here is None else here.clear(wait=wait)

    return routed_clear


def _opened(figure: Any) -> None:
    here = listener()
    if here is not None:
        here.open(figure)


def _show_figures() -> bool:
    here = listener()
    if here is not None:
        here.show_figures()
    return here is not None


def _starting(start: Callable[..., Any]) -> Callable[..., Any]:
    def routed_start(thread: threading.Thread) -> Any:
        here = listener()
        if here is not None:
            with suppress(AttributeError):  # as above
                _give(thread, here)
        with STARTING:
            return start(thread)

    return routed_start


def _give(thread: threading.Thread, here: Listener) -> None:
    run = thread.run

    def run_listened() -> None:
        vars(thread).pop("run", None)
        LISTENER.set(here)
        run()

    setattr(thread, "run", run_listened)  # noqa: B010 - a method is assigned to, which type checkers refuse


def _drawing(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A progress bar of ``tqdm.notebook`` draws itself into a widget, and so into no log."""

    def routed_draw(bar: Any, *arguments: Any, **options: Any) -> Any:
        draw(bar, *arguments, **options)
        here = listener()
        if here is not None:
            is_last = options.get("close") or options.get("bar_style")
            here.write(f"\r{bar.format_meter(**bar.format_dict)}" + ("\n" if is_last else ""))

    return routed_draw


# Bending and letting go ---------------------------------------------------------------------------------------


class Bent:
    """One method of one object or class, while it is bent; ``users`` count who wants it so."""

    def __init__(self, owner: Any, name: str, bend: Bend) -> None:
        self._owner, self._name = owner, name
        self._own = vars(owner).get(name)
        self._replacement = bend(getattr(owner, name))
        self.users = 0
        setattr(owner, name, self._replacement)

    def release(self) -> None:
        """One user less. With the last it is as it was, unless somebody else has bent it further meanwhile."""
        with _LOCK:
            self.users -= 1
            if self.users:
                return
            del _BENT[id(self._owner), self._name]
            if vars(self._owner).get(self._name) is not self._replacement:
                return
            if self._own is None:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self._own)


_LOCK = threading.RLock()
_BENT: dict[tuple[int, str], Bent] = {}


def bent(owner: Any, name: str, bend: Bend) -> Bent:
    """The method, bent for one user more."""
    with _LOCK:
        found = _BENT.get((id(owner), name))
        if found is None:
            found = _BENT[id(owner), name] = Bent(owner, name, bend)
        found.users += 1
        return found
