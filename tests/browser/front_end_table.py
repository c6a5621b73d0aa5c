"""Writes the table of front ends in docs/front-ends.md from what their tests recorded.

    ./dev test --all tests/browser/test_front_ends.py
    python -m tests.browser.front_end_table

`tests.browser.test_front_ends` records each scenario that passes in ``artifacts/front-ends``. A front end is written
with its versions and the date of its last scenario; a scenario without a record is an error.
"""

from __future__ import annotations

import json
import re

from tests.browser.front_end_scenarios import PICTURES, scenarios_of
from tests.browser.front_ends import FRONT_ENDS, PACKAGES, FrontEnd
from tests.support.environments import ROOT

__all__ = ["ROW", "table"]

_PAGE = ROOT / "docs" / "front-ends.md"
_HEAD = "| front end | address | browser | kernel | where the code runs | tested |\n" + "| --- " * 6 + "|\n"
ROW = re.compile(
    r"^\| ([^\d|]+) ([\d.]+) \| `(\S+)`( of JupyterHub [\d.]+)? \| (\w+) ([\d.]+) \| ipykernel ([\d.]+) \|"
    r" (cell|widget callback) \| ([\d-]{10}) \|$",
    re.MULTILINE,
)
"""A row: program and version, address, hub, browser and version, the kernel's version, where the code runs, date."""
_TABLE = re.compile(r"^\| front end .*?\n(?!\|)", re.MULTILINE | re.DOTALL)


def table() -> str:
    """Returns the table. Raises `FileNotFoundError` for a scenario that has no record."""
    return _HEAD + "".join(map(_row, FRONT_ENDS))


def _row(front_end: FrontEnd) -> str:
    names = [f"{front_end.slug}-{scenario.__name__}.json" for scenario in scenarios_of(front_end)]
    records = [json.loads((PICTURES / name).read_text("utf-8")) for name in names]
    last = max(records, key=lambda record: record["date"])
    versions = last["versions"]
    program = re.sub(r" [\d.]+$", "", front_end.program)
    cells = [
        f"{program} {versions[PACKAGES[front_end.program].partition('=')[0]]}",
        f"`{front_end.address}`" + (f" of JupyterHub {versions['jupyterhub']}" if front_end.in_hub else ""),
        f"{front_end.browser} {versions[front_end.browser]}",
        f"ipykernel {versions['ipykernel']}",
        front_end.place,
        last["date"],
    ]
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Writes the table into the page."""
    before, after = _TABLE.split(_PAGE.read_text("utf-8"), maxsplit=1)
    _PAGE.write_text(f"{before}{table()}{after}", "utf-8")


if __name__ == "__main__":
    main()
