"""A model that counts until a gate opens, so that a test can check that a page shows every single delta.

Its turn repeats a hundred numbers as text, one per delta, and a tool call, until gate ``end`` is open.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser.browser import PATIENCE, Notebook
from tests.browser.conftest import Lab

__all__ = ["OWN_CELLS", "RUN", "SHOW", "assert_all_numbers", "numbers", "progress", "start_counting_turn", "wait_for"]

RUN, _STATE, SHOW, OWN_CELLS = 2, 3, 4, 5
"""Numbers of the cells that run the turn, print its progress, and show the transcript, and of the test's first cell."""

_MODEL = '''
def make(end, shell):
    from time import sleep
    from toolcall_nb.events import TextDelta, TextEnd, TextStart, ToolInputAvailable

    class Counting:
        name = "counting"
        count = queued = 0

        def stream(self, messages, tools):
            if end.exists():
                yield TextStart("t")
                yield TextDelta("t", "The end.")
                return
            yield TextStart("t")
            for _ in range(100):
                yield TextDelta("t", f"{self.count} ")
                self.count += 1
                self.queued = max(self.queued, len(shell.kernel.iopub_thread._events))
                sleep(0.002)
            yield TextEnd("t")
            yield ToolInputAvailable(f"call_{self.count}", "note", {"number": self.count})

    return Counting()

counting = make(Path(GATE % "end"), get_ipython())

@tool
def note(number: int) -> int:
    """Notes a number."""
    ACT
    return number
'''
"""The model uses none of the notebook's variables, since a test deletes them."""

_NUMBERS = """output => [...output.querySelectorAll(".tc-assistant .tc-text")]
    .flatMap(text => text.textContent.split(/\\s+/)).filter(word => /^\\d+$/.test(word)).map(Number)"""


def start_counting_turn(lab: Lab, options: str = "", *acts: str, act: str = "pass") -> Notebook:
    """Opens a notebook and starts the turn. ``act`` is the tool's code; ``acts`` are more cells."""
    ask = f"%%toolchat --model counting --tools note --max-steps 100000 {options}\nCount."
    say = "print(counting.count, len(chat.calls), counting.queued)"
    notebook = lab.page(lab.write(_MODEL.replace("ACT", act), ask, say, "%toolchat show", *acts)).open()
    notebook.run(0)
    notebook.run(1)
    notebook.start(RUN)
    expect(notebook.output(RUN)).to_contain_text("20 21 22")
    return notebook


def numbers(output: Locator) -> list[int]:
    """Returns the numbers in an output's text, in order."""
    found: list[int] = output.evaluate(_NUMBERS)
    return found


def progress(notebook: Notebook) -> tuple[int, int, int]:
    """Returns how many numbers the model has sent, how many calls it made, and the longest queue of unsent messages."""
    notebook.run(_STATE)
    count, calls, queued = map(int, notebook.output(_STATE).inner_text().split())
    return count, calls, queued


def wait_for(notebook: Notebook, holds: Callable[[], bool], what: str) -> None:
    """Waits for a condition that no locator can express; fails with ``what`` in the message."""
    give_up = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < give_up, f"never: {what}"
        notebook.page.wait_for_timeout(100)


def assert_all_numbers(output: Locator, count: int, calls: int) -> None:
    """Asserts that the output is static and shows each number and call once and in order."""
    expect(output).to_contain_text("The end.")
    expect(output.locator("[aria-live]")).to_have_count(0)
    assert numbers(output) == list(range(count))
    assert output.locator(".tc-call.tc-output-available").count() == calls
