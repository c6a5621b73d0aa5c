"""Much use costs no more than some: what is alive after many turns is what was alive after half of them.

The long one is `./dev soak`: an hour's worth of streams.
"""

from __future__ import annotations

import pytest

from tests.browser.conftest import Lab
from tests.soak.notebook import TURNS, cells
from tests.soak.running import soak

EXACT = ("widgets", "comms", "threads")
OBJECTS = 1_000
"""What IPython keeps of some cells, with room. Six turns whose runs were kept would be 4,000."""

NODES = 200
"""What JupyterLab's own nodes and listeners go up and down by. A turn has more of its own."""


@pytest.mark.thorough
def test_after_twice_as_many_turns_and_a_reload_nothing_more_is_alive_in_kernel_and_page(lab: Lab) -> None:
    notebook = lab.page(lab.server.write("soak.ipynb", *cells(tokens=390))).open()
    _, half, whole = soak(notebook, rounds=4, parts=2)
    assert (half["turns"], whole["turns"]) == (3 * len(TURNS), 5 * len(TURNS))
    assert {name: whole[name] for name in EXACT} == {name: half[name] for name in EXACT}
    assert whole["objects"] - half["objects"] < OBJECTS
    assert whole["nodes"] - half["nodes"] < NODES
    assert whole["listeners"] - half["listeners"] < NODES
