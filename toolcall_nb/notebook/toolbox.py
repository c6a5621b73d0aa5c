"""Says which tools a turn has: `describe`."""

from __future__ import annotations

from collections.abc import Sequence

from toolcall_nb.tools import Tool
from toolcall_nb.tools.built_in import BUILT_IN_NAMES

__all__ = ["describe"]


def describe(tools: Sequence[Tool]) -> str:
    """One tool a line, and which of the package's are not among them."""
    lines = [
        f"{tool.name}({', '.join(tool.parameters.get('properties', ()))})  {_first_line(tool)}".rstrip()
        for tool in tools
    ]
    there = {tool.name for tool in tools}
    off = [name for name in BUILT_IN_NAMES if name not in there]
    lines = lines or ["There are no tools; make one with @tool."]
    return "\n".join([*lines, *([f"Off until asked for: {', '.join(off)}."] if off else [])])


def _first_line(tool: Tool) -> str:
    return tool.description.strip().partition("\n")[0]
