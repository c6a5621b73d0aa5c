"""A turn of a scripted model that waits at gates, so that a test can inspect each stage.

`setup` returns the first cell of a test's notebook. A gate is a file: the kernel waits until the test creates it. The
turn: a sentence, gate ``call``, the beginning of a call, gate ``input``, the rest of the call, the tool with gate
``tool``, gate ``answer``, the first part of a long answer, gate ``rest``, its second part, gate ``end``.
"""

from __future__ import annotations

__all__ = ["ASK", "KEEPING", "NEXT", "setup"]

ASK = "%%toolchat --model scripted {options}\nWhat is the weather in Lisbon?"

NEXT = "%%toolchat --model mock:text --speed 0\nAnd then?"
"""A next turn in the same thread, which ends at once."""

KEEPING = '''
got = []

@tool
def keep(value: object, note: str = "") -> str:
    """Keeps what it is given."""
    got.append(value)
    return "kept"

class Caller:
    """Calls ``keep`` once for each of the values, one request after the other; then it says a word."""

    def __init__(self, *values):
        self.values = values

    def stream(self, messages, tools):
        done = len(messages[-1].calls) if messages[-1].role == "assistant" else 0
        if done < len(self.values):
            said = sum(len(message.calls) for message in messages)
            yield ev.ToolInputAvailable(f"call_{said + 1}", "keep", {"value": self.values[done], "note": "now"})
        else:
            yield ev.TextStart("t")
            yield ev.TextDelta("t", "That is all.")
            yield ev.TextEnd("t")
'''
"""A second cell: a tool, and a model that calls it, for tests of approvals."""

_SETUP = '''
%load_ext toolcall_nb
import time
from pathlib import Path
from toolcall_nb import events as ev, tool

GATE = "gate-{notebook}-%s"

def gate(name):
    while not Path(GATE % name).exists():
        time.sleep(0.01)

@tool
def weather(city: str, days: int = 1) -> dict:
    """The forecast for a city."""
    print("Asking the station")
    gate("tool")
    return dict(zip(["Mon", "Tue", "Wed"][:days], [24.1, 25.6, 23.9]))  # no table: the card closes at the end

class Scripted:
    name = "scripted"

    def stream(self, messages, tools):
        if messages[-1].role == "assistant":
            yield from self.answer()
            return
        yield ev.TextStart("t")
        yield ev.TextDelta("t", "I will look at the **forecast**.")
        yield ev.TextEnd("t")
        gate("call")
        yield ev.ToolInputStart("call_1", "weather")
        yield ev.ToolInputDelta("call_1", '{{"city": "Lis')
        gate("input")
        yield ev.ToolInputDelta("call_1", 'bon", "days": 3}}')
        yield ev.ToolInputAvailable("call_1", "weather", {{"city": "Lisbon", "days": 3}})

    def answer(self):
        gate("answer")
        yield ev.TextStart("t")
        for word in "It will be warm: 24.5 degrees on average, and dry.".split(" "):
            yield ev.TextDelta("t", word + " ")
        gate("rest")
        for number in range(12):
            yield ev.TextDelta("t", f"\\n\\nParagraph {{number}} of a long answer, with `code` and $x^2$.")
        yield ev.TextEnd("t")
        gate("end")

scripted = Scripted()
'''


def setup(notebook: str) -> str:
    """Returns the setup cell for the notebook of this name."""
    return _SETUP.strip("\n").format(notebook=notebook)
