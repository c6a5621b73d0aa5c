"""Lists and objects that a model writes as JSON in a text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from toolcall_nb.tools import as_tool, as_tools


@dataclass
class Point:
    x: int


class Options(TypedDict):
    x: int


class Model(pydantic.BaseModel):
    x: int


class Record(msgspec.Struct):
    x: int


def function_of(annotation: Any) -> Callable[..., Any]:
    def tool(value: Any) -> Any:
        return value

    tool.__annotations__ = {"value": annotation}
    return tool


def received(annotation: Any, value: Any) -> Any:
    return as_tool(function_of(annotation)).run({"value": value}).value


OBJECT = '{"x": 1}'


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (list[int], " [1, 2]\n", [1, 2]),
        (list[str], '["a"]', ["a"]),
        (list, "[1]", [1]),
        (tuple[int, ...], "[1]", (1,)),
        (set[int], "[1]", {1}),
        (dict[str, int], OBJECT, {"x": 1}),
        (dict, OBJECT, {"x": 1}),
        (Point, OBJECT, Point(1)),
        (Options, OBJECT, {"x": 1}),
        (Model, OBJECT, Model(x=1)),
        (Record, OBJECT, Record(1)),
        (list[int] | None, "[1, 2]", [1, 2]),
        (Point | None, OBJECT, Point(1)),
        (Model | None, OBJECT, Model(x=1)),
        (list[int] | dict[str, int], "[1]", [1]),
        (list[int] | int, "[1]", [1]),
        (Annotated[list[int], pydantic.Field(min_length=1)], "[1]", [1]),
        (Annotated[list[int], "The numbers."], "[1]", [1]),
    ],
)
def test_a_list_or_an_object_in_a_text_is_read_where_the_parameter_is_one(
    annotation: Any, text: str, value: Any
) -> None:
    assert received(annotation, text) == value


@pytest.mark.parametrize("text", ["[1, 2]", OBJECT])
@pytest.mark.parametrize(
    "annotation",
    [str, str | list[int], list[int] | str | None, Any, Annotated[str, "A text."], Literal["[1, 2]", '{"x": 1}']],
)
def test_a_text_stays_a_text_where_a_text_is_allowed(annotation: Any, text: str) -> None:
    assert received(annotation, text) == text


@pytest.mark.parametrize(
    ("annotation", "text"),
    [(list[int], OBJECT), (Point, "[1]"), (list[int], "[1"), (list[int], "1, 2"), (int, "[1]"), (list[int], '["a"]')],
)
def test_a_text_that_does_not_spell_what_is_needed_is_wrong(annotation: Any, text: str) -> None:
    outcome = as_tool(function_of(annotation)).run({"value": text})
    assert outcome.wrong_input
    assert "value" in (outcome.error or "")


def test_it_is_read_for_definitions_in_json_schema_and_for_further_arguments() -> None:
    schema = {
        "type": "object",
        "properties": {"numbers": {"$ref": "#/$defs/numbers"}},
        "$defs": {"numbers": {"type": "array", "items": {"type": "integer"}}, "loop": {"$ref": "#/$defs/loop"}},
    }
    definition = {"name": "total", "description": "Adds.", "parameters": schema}
    (tool,) = as_tools([(definition, lambda numbers: sum(numbers))])
    assert tool.run({"numbers": "[1, 2]"}).value == 3
    schema["properties"]["numbers"] = {"$ref": "#/$defs/loop"}  # type: ignore[index] # it is a dict
    (loop,) = as_tools([({**definition, "parameters": schema}, lambda numbers: numbers)])
    assert loop.run({"numbers": "[1, 2]"}).value == "[1, 2]"

    def options(**values: list[int]) -> Any:
        return values

    assert as_tool(options).run({"a": "[1]"}).value == {"a": [1]}


def test_the_arguments_of_a_call_stay_as_the_model_wrote_them() -> None:
    arguments = {"value": "[1, 2]"}
    outcome = as_tool(function_of(list[int])).run(arguments)
    assert (json.dumps(arguments), outcome.arguments) == ('{"value": "[1, 2]"}', {"value": [1, 2]})
