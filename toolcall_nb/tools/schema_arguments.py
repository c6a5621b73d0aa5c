"""Arguments checked by a JSON Schema that was given as data: an MCP server's, or that of a tool definition."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.events import Json, Object
from toolcall_nb.tools.parameters import WrongArguments, json_type
from toolcall_nb.tools.schema_check import SchemaCheck, TooCostly

__all__ = ["SchemaArguments"]


class SchemaArguments:
    """Binds the arguments of a tool whose function takes them all by keyword.

    A schema that is none, or that refers to what is not in it, checks nothing: the server does. A schema that costs
    too much to check refuses the call. ``trusted`` says that the schema is the user's own.
    """

    def __init__(self, name: str, schema: Object, *, trusted: bool = False) -> None:
        self.name = name
        self._check = SchemaCheck(schema, trusted=trusted)

    def bind(self, arguments: Json) -> tuple[list[Any], dict[str, Any]]:
        """No positional arguments, and the named ones. Raises `WrongArguments`, which names each wrong one."""
        if not isinstance(arguments, Mapping):
            raise WrongArguments(self.name, [f"a JSON object is needed, not {json_type(arguments)}"])
        try:
            problems = self._check.problems(dict(arguments))
        except TooCostly:
            problems = ["the arguments: the tool's schema takes too long to check them by, so the tool was not called"]
        if problems:
            raise WrongArguments(self.name, problems)
        return [], copy.deepcopy(dict(arguments))
