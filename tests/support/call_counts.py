"""Counts the functions of the package that a piece of work enters: how long its path is, on any machine the same."""

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
    """How often each function was entered, by its file and its name. A generator is entered at each step."""

    @property
    def files(self) -> int:
        """In how many files they are."""
        return len({file for file, _ in self})

    def of(self, name: str) -> int:
        """How often functions of this name were entered."""
        return sum(count for (_, each), count in self.items() if each.rpartition(".")[2] == name)


@contextmanager
def counted() -> Iterator[Calls]:
    """Counts the calls of the package's functions in the block, in this thread and those that it starts."""
    calls = Calls()
    start_counting(calls)
    try:
        yield calls
    finally:
        stop_counting()


def start_counting(calls: Calls) -> None:
    """Counts into ``calls`` from now on, until `stop_counting`. Functions that were entered before do not count."""

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDER):
            calls[code.co_filename[len(FOLDER) + 1 :], code.co_qualname] += 1

    threading.setprofile(note)
    sys.setprofile(note)


def stop_counting() -> None:
    """Ends what `start_counting` began."""
    sys.setprofile(None)
    threading.setprofile(None)


def added_by_one_more(work: Callable[[int], object], few: int = 40, many: int = 80) -> dict[tuple[str, str], float]:
    """The calls for each further item, by file and name: those of ``work(many)`` less those of ``work(few)``.

    What is done once, and what is cached after the first time, does not count.
    """
    work(many)
    with counted() as of_few:
        work(few)
    with counted() as of_many:
        work(many)
    return {key: (count - of_few[key]) / (many - few) for key, count in of_many.items() if count > of_few[key]}
