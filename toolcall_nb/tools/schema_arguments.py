"""Arguments checked by a JSON Schema that somebody else wrote."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from toolcall_nb.events import Json, Object
from toolcall_nb.tools.parameters import WrongArguments

__all__ = ["SchemaArguments"]

_QUOTED = 300
"""Characters of one problem's text: the validator quotes the value, which may be long."""


class SchemaArguments:
    """What binds the arguments of a tool whose function takes them all by keyword.

    A schema that is none, or that refers to what is not in it, checks nothing: the server does. No reference is
    fetched from anywhere.
    """

    def __init__(self, name: str, schema: Object) -> None:
        self.name = name
        self.schema = schema

    def bind(self, arguments: Json) -> tuple[list[Any], dict[str, Any]]:
        """No positional arguments, and the named ones. Raises `WrongArguments`, which names each wrong one."""
        if not isinstance(arguments, Mapping):
            raise WrongArguments(self.name, [f"a JSON object is needed, not {type(arguments).__name__}"])
        problems = list(dict.fromkeys(self._problems(arguments)))
        if problems:
            raise WrongArguments(self.name, problems)
        return [], copy.deepcopy(dict(arguments))

    def _problems(self, arguments: Json) -> Iterator[str]:
        if self._validator is None:
            return
        try:
            for error in self._validator.iter_errors(arguments):
                yield from _described(error)
        except Exception:  # the schema's own fault: a reference to nowhere or to itself, a pattern that is none
            return

    @cached_property
    def _validator(self) -> Any:
        import jsonschema  # type: ignore[import-untyped] # it has no types of its own
        from referencing import Registry

        kind = jsonschema.validators.validator_for(self.schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(self.schema)
        except jsonschema.SchemaError:
            return None
        return kind(self.schema, registry=Registry())


def _described(error: Any) -> Iterator[str]:
    """One line for each argument that an error is about, in the words of `Signature.bind`."""
    place = error.json_path.removeprefix("$").removeprefix(".")
    inside = f"{place}." if place else ""
    if error.validator == "required":
        yield from (f"{inside}{key}: is missing" for key in error.validator_value if key not in error.instance)
    elif error.validator == "additionalProperties" and (names := _unknown(error)):
        there = ", ".join(error.schema.get("properties", {})) or "none"
        yield from (f"{inside}{name}: is not a parameter; there are: {there}" for name in names)
    else:
        yield f"{place or 'the arguments'}: {error.message[:_QUOTED]}"


def _unknown(error: Any) -> list[str]:
    """The properties that a schema without patterns and without a place for others does not name."""
    if error.validator_value is not False or "patternProperties" in error.schema:
        return []
    return [name for name in error.instance if name not in error.schema.get("properties", {})]
