"""Shows the turns that a cell runs by the methods of a `Chat`, as the magic shows its own: `show_turn`."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from toolcall_nb.live_runs.run import PLAYING, Run, Source
from toolcall_nb.notebook.environment import Environment, find_environment
from toolcall_nb.notebook.run_displays import CellDisplay, make_display
from toolcall_nb.notebook.shown_values import note_shown, running_cell
from toolcall_nb.notebook.watch import open_watches
from toolcall_nb.render.run_footer import info_line
from toolcall_nb.tools.ipython_shell import ipython_shell
from toolcall_nb.tools.output.patched_streams import OUTPUT_SINK

if TYPE_CHECKING:
    from toolcall_nb.chat import Chat


def show_turn(chat: Chat, turn: Source) -> bool:
    """Runs a turn to its end and shows it. Returns False, and runs nothing, where a turn is not shown.

    Raises what the turn raises.
    """
    if not _is_in_cell():
        return False
    cell = running_cell()
    run, display = _run_with_display(chat, turn)
    run.play(display)
    _end(chat, run, cell)
    return True


async def show_turn_async(chat: Chat, turn: Source) -> bool:
    """Does the same beside the running event loop, with the turn in a thread. Stops the turn if it is cancelled."""
    if not _is_in_cell():
        return False
    cell = running_cell()
    run, display = _run_with_display(chat, turn)
    run.play_in_background(display)
    if run.has_other_thread:
        try:
            await asyncio.to_thread(run.join)
        except asyncio.CancelledError:
            await asyncio.to_thread(run.stop)  # waits for the end, for a few seconds
            raise
    _end(chat, run, cell)
    return True


def _is_in_cell() -> bool:
    """Whether this code is a cell's own, and no tool's, watch's, thread's or widget's: those have other displays."""
    sink = OUTPUT_SINK.get()
    is_inner = PLAYING.get() is not None or (sink is not None and not sink.closed) or bool(open_watches)
    if is_inner or threading.current_thread() is not threading.main_thread():
        return False
    return find_environment(ipython_shell()) in (Environment.LIVE, Environment.STATIC, Environment.CONSOLE)


def _run_with_display(chat: Chat, turn: Source) -> tuple[Run, CellDisplay]:
    run = Run(turn, stop=chat.stop, info=lambda run: info_line(chat.shown_model_name, run.display.transcript))
    environment = find_environment(ipython_shell())
    return run, make_display(environment, info=chat.shown_model_name, on_stop=run.stop, timings=chat.timings)


def _end(chat: Chat, run: Run, cell: object) -> None:
    if run.error is not None:
        raise run.error
    note_shown(chat.transcript.messages[-1], cell)
