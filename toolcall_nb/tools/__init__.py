"""Tools: Python functions that a model may call.

    from toolcall_nb import tool

    @tool
    def weather(city: str, days: int = 1) -> dict:
        \"\"\"The forecast for a city.\"\"\"

`registry` holds them; `Tool.run` runs one and tells the `Outcome`.
"""

from __future__ import annotations

from toolcall_nb.tools.calling import Decision, answer_call
from toolcall_nb.tools.collection import Registry, registry, tool
from toolcall_nb.tools.definition import Tool, as_tool
from toolcall_nb.tools.running import Outcome

__all__ = ["Decision", "Outcome", "Registry", "Tool", "answer_call", "as_tool", "registry", "tool"]
