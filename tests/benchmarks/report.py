"""The benchmark's results: rows with their bounds, the costs of other tools, and a table of both."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import toolcall_nb

__all__ = ["Cost", "LeftOut", "Report", "Row", "packaged", "table"]


class LeftOut(Exception):
    """Raised when something cannot be measured here; the message says what and why."""


_PACKAGES = ("toolcall-nb", "markdown-it-py", "ipykernel", "ipywidgets", "anywidget", "jupyterlab", "playwright")


@dataclass(frozen=True)
class Row:
    """A figure for which the project has bounds. Less is better.

    ``value`` is None if it could not be measured here; ``detail`` then says why. ``must`` and ``aim`` are None for a
    figure that only explains another.
    """

    name: str
    value: float | None
    unit: str
    must: float | None = None
    aim: float | None = None
    detail: str = ""

    @property
    def verdict(self) -> str:
        """The best bound that the value meets."""
        if self.value is None:
            return "not measured"
        if self.must is None:
            return ""
        if self.value > self.must:
            return "NOT MET"
        return "aim" if self.aim is None or self.value <= self.aim else "must"


@dataclass(frozen=True)
class Cost:
    """The cost of one way to show a growing document, by the document's size in characters.

    ``seconds`` is the CPU time for one delta, on average over the document; ``sent`` is the bytes for one delta,
    empty if nothing is sent. ``how`` describes the code that ran, ``package`` names the package and its version.
    """

    name: str
    package: str
    how: str
    seconds: Mapping[int, float]
    sent: Mapping[int, float] = field(default_factory=dict)
    growth: float | None = None
    """The exponent of the whole document's cost: 1 is linear, 2 is quadratic."""


@dataclass(frozen=True)
class Report:
    """All results of one run."""

    rows: Sequence[Row]
    costs: Sequence[Cost]
    left_out: Sequence[str]
    is_quick: bool

    def to_dict(self) -> dict[str, Any]:
        """Returns the results as JSON values, with the date and the hardware, without host names and paths."""
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "versions": [packaged(name) for name in _PACKAGES],
            "quick": self.is_quick,
            "rows": [{**asdict(row), "verdict": row.verdict} for row in self.rows],
            "costs": [asdict(cost) for cost in self.costs],
            "left_out": list(self.left_out),
        }


def machine() -> dict[str, Any]:
    """Describes the machine."""
    return {"cpu": _cpu(), "cores": _cores(), "system": platform.system(), "python": platform.python_version()}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _cores() -> int:
    return os.cpu_count() or 1


def packaged(name: str) -> str:
    """Returns a package's name with its installed version, or the name alone."""
    if name == "toolcall-nb":
        return f"{name} {toolcall_nb.__version__}"  # it may run from the repository without being installed
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name


def table(report: Report) -> str:
    """Formats the report for a terminal."""
    lines = [_line("what", "value", "must", "aim", ""), _line("----", "-----", "----", "---", "")]
    for row in report.rows:
        lines.append(_line(row.name, _number(row.value, row.unit), _number(row.must), _number(row.aim), row.verdict))
        lines += [f"      {row.detail}"] if row.detail else []
    lines += ["", "What others cost, on the same deltas (microseconds and bytes a delta, by size of the document)"]
    for cost in report.costs:
        growth = "" if cost.growth is None else f"; growth {cost.growth:.2f}"
        lines += [f"  {cost.name} ({cost.package}){growth}", f"      {cost.how}"]
        lines.append(f"      µs: {_sizes(cost.seconds, 1e6)}" + (f"   bytes: {_sizes(cost.sent)}" if cost.sent else ""))
    return "\n".join([*lines, *(f"  left out: {reason}" for reason in report.left_out)])


def _line(*cells: str) -> str:
    name, value, must, aim, verdict = cells
    return f"{name:<78} {value:>14} {must:>7} {aim:>7}  {verdict}".rstrip()


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.3g} {unit}".strip()


def _sizes(by_size: Mapping[int, float], times: float = 1) -> str:
    return ", ".join(f"{size // 1000} kB {value * times:,.0f}" for size, value in by_size.items())
