"""The soak test's notebook: a model that sends a minute's worth of stream at once, and cells that ask it.

A minute of stream is 3,000 tokens (50 a second) and a call every five seconds.
"""

from __future__ import annotations

__all__ = ["CALLS", "MEASURE", "TOKENS", "TURNS", "cells"]

TOKENS = 3_000
CALLS = 12
"""Calls in each minute of stream."""

TURNS = (1, 2, 3)
MEASURE = 4
"""Cell numbers: each of `TURNS` is a minute of stream, the last one in the background; `MEASURE` prints figures."""

_SETUP = '''
%load_ext toolcall_nb
import gc, json, os, threading
from pathlib import Path
from ipywidgets.widgets.widget import _instances
from toolcall_nb import events as ev, tool

@tool
def look_up(number: int) -> dict:
    """Look something up."""
    print("Looking", number)
    return {"number": number, "rows": list(range(20))}

class Soaking:
    name = "soaking"
    said = turns = events = 0

    def stream(self, messages, tools):
        for event in self.step():
            self.events += 1
            yield event

    def step(self):
        yield ev.TextStart("t")
        for at in range(EACH):
            yield ev.TextDelta("t", f"word {at} of **many**, " if at % 40 else "\\n\\n- an item\\n\\n")
        yield ev.TextEnd("t")
        self.said += 1
        if self.said % STEPS:
            yield ev.ToolInputAvailable(f"call_{self.said % STEPS}", "look_up", {"number": self.said})
        else:
            self.turns += 1

    def is_still(self):
        return not any(thread.name.startswith("toolcall_nb") for thread in threading.enumerate())

def threads():
    """Those of JupyterLab's subshells left out: it makes one for each page and forgets it when that is loaded anew."""
    return [thread for thread in threading.enumerate() if not thread.name.startswith("subshell-")]

def resident():
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0

soaking = Soaking()
'''

_TURN = "%%toolchat --model soaking --tools look_up --max-steps 1000 --new --thread {options}\nGo on."

_MEASURE = """gc.collect()
manager = __import__("comm").get_comm_manager()
print(json.dumps({"turns": soaking.turns, "events": soaking.events, "still": soaking.is_still(),
    "widgets": len(_instances), "comms": len(manager.comms), "threads": len(threads()),
    "objects": len(gc.get_objects()), "bytes": resident()}))"""


def cells(tokens: int = TOKENS) -> list[str]:
    """Returns the sources of the cells, in order; ``tokens`` are those of each minute."""
    steps = CALLS + 1
    setup = _SETUP.strip().replace("STEPS", str(steps)).replace("EACH", str(tokens // steps))
    turns = [_TURN.format(options=options) for options in ("one", "two", "three --background")]
    return [setup, *turns, _MEASURE]
