"""What a function takes, as a JSON Schema (draft 2020-12), and the binding of a call's arguments: `describe`.

Two libraries read the types: pydantic where a parameter has a type, a ``Field`` or a limit of pydantic or
annotated-types in it, or a type that msgspec does not know; msgspec otherwise, which is always there. One function is
read by one of them. Schema and conversion come from the same library, so that what the schema promises is what the
function gets. What none of them honours is refused.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol, get_args, get_origin

import msgspec
from msgspec import Struct

from toolcall_nb.core.events import Json, Object
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.annotations import declarations, fields_of, is_field_info, library_of, required_keys, text_of
from toolcall_nb.tools.msgspec_types import MsgspecTypes
from toolcall_nb.tools.parameters import Parameter, Unsupported, WrongArguments, json_type

__all__ = ["Signature", "Types", "describe"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of every schema made here; the ``$schema`` field itself is left out, as providers want it."""


class Types(Protocol):
    """The types of parameters, read by one library: schemas in the order of the parameters, and the conversion."""

    parameters: tuple[Parameter, ...]
    schemas: tuple[Object, ...]
    definitions: Object

    def values(self, arguments: Mapping[str, Json]) -> tuple[Object, list[str]]:
        """The arguments as the declared types, by name, and one line for each that is wrong."""


class Signature(Struct, frozen=True):
    """The parameters of one tool and their schema."""

    name: str
    types: Types
    schema: Object

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in the function's order."""
        return self.types.parameters

    def bind(self, arguments: Json) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments to call with. Raises `WrongArguments`, which names each wrong one."""
        if not isinstance(arguments, Mapping):
            raise WrongArguments(self.name, [f"a JSON object is needed, not {json_type(arguments)}"])
        known = {key: value for key, value in arguments.items() if self._takes(key)}
        values, wrong = self.types.values(known)
        problems = [*self._missing(arguments), *wrong, *(self._unknown(key) for key in arguments if key not in known)]
        if problems:
            raise WrongArguments(self.name, problems)
        return self._split(values)

    def _named(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if not parameter.is_rest]

    def _takes(self, key: str) -> bool:
        return any(parameter.is_rest or parameter.told == key for parameter in self.parameters)

    def _missing(self, arguments: Mapping[str, Any]) -> list[str]:
        return [f"{p.told}: is missing" for p in self._named() if p.required and p.told not in arguments]

    def _unknown(self, key: str) -> str:
        names = [parameter.told for parameter in self._named()]
        close = difflib.get_close_matches(key, names, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(names) or 'none'}"
        return f"{key}: is not a parameter; {hint}"

    def _split(self, values: Object) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        for parameter in self.parameters:
            if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                break
            positional.append(values.pop(parameter.name, parameter.default))
        return positional, values


def describe(function: Callable[..., Any], name: str, descriptions: Mapping[str, str]) -> Signature:
    """The signature of a function; ``descriptions`` says what its docstring tells of each parameter.

    Raises `UsageError` for a parameter that no JSON object can fill, and for a declaration that is not understood.
    """
    parameters = [
        made
        for parameter in _signature(function, name).parameters.values()
        for made in _parameters(parameter, name, descriptions)
    ]
    types = _types(parameters, name)
    described = list(zip(types.parameters, types.schemas, strict=True))
    rest = [schema for parameter, schema in described if parameter.is_rest]
    schema: Object = {
        "type": "object",
        "properties": {parameter.told: schema for parameter, schema in described if not parameter.is_rest},
        "required": [parameter.told for parameter, _ in described if parameter.required],
        "additionalProperties": (rest[0] or True) if rest else False,
    }
    if types.definitions:
        schema["$defs"] = types.definitions
    return Signature(name, types, schema)


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise UsageError(
            f"An annotation of the tool {name!r} is not known: {error}. Define or import it before the tool."
        ) from None
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The tool {name!r} has no signature that can be read: {error}. Wrap it in a function."
        ) from None


def _parameters(parameter: inspect.Parameter, tool: str, descriptions: Mapping[str, str]) -> Iterator[Parameter]:
    """The parameter, or those that ``**options: Unpack[TypedDict]`` stands for."""
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
    """The description in ``Annotated[T, "text"]``, ``Doc("text")`` or msgspec's ``Meta(description=…)``."""
    if get_origin(annotation) is not Annotated:
        return None
    items = get_args(annotation)[1:]
    texts = [item.description if isinstance(item, msgspec.Meta) else text_of(item) for item in items]
    return " ".join(filter(None, texts)) or None


def _types(parameters: Sequence[Parameter], tool: str) -> Types:
    libraries = _libraries(parameters, tool)
    try:
        if "pydantic" not in libraries:
            try:
                return MsgspecTypes(parameters)
            except Unsupported:
                if "msgspec" in libraries or not _has_pydantic():
                    raise
        from toolcall_nb.tools.pydantic_types import PydanticTypes

        return PydanticTypes(parameters)
    except Unsupported as error:
        which = f"The parameter {error.parameter!r} of the tool" if error.parameter else "The tool"
        raise UsageError(
            f"{which} {tool!r} has a type that JSON cannot carry: {error.reason.rstrip('.')}. "
            "Use JSON's types, an Enum, a dataclass, a TypedDict, a pydantic model or a msgspec Struct."
        ) from None


def _libraries(parameters: Sequence[Parameter], tool: str) -> dict[str, str]:
    """The libraries that the parameters need, each with the parameter that needs it first."""
    found: dict[str, str] = {}
    for parameter in parameters:
        default = (parameter.default,) if is_field_info(parameter.default) else ()
        for declaration in (*declarations(parameter.type), *default):
            library = library_of(declaration)
            if library == "unknown":
                raise UsageError(
                    f"The parameter {parameter.name!r} of the tool {tool!r} is annotated with {declaration!r:.100}, "
                    "which nobody enforces here. Use pydantic's Field, msgspec's Meta, or a text that describes it."
                )
            if library is not None:
                found.setdefault(library, parameter.name)
    if len(found) > 1:
        raise UsageError(
            f"The tool {tool!r} mixes types of pydantic ({found['pydantic']}) and of msgspec ({found['msgspec']}), "
            "and only one of the two can read it. Declare all of its parameters in one way."
        )
    return found


def _has_pydantic() -> bool:
    try:
        import pydantic  # noqa: F401 - whether it can be imported is the question
    except ImportError:
        return False
    return True
