"""What every text dialect tells a model of its tools (seed 004)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcall_nb.dialects import ToolDescription

__all__ = ["PATH_RULE", "describe_tools", "path_rule"]

PATH_RULE = """\
IMPORTANT: For file_path parameters, ALWAYS use the full relative path from the workspace root.
Examples:
- CORRECT: "crates/merlin-tools/src/lib.rs"
- CORRECT: "benchmarks/testing.md"
- WRONG: "lib.rs" (ambiguous - which lib.rs?)
- WRONG: "testing.md" (ambiguous - which directory?)"""
"""What seed 004 tells a model of paths, to the letter."""


def describe_tools(tools: Sequence[ToolDescription]) -> str:
    """The tools under ``# Available Tools``: name, description and the schema of the parameters of each."""
    return "\n\n".join(("# Available Tools", *map(_describe, tools)))


def _describe(tool: ToolDescription) -> str:
    schema = json.dumps(tool.parameters, ensure_ascii=False)
    return f"## {tool.name}\n{tool.description}\n\nParameters (JSON Schema): {schema}"


def path_rule(tools: Sequence[ToolDescription]) -> str:
    """The rule for paths after a blank line, where a tool takes a path; else nothing."""
    return f"\n\n{PATH_RULE}" if any(map(_takes_path, tools)) else ""


def _takes_path(tool: ToolDescription) -> bool:
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    return any(name == "file_path" or _is_path(schema) for name, schema in properties.items())


def _is_path(schema: Any) -> bool:
    """Whether a parameter's schema is a path's, or holds one: an optional path, a list of paths."""
    if isinstance(schema, list):
        return any(map(_is_path, schema))
    return isinstance(schema, dict) and (schema.get("format") == "path" or any(map(_is_path, schema.values())))
