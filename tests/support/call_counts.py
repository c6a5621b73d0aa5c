"""Counts the package's functions that a piece of work enters: a measure of its cost that is equal on any machine."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import toolcall_nb

FOLDER = str(Path(toolcall_nb.__file__).parent)


class Calls(Counter[tuple[str, str]]):
    """Number of times each function was entered, by file and name. A generator is entered at each step."""

    @property
    def files(self) -> int:
        """Number of files that contain the functions."""
        return len({file for file, _ in self})

    def of(self, name: str) -> int:
        """Returns the number of times that functions of this name were entered."""
        return sum(count for (_, each), count in self.items() if each.rpartition(".")[2] == name)


@contextmanager
def counted() -> Iterator[Calls]:
    """Counts calls of the package's functions inside the block, in this thread and in threads started meanwhile."""
    calls = Calls()
    start_counting(calls)
    try:
        yield calls
    finally:
        stop_counting()


def start_counting(calls: Calls) -> None:
    """Starts counting into ``calls``, until `stop_counting`. Functions that were entered before do not count."""

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDER):
            calls[code.co_filename[len(FOLDER) + 1 :], code.co_qualname] += 1

    threading.setprofile(note)
    sys.setprofile(note)


def stop_counting() -> None:
    """Stops the counting that `start_counting` started."""
    sys.setprofile(None)
    threading.setprofile(None)


def added_by_one_more(work: Callable[[int], object], few: int = 40, many: int = 80) -> dict[tuple[str, str], float]:
    """Returns the calls per additional item, by file and name: ``work(many)`` minus ``work(few)``.

    Work that is done once, or cached after the first time, does not count.
    """
    work(many)
    with counted() as of_few:
        work(few)
    with counted() as of_many:
        work(many)
    return {key: (count - of_few[key]) / (many - few) for key, count in of_many.items() if count > of_few[key]}
