"""Reads parameter types with msgspec: JSON's types, dataclasses, enums, dates, records. See `MsgspecTypes`."""

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
from toolcall_nb.tools.schemas.annotations import declarations, field_descriptions, with_descriptions
from toolcall_nb.tools.schemas.parameters import Parameter, Unsupported, json_type
from toolcall_nb.tools.workspaces import WORKSPACE_PATH_SCHEMA, WorkspacePath, workspace

_LOCATION = re.compile(r"(?P<what>.*) - at (?P<is_key>`key` in )?`\$(?P<path>.*)`", re.DOTALL)
"""Matches the path in msgspec's error messages, where ``$`` is the value."""

_FORMATS: Mapping[Any, str] = {datetime.datetime: "date-time", datetime.time: "time"}


class MsgspecTypes:
    """The types of a function's parameters, their schemas and the conversion to them.

    ``schemas`` are in the order of ``parameters``. Raises `Unsupported` for a type that msgspec does not support.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = tuple(parameters)
        self._types = {parameter.name: _readable(parameter) for parameter in parameters}
        self.schemas, self.definitions = self._described()

    def values(self, arguments: Mapping[str, Json]) -> tuple[Object, list[str]]:
        """Converts arguments to the declared types, by name; returns them and one line for each that is wrong.

        A string that spells a value is converted only where the string itself does not fit: models write ``"3"`` for 3.
        """
        values: Object = {}
        problems = []
        type_of_others = self._types[self.parameters[-1].name] if self.parameters else None
        for name, value in arguments.items():
            try:
                values[name] = _converted(value, self._types.get(name, type_of_others))
            except Exception as error:  # a type's own __post_init__ may raise anything
                problems.append(_problem(name, str(error)))
        return values, problems

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
    annotation = _with_format(with_descriptions(parameter.type, lambda text: msgspec.Meta(description=text)))
    if parameter.required or parameter.is_rest or parameter.default is not None:
        return annotation
    return Optional[annotation]  # noqa: UP045 - a string or a special form knows no `|`


def _with_format(annotation: Any) -> Any:
    """Adds the format of dates and times, which msgspec names only where a time zone is prescribed."""
    if annotation in _FORMATS:
        return Annotated[annotation, msgspec.Meta(extra_json_schema={"format": _FORMATS[annotation]})]
    if get_origin(annotation) in (Union, UnionType):
        return Union[tuple(map(_with_format, get_args(annotation)))]  # noqa: UP007 - made of what is only known now
    return annotation


def _records(annotations: Any) -> list[type]:
    """Returns the classes among the types whose fields have descriptions that msgspec does not read."""
    classes = [item for annotation in annotations for item in declarations(annotation) if isinstance(item, type)]
    for kind in classes:
        if dataclasses.is_dataclass(kind) and not all(field.init for field in dataclasses.fields(kind)):
            raise Unsupported(None, f"the dataclass {kind.__qualname__} has a field with init=False")
    return [kind for kind in dict.fromkeys(classes) if field_descriptions(kind)]


def _add_texts(record: type, schema: Object) -> None:
    names = {}
    if issubclass(record, msgspec.Struct):
        names = {field.name: field.encode_name for field in msgspec.structs.fields(record)}
    for name, text in field_descriptions(record).items():
        if (described := schema.get("properties", {}).get(names.get(name, name))) is not None:
            described.setdefault("description", text)


def _with_default(parameter: Parameter, schema: Object) -> Object:
    """Returns a parameter's schema with its description and, where JSON can express it, its default."""
    added: Object = {}
    if parameter.description:
        added["description"] = parameter.description
    if not parameter.required and not parameter.is_rest:
        try:
            added["default"] = msgspec.to_builtins(parameter.default, enc_hook=_path_text)
        except (TypeError, RecursionError, NotImplementedError):  # JSON cannot express this default
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
    raise NotImplementedError  # tells msgspec that the hook does not support the type


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
    """Formats msgspec's message with the path inside the argument: ``days[0].high: Expected `int`, got `str```."""
    match = _LOCATION.fullmatch(text)
    if match is None:
        return f"{name}: {text}"
    return f"{name}{match['path']}: {match['what']}" + (" as a key" if match["is_key"] else "")


def _decode(annotation: Any, value: Any) -> Any:
    if annotation is object:
        return value
    if isinstance(value, str) and issubclass(annotation, WorkspacePath):
        return workspace.resolve(value)
    if isinstance(value, str) and issubclass(annotation, PurePath):
        return annotation(value) if annotation is not PurePath else Path(value)
    raise TypeError(f"Expected a path as text, got {json_type(value)}")
