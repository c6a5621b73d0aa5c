"""Parameter types as msgspec reads them: JSON's own, dataclasses, enums, dates, records. It needs nothing optional."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from types import UnionType
from typing import Annotated, Any, Optional, Union, get_args, get_origin

import msgspec

from toolcall_nb.core.events import Json, Object
from toolcall_nb.tools.annotations import declarations, field_texts, with_texts
from toolcall_nb.tools.parameters import Parameter, Unsupported, json_type
from toolcall_nb.tools.workspaces import WORKSPACE_PATH_SCHEMA, WorkspacePath, workspace

__all__ = ["MsgspecTypes"]

_PLACE = re.compile(r"(?P<what>.*) - at (?P<is_key>`key` in )?`\$(?P<place>.*)`", re.DOTALL)
"""How msgspec says where in a value something is wrong, ``$`` being the value."""

_FORMATS: Mapping[Any, str] = {datetime.datetime: "date-time", datetime.time: "time"}


class MsgspecTypes:
    """The types of a function's parameters, their schemas and the conversion to them.

    ``schemas`` are in the order of ``parameters``. Raises `Unsupported` for a type that msgspec does not know.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = tuple(parameters)
        self._types = {parameter.name: _readable(parameter) for parameter in parameters}
        self.schemas, self.definitions = self._described()

    def values(self, arguments: Mapping[str, Json]) -> tuple[Object, list[str]]:
        """The arguments as the declared types, by name, and one line for each that is wrong.

        A value of the exact JSON type is preferred; failing that, text that spells it is taken, since models
        write ``"3"`` for 3.
        """
        values: Object = {}
        problems = []
        for name, value in arguments.items():
            try:
                values[name] = _converted(value, self._types.get(name, self._rest))
            except Exception as error:  # a type's own __post_init__ may raise anything
                problems.append(_problem(name, str(error)))
        return values, problems

    @property
    def _rest(self) -> Any:
        """The type of the arguments that no parameter names."""
        return self._types[self.parameters[-1].name]

    def _described(self) -> tuple[tuple[Object, ...], Object]:
        records = _records(self._types.values())
        try:
            schemas, definitions = msgspec.json.schema_components(
                [*self._types.values(), *records], schema_hook=_schema_hook, ref_template="#/$defs/{name}"
            )
        except (TypeError, NameError) as error:
            wrong = next((name for name, annotation in self._types.items() if not _has_schema(annotation)), None)
            raise Unsupported(wrong, str(error).splitlines()[-1]) from None
        schemas = tuple(schemas)
        for record, reference in zip(records, schemas[len(self._types) :], strict=True):
            _add_texts(record, definitions[reference["$ref"].rpartition("/")[2]])
        return tuple(map(_with_default, self.parameters, schemas[: len(self._types)])), definitions


def _readable(parameter: Parameter) -> Any:
    annotation = _with_format(with_texts(parameter.type, lambda text: msgspec.Meta(description=text)))
    if parameter.required or parameter.is_rest or parameter.default is not None:
        return annotation
    return Optional[annotation]  # noqa: UP045 - a string or a special form knows no `|`


def _with_format(annotation: Any) -> Any:
    """Dates with a time say so: msgspec names the format only where a time zone is prescribed."""
    if annotation in _FORMATS:
        return Annotated[annotation, msgspec.Meta(extra_json_schema={"format": _FORMATS[annotation]})]
    if get_origin(annotation) in (Union, UnionType):
        return Union[tuple(map(_with_format, get_args(annotation)))]  # noqa: UP007 - made of what is only known now
    return annotation


def _records(annotations: Any) -> list[type]:
    """The classes among the types whose fields have descriptions that msgspec does not read."""
    found = [item for annotation in annotations for item in declarations(annotation) if isinstance(item, type)]
    for kind in found:
        if dataclasses.is_dataclass(kind) and not all(field.init for field in dataclasses.fields(kind)):
            raise Unsupported(None, f"the dataclass {kind.__qualname__} has a field with init=False")
    return [kind for kind in dict.fromkeys(found) if field_texts(kind)]


def _add_texts(record: type, schema: Object) -> None:
    names = {}
    if issubclass(record, msgspec.Struct):
        names = {field.name: field.encode_name for field in msgspec.structs.fields(record)}
    for name, text in field_texts(record).items():
        if (described := schema.get("properties", {}).get(names.get(name, name))) is not None:
            described.setdefault("description", text)


def _with_default(parameter: Parameter, schema: Object) -> Object:
    """The schema of a parameter with its description and, where JSON can say it, its default."""
    added: Object = {}
    if parameter.description:
        added["description"] = parameter.description
    if not parameter.required and not parameter.is_rest:
        try:
            added["default"] = msgspec.to_builtins(parameter.default, enc_hook=_path_text)
        except (TypeError, RecursionError, NotImplementedError):  # a default that JSON cannot say is not said
            return {**schema, **added}
    return {**schema, **added}


def _has_schema(annotation: Any) -> bool:
    try:
        msgspec.json.schema_components([annotation], schema_hook=_schema_hook)
    except (TypeError, NameError):
        return False
    return True


def _schema_hook(annotation: Any) -> Object:
    if isinstance(annotation, type) and issubclass(annotation, WorkspacePath):
        return dict(WORKSPACE_PATH_SCHEMA)
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return {"type": "string", "format": "path"}
    if annotation is object:
        return {}
    raise NotImplementedError  # how msgspec wants to hear that a hook does not know the type


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
    raise TypeError(f"Expected a path as text, got {json_type(value)}")
