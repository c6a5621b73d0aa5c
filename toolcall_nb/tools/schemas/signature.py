"""Reads a function's parameters: `read_signature` makes their JSON Schema and binds the arguments of calls.

Two libraries read the types. pydantic does if a parameter has a type, a ``Field`` or a limit of pydantic or
annotated-types, or a type that msgspec does not know; otherwise msgspec does, which is always installed. One of them
reads all parameters of a function. Schema and conversion come from the same library, so that the function gets what the
schema promises. A declaration that neither library enforces is refused.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any, Protocol, get_args, get_origin

import msgspec
from msgspec import Struct

from toolcall_nb.core.events import Json, Object
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.schemas.annotations import (
    declarations,
    fields_of,
    is_field_info,
    library_of,
    metadata_text,
    required_keys,
)
from toolcall_nb.tools.schemas.msgspec_types import MsgspecTypes
from toolcall_nb.tools.schemas.parameters import Parameter, Unsupported, WrongArguments, arguments_object


class _Types(Protocol):
    """The types of a function's parameters as one library reads them; ``schemas`` are in the parameters' order."""

    parameters: tuple[Parameter, ...]
    schemas: tuple[Object, ...]
    definitions: Object

    def values(self, arguments: Mapping[str, Json]) -> tuple[Object, list[str]]:
        """Converts arguments to the declared types, by name; returns them and one line for each that is wrong."""


class Signature(Struct, frozen=True):
    """The parameters of a tool and their JSON Schema (draft 2020-12, without the field ``$schema``)."""

    name: str
    types: _Types
    schema: Object

    def bind(self, arguments: Json) -> tuple[list[Any], dict[str, Any]]:
        """Returns positional and keyword arguments. Raises `WrongArguments`, which names each wrong one."""
        arguments = arguments_object(arguments, self.name)
        parameters = self.types.parameters
        named = [parameter for parameter in parameters if not parameter.is_rest]
        names = [parameter.argument for parameter in named]
        takes_any = len(named) < len(parameters)
        unknown = [] if takes_any else [key for key in arguments if key not in names]
        values, wrong = self.types.values({key: value for key, value in arguments.items() if key not in unknown})
        missing = [f"{p.argument}: is missing" for p in named if p.required and p.argument not in arguments]
        if problems := [*missing, *wrong, *(_unknown_argument(key, names) for key in unknown)]:
            raise WrongArguments(self.name, problems)
        positional: list[Any] = []
        for parameter in parameters:
            if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                break
            positional.append(values.pop(parameter.name, parameter.default))
        return positional, values


def read_signature(function: Callable[..., Any], tool: str, descriptions: Mapping[str, str]) -> Signature:
    """Reads the parameters of a tool's function; ``descriptions`` are those of its docstring, by parameter.

    Raises `UsageError` for a parameter that JSON cannot express, and for a declaration that nothing enforces.
    """
    parameters = [
        made
        for parameter in _python_signature(function, tool).parameters.values()
        for made in _parameters(parameter, tool, descriptions)
    ]
    types = _types(parameters, tool)
    described = list(zip(types.parameters, types.schemas, strict=True))
    options = [schema for parameter, schema in described if parameter.is_rest]
    schema: Object = {
        "type": "object",
        "properties": {parameter.argument: schema for parameter, schema in described if not parameter.is_rest},
        "required": [parameter.argument for parameter, _ in described if parameter.required],
        "additionalProperties": (options[0] or True) if options else False,
    }
    if types.definitions:
        schema["$defs"] = types.definitions
    return Signature(tool, types, schema)


def _unknown_argument(key: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(key, names, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(names) or 'none'}"
    return f"{key}: is not a parameter; {hint}"


def _python_signature(function: Callable[..., Any], tool: str) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise UsageError(
            f"An annotation of the tool {tool!r} is not known: {error}. Define or import it before the tool."
        ) from None
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The signature of the tool {tool!r} cannot be read: {error}. Wrap it in a function."
        ) from None


def _parameters(parameter: inspect.Parameter, tool: str, descriptions: Mapping[str, str]) -> Iterator[Parameter]:
    """Yields the parameter, or the parameters that ``**options: Unpack[TypedDict]`` stands for."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        raise UsageError(
            f"The tool {tool!r} takes *{parameter.name}, but a model names every argument. Use a list instead."
        )
    if parameter.name == "self" and parameter.annotation is inspect.Parameter.empty:
        raise UsageError(f"The tool {tool!r} is a method without its object. Make the tool of obj.{tool} instead.")
    if getattr(get_origin(parameter.annotation), "_name", None) == "Unpack":
        (options,) = get_args(parameter.annotation)
        kind = inspect.Parameter.KEYWORD_ONLY
        for name, annotation in fields_of(options).items():
            required = name in required_keys(options)
            description = _annotation_text(annotation) or descriptions.get(name)
            yield Parameter(name, name, annotation, kind, required, inspect.Parameter.empty, description)
        return
    annotation = Any if parameter.annotation in (inspect.Parameter.empty, object) else parameter.annotation
    has_default = parameter.default is not inspect.Parameter.empty
    default = parameter.default if has_default else None
    description = _annotation_text(parameter.annotation) or descriptions.get(parameter.name)
    required = not has_default and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    yield Parameter(parameter.name, parameter.name, annotation, parameter.kind, required, default, description)


def _annotation_text(annotation: Any) -> str | None:
    """Returns the description in ``Annotated[T, "text"]``, ``Doc("text")`` or msgspec's ``Meta(description=…)``."""
    if get_origin(annotation) is not Annotated:
        return None
    items = get_args(annotation)[1:]
    texts = [item.description if isinstance(item, msgspec.Meta) else metadata_text(item) for item in items]
    return " ".join(filter(None, texts)) or None


def _types(parameters: Sequence[Parameter], tool: str) -> _Types:
    libraries = _libraries(parameters, tool)
    try:
        if "pydantic" not in libraries:
            try:
                return MsgspecTypes(parameters)
            except Unsupported:
                if "msgspec" in libraries or find_spec("pydantic") is None:
                    raise
        from toolcall_nb.tools.schemas.pydantic_types import PydanticTypes

        return PydanticTypes(parameters)
    except Unsupported as error:
        which = f"The parameter {error.parameter!r} of the tool" if error.parameter else "The tool"
        raise UsageError(
            f"{which} {tool!r} has a type that JSON cannot carry: {error.reason.rstrip('.')}. "
            "Use JSON's types, an Enum, a dataclass, a TypedDict, a pydantic model or a msgspec Struct."
        ) from None


def _libraries(parameters: Sequence[Parameter], tool: str) -> dict[str, str]:
    """Returns the libraries that the parameters need, each with the first parameter that needs it."""
    libraries: dict[str, str] = {}
    for parameter in parameters:
        default = (parameter.default,) if is_field_info(parameter.default) else ()
        for declaration in (*declarations(parameter.type), *default):
            library = library_of(declaration)
            if library == "unknown":
                raise UsageError(
                    f"The parameter {parameter.name!r} of the tool {tool!r} is annotated with {declaration!r:.100}, "
                    "which nothing enforces here. Use pydantic's Field, msgspec's Meta, or a text that describes it."
                )
            if library is not None:
                libraries.setdefault(library, parameter.name)
    if len(libraries) > 1:
        raise UsageError(
            f"The tool {tool!r} mixes types of pydantic ({libraries['pydantic']}) and of msgspec "
            f"({libraries['msgspec']}), and only one of the two can read it. Declare all of its parameters in one way."
        )
    return libraries
