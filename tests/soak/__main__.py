"""``./dev soak``: plays an hour's worth of streams at full speed in a real kernel and a real page.

--minutes N     minutes of stream (default: 60)
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.browser.browser import Notebook, browser_profile, running_browser
from tests.browser.jupyter import running_server
from tests.soak.notebook import CALLS, TURNS, cells
from tests.soak.running import Figures, soak

__all__ = ["main"]

_QUARTERS = 4


def _say(figures: Figures) -> None:
    """Prints one line: the turns and events so far, and what is alive."""
    minutes = figures["turns"]
    counts = ", ".join(f"{figures[name]:,} {name}" for name in ("widgets", "comms", "threads", "objects"))
    page = ", ".join(f"{figures[name]:,} {name}" for name in ("nodes", "listeners"))
    print(
        f"{minutes} min of stream, {figures['events']:,} events, {minutes * CALLS:,} calls. "
        f"Kernel: {figures['bytes'] / 1e6:.0f} MB; {counts}. Page: {figures['heap'] / 1e6:.1f} MB; {page}.",
        flush=True,
    )


def main() -> None:
    """Runs the soak test; prints the figures at its beginning and after each quarter."""
    parser = argparse.ArgumentParser(prog="dev soak", description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    rounds = max(_QUARTERS, parser.parse_args().minutes // len(TURNS))
    with tempfile.TemporaryDirectory() as home, running_server(Path(home)) as server, running_browser() as browser:
        notebook = Notebook(server, browser_profile(browser), server.write("soak.ipynb", *cells())).open()
        soak(notebook, rounds, _QUARTERS, _say)


if __name__ == "__main__":
    main()
