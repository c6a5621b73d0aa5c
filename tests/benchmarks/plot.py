"""Plots the cost of a delta, ours and other tools', by the length of the document so far, as SVG.

Two panels with logarithmic axes show a delta's CPU time in microseconds and its sent bytes. The project's goal is a
level line. The plot follows the reader's colour scheme and has no script.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

__all__ = ["plot"]

_Line: TypeAlias = tuple[str, Mapping[str, float]]

_PANEL = (430, 250)
_LEFT, _TOP, _GAP = 60, 60, 330
_COLORS = ("#0b7a75", "#7b3fa0", "#c2410c", "#1d4ed8", "#a16207", "#be185d", "#4d7c0f", "#475569")
_LIGHTER = ("#2dd4bf", "#c084fc", "#fb923c", "#60a5fa", "#facc15", "#f472b6", "#a3e635", "#cbd5e1")


def plot(content: Mapping[str, Any]) -> str:
    """Returns the SVG for the result of `Report.to_dict`."""
    costs = content["costs"]
    color = {cost["name"]: number % len(_COLORS) for number, cost in enumerate(costs)}
    time = [(cost["name"], _scaled(cost["seconds"], 1e6)) for cost in costs]
    sent = [(cost["name"], _scaled(cost["sent"], 1)) for cost in costs if cost["sent"]]
    pieces = [
        *_panel(0, "CPU time for one delta, in microseconds", time, color),
        *_panel(1, "Bytes sent for one delta", sent, color),
        *_footer(content),
    ]
    width = _LEFT + 2 * _PANEL[0] + _GAP + 190
    return _svg(width, _TOP + _PANEL[1] + 90, pieces)


def _scaled(values: Mapping[Any, float], times: float) -> dict[str, float]:
    return {str(size): value * times for size, value in values.items() if value > 0}


def _svg(width: int, height: int, pieces: Sequence[str]) -> str:
    light = "".join(f".c{number}{{stroke:{color};fill:{color}}}" for number, color in enumerate(_COLORS))
    dark = "".join(f".c{number}{{stroke:{color};fill:{color}}}" for number, color in enumerate(_LIGHTER))
    style = (
        "text{font:12px system-ui,sans-serif;fill:#1f2328}.back{fill:#fff}.grid{stroke:#d0d7de}"
        f"polyline{{fill:none!important;stroke-width:2}}.ours{{stroke-width:3.5}}text.name{{stroke:none}}{light}"
        f"@media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.back{{fill:#0d1117}}.grid{{stroke:#30363d}}{dark}}}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t">'
    title = '<title id="t">What one delta costs, by the length of the document so far</title>'
    back = f'<rect class="back" width="{width}" height="{height}"/>'
    return "\n".join([head, title, f"<style>{style}</style>", back, *pieces, "</svg>", ""])


def _panel(number: int, title: str, lines: Sequence[_Line], color: Mapping[str, int]) -> Iterator[str]:
    if not lines:
        return
    sizes = [float(size) for _, line in lines for size in line]
    values = [value for _, line in lines for value in line.values()]
    across, up = _Axis(sizes, 0, _PANEL[0]), _Axis(values, _PANEL[1], 0)
    yield f'<g transform="translate({_LEFT + number * (_PANEL[0] + _GAP)} {_TOP})">'
    yield f'<text x="0" y="-24" font-weight="600">{escape(title)}</text>'
    for value in up.ticks():
        yield f'<line class="grid" x1="0" x2="{_PANEL[0]}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>'
        yield f'<text x="-8" y="{up(value) + 4:.1f}" text-anchor="end">{value:,.0f}</text>'
    for value in across.ticks():
        yield f'<line class="grid" y1="0" y2="{_PANEL[1]}" x1="{across(value):.1f}" x2="{across(value):.1f}"/>'
        yield f'<text x="{across(value):.1f}" y="{_PANEL[1] + 18}" text-anchor="middle">{_kilobytes(value)}</text>'
    for name, line in lines:
        points = " ".join(f"{across(float(size)):.1f},{up(value):.1f}" for size, value in line.items())
        kind = " ours" if name.startswith("toolcall_nb") else ""
        yield f'<polyline class="c{color[name]}{kind}" points="{points}"/>'
    yield from _names(lines, up, color)
    yield "</g>"


def _names(lines: Sequence[_Line], up: _Axis, color: Mapping[str, int]) -> Iterator[str]:
    """Yields each line's name, at the right and as near as possible to the height of the line's end."""
    lowest = -math.inf
    for name, line in sorted(lines, key=lambda each: up(list(each[1].values())[-1])):
        end = up(list(line.values())[-1])
        lowest = max(end + 4, lowest + 16)
        yield f'<text class="name c{color[name]}" x="{_PANEL[0] + 8}" y="{lowest:.1f}">{escape(name)}</text>'


def _footer(content: Mapping[str, Any]) -> Iterator[str]:
    machine = content["machine"]
    words = f"{content['date']} · {machine['cpu']}, {machine['cores']} cores · Python {machine['python']}"
    versions = ", ".join(dict.fromkeys(cost["package"] for cost in content["costs"]))
    bottom = _TOP + _PANEL[1]
    axis = "Length of the document in characters; it comes in deltas of four, and is shown at each."
    yield f'<text x="{_LEFT}" y="{bottom + 44}">{axis}</text>'
    yield f'<text x="{_LEFT}" y="{bottom + 64}">{escape(words)}</text>'
    yield f'<text x="{_LEFT}" y="{bottom + 82}">{escape(versions)}</text>'


def _kilobytes(size: float) -> str:
    return f"{size / 1e6:g} MB" if size >= 1e6 else f"{size / 1e3:g} kB"


class _Axis:
    """Maps numbers to positions on a logarithmic axis whose ends are powers of ten."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self._low = math.floor(math.log10(min(values)))
        self._high = max(math.ceil(math.log10(max(values))), self._low + 1)
        self._start = start
        self._end = end

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self._low, self._high + 1)]
