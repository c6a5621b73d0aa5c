"""Tools: Python functions that a model may call.

    from toolcall_nb import tool

    @tool
    def weather(city: str, days: int = 1) -> dict:
        \"\"\"The forecast for a city.\"\"\"

`registry` holds them; `Tool.run` runs one and tells the `Outcome`. `toolcall_nb.tools.builtin` has ``edit``, ``show``
and ``bash``, which work in the `workspace`; `toolcall_nb.tools.mcp` brings the tools of a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcall_nb.core.deprecated_names import renamed_members
from toolcall_nb.tools.accepting import ToolSource, as_tools
from toolcall_nb.tools.collection import Registry, registry, tool
from toolcall_nb.tools.definition import Tool, as_tool
from toolcall_nb.tools.failures import ToolFailed
from toolcall_nb.tools.interrupting import stop_thread
from toolcall_nb.tools.parallel import Job, Started, run_together
from toolcall_nb.tools.progress import Log, Preliminary, Progress, Tell
from toolcall_nb.tools.results import Result
from toolcall_nb.tools.running import Outcome
from toolcall_nb.tools.tracebacks import remember
from toolcall_nb.tools.workspaces import Workspace, WorkspacePath, workspace

if TYPE_CHECKING:
    from toolcall_nb.approvals.decisions import Decision

__all__ = [
    "Decision",
    "Job",
    "Log",
    "Outcome",
    "Preliminary",
    "Progress",
    "Registry",
    "Result",
    "Started",
    "Tell",
    "Tool",
    "ToolFailed",
    "ToolSource",
    "Workspace",
    "WorkspacePath",
    "as_tool",
    "as_tools",
    "registry",
    "remember",
    "run_together",
    "stop_thread",
    "tool",
    "workspace",
]

_renamed = renamed_members(__name__, {"Grants": "toolcall_nb.approvals.RememberedApprovals"})


def __getattr__(name: str) -> Any:
    """Finds names that are defined in `toolcall_nb.approvals`, which imports this package."""
    if name == "Decision":
        from toolcall_nb.approvals import Decision

        return Decision
    return _renamed(name)
