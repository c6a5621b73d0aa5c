"""What a function takes, as a JSON Schema (draft 2020-12), and arguments checked and converted by it.

The types are msgspec's, for the schema (`msgspec.json.schema_components`) and for the conversion
(`msgspec.convert`) alike, so that what the schema promises is what the function gets. Added here: paths,
descriptions from docstrings and from ``Annotated[T, "text"]``, and an error that names each wrong argument.
"""

from __future__ import annotations

import copy
import datetime
import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from types import UnionType
from typing import Annotated, Any, Optional, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from toolcall_nb.errors import UsageError
from toolcall_nb.events import Json, Object
from toolcall_nb.tools.workspaces import WorkspacePath, workspace

__all__ = ["Parameter", "Signature", "WrongArguments", "describe"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of every schema made here; the ``$schema`` field itself is left out, as providers want it."""


_PLACE = re.compile(r"(?P<what>.*) - at (?P<is_key>`key` in )?`\$(?P<place>.*)`", re.DOTALL)
"""How msgspec says where in a value something is wrong, ``$`` being the value."""

_FORMATS: Mapping[Any, str] = {datetime.datetime: "date-time", datetime.time: "time"}


class WrongArguments(Exception):
    """The arguments of a call do not fit; ``problems`` is one line for each that is wrong."""

    def __init__(self, tool: str, problems: list[str]) -> None:
        self.problems = problems
        lines = "".join(f"\n- {problem}" for problem in problems)
        super().__init__(f"The arguments of {tool!r} are wrong:{lines}")


class Parameter(Struct, frozen=True):
    """One parameter: its type as annotated, and whether it must be given."""

    name: str
    type: Any
    kind: inspect._ParameterKind
    required: bool
    default: Any = None
    description: str | None = None


class Signature(Struct, frozen=True):
    """The parameters of one tool and their schema."""

    name: str
    parameters: tuple[Parameter, ...]
    schema: Object

    def bind(self, arguments: Json) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments to call with. Raises `WrongArguments`, which names each wrong one.

        A value of the exact JSON type is preferred; failing that, text that spells it is taken, since models
        write ``"3"`` for 3.
        """
        if not isinstance(arguments, Mapping):
            raise WrongArguments(self.name, [f"a JSON object is needed, not {_json_type(arguments)}"])
        values: Object = {}
        problems = [*self._missing(arguments)]
        for key, value in arguments.items():
            parameter = self._taking(key)
            if parameter is None:
                problems.append(self._unknown(key))
                continue
            try:
                values[key] = _converted(value, parameter.type)
            except Exception as error:  # a type's own __post_init__ may raise anything
                problems.append(_problem(key, str(error)))
        if problems:
            raise WrongArguments(self.name, problems)
        return self._split(values)

    def _named(self) -> list[Parameter]:
        return [p for p in self.parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]

    def _taking(self, key: str) -> Parameter | None:
        rest = (p for p in self.parameters if p.kind is inspect.Parameter.VAR_KEYWORD)
        return next((p for p in self._named() if p.name == key), None) or next(rest, None)

    def _missing(self, arguments: Mapping[str, Any]) -> list[str]:
        return [f"{p.name}: is missing" for p in self._named() if p.required and p.name not in arguments]

    def _unknown(self, key: str) -> str:
        names = [p.name for p in self._named()]
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

    Raises `UsageError` for a parameter that no JSON object can fill.
    """
    parameters = tuple(
        _parameter(parameter, name, descriptions) for parameter in _signature(function, name).parameters.values()
    )
    schemas, definitions = _schemas(parameters, name)
    named = [(p, s) for p, s in zip(parameters, schemas, strict=True) if p.kind is not inspect.Parameter.VAR_KEYWORD]
    rest = [s for p, s in zip(parameters, schemas, strict=True) if p.kind is inspect.Parameter.VAR_KEYWORD]
    schema: Object = {
        "type": "object",
        "properties": {p.name: _annotated(s, p) for p, s in named},
        "required": [p.name for p, _ in named if p.required],
        "additionalProperties": (rest[0] or True) if rest else False,
    }
    if definitions:
        schema["$defs"] = definitions
    return Signature(name, parameters, schema)


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


def _parameter(parameter: inspect.Parameter, tool: str, descriptions: Mapping[str, str]) -> Parameter:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        raise UsageError(
            f"The tool {tool!r} takes *{parameter.name}, but a model names every argument. Use a list instead."
        )
    if parameter.name == "self" and parameter.annotation is inspect.Parameter.empty:
        raise UsageError(f"The tool {tool!r} is a method without its object. Make the tool of obj.{tool} instead.")
    annotation = Any if parameter.annotation in (inspect.Parameter.empty, object) else parameter.annotation
    annotation = _with_format(annotation)
    has_default = parameter.default is not inspect.Parameter.empty
    default = parameter.default if has_default else None
    if has_default and default is None:
        annotation = Optional[annotation]  # noqa: UP045 - a string or a special form knows no `|`
    description = _annotation_text(parameter.annotation) or descriptions.get(parameter.name)
    required = not has_default and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    return Parameter(parameter.name, annotation, parameter.kind, required, default, description)


def _with_format(annotation: Any) -> Any:
    """Dates with a time say so: msgspec names the format only where a time zone is prescribed."""
    if annotation in _FORMATS:
        return Annotated[annotation, msgspec.Meta(extra_json_schema={"format": _FORMATS[annotation]})]
    if get_origin(annotation) in (Union, UnionType):
        return Union[tuple(map(_with_format, get_args(annotation)))]  # noqa: UP007 - made of what is only known now
    return annotation


def _annotation_text(annotation: Any) -> str | None:
    """The description that ``Annotated[T, "text"]`` gives, or msgspec's ``Meta(description=…)``."""
    if get_origin(annotation) is not Annotated:
        return None
    for extra in get_args(annotation)[1:]:
        if isinstance(extra, str):
            return extra
        if isinstance(extra, msgspec.Meta) and extra.description:
            return extra.description
    return None


def _schemas(parameters: tuple[Parameter, ...], tool: str) -> tuple[tuple[Object, ...], Object]:
    try:
        schemas, definitions = msgspec.json.schema_components(
            [p.type for p in parameters], schema_hook=_schema_hook, ref_template="#/$defs/{name}"
        )
    except (TypeError, NameError) as error:
        wrong = next((p for p in parameters if not _has_schema(p.type)), None)
        which = f"The parameter {wrong.name!r} of the tool" if wrong else "The tool"
        raise UsageError(
            f"{which} {tool!r} has a type that JSON cannot carry: {str(error).splitlines()[-1]}. "
            "Use JSON's types, a dataclass, a TypedDict, an Enum or a msgspec Struct."
        ) from None
    return tuple(schemas), definitions


def _has_schema(annotation: Any) -> bool:
    try:
        msgspec.json.schema_components([annotation], schema_hook=_schema_hook)
    except (TypeError, NameError):
        return False
    return True


def _schema_hook(annotation: Any) -> Object:
    if isinstance(annotation, type) and issubclass(annotation, WorkspacePath):
        return {"type": "string", "format": "path", "description": "A path relative to the workspace root."}
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return {"type": "string", "format": "path"}
    if annotation is object:
        return {}
    raise NotImplementedError  # how msgspec wants to hear that a hook does not know the type


def _annotated(schema: Object, parameter: Parameter) -> Object:
    """The schema of a parameter with its description and, where JSON can say it, its default."""
    added: Object = {}
    if parameter.description:
        added["description"] = parameter.description
    if not parameter.required:
        try:
            added["default"] = msgspec.to_builtins(parameter.default, enc_hook=_path_text)
        except (TypeError, RecursionError):  # a default that JSON cannot say is simply not said
            return {**schema, **added}
    return {**schema, **added}


def _path_text(value: Any) -> str:
    if isinstance(value, PurePath):
        return str(value)
    raise NotImplementedError  # as above


def _converted(value: Json, annotation: Any) -> Any:
    value = copy.deepcopy(value)  # a tool that changes its argument must not change the transcript
    try:
        return msgspec.convert(value, annotation, dec_hook=_decode)
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(value, annotation, strict=False, dec_hook=_decode)
        except msgspec.ValidationError:
            raise error from None


def _problem(name: str, text: str) -> str:
    """``days[0].high: Expected `int`, got `str```: what is wrong with an argument, and where in it."""
    found = _PLACE.fullmatch(text)
    if found is None:
        return f"{name}: {text}"
    return f"{name}{found['place']}: {found['what']}" + (" as a key" if found["is_key"] else "")


def _decode(annotation: Any, value: Any) -> Any:
    if annotation is object:
        return value
    if isinstance(value, str) and issubclass(annotation, WorkspacePath):
        return workspace.resolve(value)
    if isinstance(value, str) and issubclass(annotation, PurePath):
        return annotation(value) if annotation is not PurePath else Path(value)
    raise TypeError(f"Expected a path as text, got {_json_type(value)}")


def _json_type(value: Json) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array"}
    return names.get(type(value), "an object")
