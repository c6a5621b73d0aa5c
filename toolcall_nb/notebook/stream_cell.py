"""A stream shown in a cell, until it ends or somebody stops it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolcall_nb.core import events as ev
from toolcall_nb.models.sdk_streams import close_quietly
from toolcall_nb.notebook.environment import Place, place_of
from toolcall_nb.notebook.faces import make_face
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.runs.footer import info_line
from toolcall_nb.runs.run import Run, Stoppable

if TYPE_CHECKING:
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import Transcript
    from toolcall_nb.runs.face import Face

__all__ = ["Shown", "play", "play_async"]

log = logger("toolcall_nb.notebook")

_LATE = (
    "This stream is read after the end of its cell, and nobody is there to see it. "
    "Write `await show(stream)`, and the cell waits for its end."
)
_tasks: set[asyncio.Task[None]] = set()
"""Those that run: a loop holds its tasks weakly."""


class Shown:
    """What `toolcall_nb.show` has shown, or still shows. As the value of another cell it shows that again.

    Awaiting it waits until all of it was shown, and gives the handle itself; to cancel who waits ends the stream.
    """

    def __init__(self, transcript: Callable[[], Transcript], task: asyncio.Task[None] | None = None) -> None:
        self._transcript = transcript
        self._task = task
        self._cell = _cell_number()

    def __repr__(self) -> str:
        return f"<Shown: {self.transcript!r}>"

    def __await__(self) -> Generator[Any, None, Shown]:
        return self._end().__await__()

    def _ipython_display_(self) -> None:
        """In the cell that has made it, it stands already."""
        if self._cell is None or self._cell != _cell_number():
            from toolcall_nb.notebook.show import put

            put(self.transcript)

    @property
    def transcript(self) -> Transcript:
        """What was shown so far."""
        return self._transcript()

    @property
    def is_running(self) -> bool:
        """Whether more may come."""
        return self._task is not None and not self._task.done()

    async def _end(self) -> Shown:
        if self._task is not None:
            try:
                await asyncio.shield(self._task)
            except asyncio.CancelledError:
                self._task.cancel()
                await asyncio.wait({self._task})
                raise
        return self


def play(events: Generator[Event, None, None], name: str) -> Shown:
    """Show the events of a stream, until it ends or is stopped; then it is closed."""
    stoppable = Stoppable(events)
    run = Run(lambda _: iter(stoppable), stop=stoppable.stop, info=lambda run: _info(name, run.face.transcript))
    try:
        run.play(make_face(place_of(_shell()), info=name, on_stop=run.stop, timings={}))
    finally:
        close_quietly(events)
    return Shown(lambda: run.face.transcript)


def play_async(events: AsyncGenerator[Event, None], name: str) -> Shown:
    """The same of an asynchronous one: as a task on the loop that runs, or to its end where none does."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        play = _Play(events, name)
        _run(play.to_the_end())
        return Shown(lambda: play.face.transcript)
    play = _Play(events, name)
    task = loop.create_task(play.to_the_end())
    play.stop = lambda: loop.call_soon_threadsafe(task.cancel)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    _say_if_late(task)
    return Shown(lambda: play.face.transcript, task)


class _Play:
    """An asynchronous stream on its way to a face, which is there at once."""

    def __init__(self, events: AsyncGenerator[Event, None], name: str) -> None:
        self.stop: Callable[[], Any] = lambda: None
        self._events = events
        self._name = name
        self._has_failed = False
        self.face: Face = make_face(
            place_of(_shell()), info=name, on_stop=lambda: self.stop(), timings={}, background=True
        )

    async def to_the_end(self) -> None:
        """Also a quiet one where it is cancelled or interrupted."""
        try:
            async for event in self._events:
                self._safely(lambda event=event: self.face.show(event))  # type: ignore[misc]  # mypy: lambda's default
        except (asyncio.CancelledError, KeyboardInterrupt):
            self._safely(lambda: self.face.show(ev.Abort(reason="stopped")))
        finally:
            with suppress(Exception, asyncio.CancelledError):
                await self._events.aclose()
            self._safely(lambda: self.face.close(_info(self._name, self.face.transcript)))

    def _safely(self, show: Callable[[], None]) -> None:
        try:
            show()
        except Exception:
            if not self._has_failed:
                log.exception("The display failed; the stream goes on")
            self._has_failed = True


def _run(playing: Coroutine[Any, Any, None]) -> None:
    """On the loop that IPython keeps for cells that await, to which their clients belong; else on a new one."""
    shell = _shell()
    if shell is None:
        asyncio.run(playing)
        return
    from IPython.core.async_helpers import get_asyncio_loop

    loop: asyncio.AbstractEventLoop = get_asyncio_loop()  # type: ignore[no-untyped-call]  # IPython has no types
    task = loop.create_task(playing)
    try:
        loop.run_until_complete(task)
    except KeyboardInterrupt:
        task.cancel()
        loop.run_until_complete(asyncio.wait({task}))


def _say_if_late(task: asyncio.Task[None]) -> None:
    """Where nobody looks on, a cell is saved when it ends: then it says what it lacks."""
    shell = _shell()
    if place_of(shell) is not Place.STATIC:
        return

    def look(*_: Any) -> None:
        shell.events.unregister("post_run_cell", look)
        if not task.done():
            print(_LATE)

    shell.events.register("post_run_cell", look)


def _info(name: str, transcript: Transcript) -> str:
    """The line below: the model that answered, where that is told, stands for the stream."""
    told = (message.metadata.get("model") for message in reversed(transcript.messages))
    return info_line(next((model for model in told if isinstance(model, str) and model), name), transcript)


def _cell_number() -> int | None:
    """The number of the cell that runs."""
    number: int | None = getattr(_shell(), "execution_count", None)
    return number


def _shell() -> Any:
    from IPython.core.getipython import get_ipython

    return get_ipython()
