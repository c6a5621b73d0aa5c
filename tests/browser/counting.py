"""A model that counts aloud until it is let go: what a page shows of it can be told to the last word.

Its turn: a hundred numbers as text, one in each delta, and a call; and so on, until gate ``end`` is passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser.browser import PATIENCE, Notebook
from tests.browser.conftest import Lab

__all__ = ["ACTS", "RUN", "SHOW", "assert_whole", "counting", "numbers", "state", "until"]

RUN, _STATE, SHOW, ACTS = 2, 3, 4, 5
"""The cells: one runs the turn, one says how far it is, one shows the transcript; then come the test's own."""

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
"""It needs none of the notebook's variables: a test takes them away."""

_NUMBERS = """output => [...output.querySelectorAll(".tc-assistant .tc-text")]
    .flatMap(text => text.textContent.split(/\\s+/)).filter(word => /^\\d+$/.test(word)).map(Number)"""


def counting(lab: Lab, options: str = "", *acts: str, act: str = "pass") -> Notebook:
    """A notebook in which the turn has begun and is seen. ``act`` is what the tool does, ``acts`` are more cells."""
    ask = f"%%toolchat --model counting --tools note --max-steps 100000 {options}\nCount."
    say = "print(counting.count, len(chat.calls), counting.queued)"
    notebook = lab.page(lab.write(_MODEL.replace("ACT", act), ask, say, "%toolchat show", *acts)).open()
    notebook.run(0)
    notebook.run(1)
    notebook.start(RUN)
    expect(notebook.output(RUN)).to_contain_text("20 21 22")
    return notebook


def numbers(output: Locator) -> list[int]:
    """The numbers that stand in an output as text, in their order."""
    found: list[int] = output.evaluate(_NUMBERS)
    return found


def state(notebook: Notebook) -> tuple[int, int, int]:
    """How many numbers the model has said, how many calls there were, and the most that waited to be sent."""
    notebook.run(_STATE)
    count, calls, queued = map(int, notebook.output(_STATE).inner_text().split())
    return count, calls, queued


def until(notebook: Notebook, holds: Callable[[], bool], what: str) -> None:
    """Wait for something that no locator tells."""
    give_up = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < give_up, f"never: {what}"
        notebook.page.wait_for_timeout(100)


def assert_whole(output: Locator, count: int, calls: int) -> None:
    """It shows all that was said, each thing once and in order, as its static form."""
    expect(output).to_contain_text("The end.")
    expect(output.locator("[aria-live]")).to_have_count(0)
    assert numbers(output) == list(range(count))
    assert output.locator(".tc-call.tc-output-available").count() == calls
