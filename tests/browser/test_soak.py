"""Many turns leave nothing behind: after all turns, no more is alive than after half of them.

`./dev soak` is the long form, with an hour's worth of streams.
"""

from __future__ import annotations

import pytest

from tests.browser.conftest import Lab
from tests.soak.notebook import TURNS, cells
from tests.soak.running import soak

EXACT = ("widgets", "comms", "threads")
OBJECTS = 1_000
"""Tolerance for objects that IPython keeps of executed cells. Six runs that are kept would be 4,000 objects."""

NODES = 200
"""Tolerance for JupyterLab's own nodes and listeners, whose number varies. A turn has more than these."""


@pytest.mark.thorough
def test_after_twice_as_many_turns_and_a_reload_no_more_is_alive_in_kernel_and_page(lab: Lab) -> None:
    notebook = lab.page(lab.server.write("soak.ipynb", *cells(tokens=390))).open()
    _, half, whole = soak(notebook, rounds=4, parts=2)
    assert (half["turns"], whole["turns"]) == (3 * len(TURNS), 5 * len(TURNS))
    assert {name: whole[name] for name in EXACT} == {name: half[name] for name in EXACT}
    assert whole["objects"] - half["objects"] < OBJECTS
    assert whole["nodes"] - half["nodes"] < NODES
    assert whole["listeners"] - half["listeners"] < NODES
