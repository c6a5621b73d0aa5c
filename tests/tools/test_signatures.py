"""The JSON Schema of a function's parameters, and the arguments that it gets."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import jsonschema  # type: ignore[import-untyped] # comes with JupyterLab, without types
import msgspec
import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb.errors import UsageError
from toolcall_nb.models.mock.arguments import arguments_for
from toolcall_nb.tools import Tool


class Unit(enum.Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


@dataclasses.dataclass
class Place:
    city: str
    country: str = "France"


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Options(TypedDict):
    depth: int
    follow: NotRequired[bool]


def properties(function: Any) -> dict[str, Any]:
    schema = Tool.from_function(function).parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    found: dict[str, Any] = schema["properties"]
    return found


def test_simple_types_become_json_types() -> None:
    def f(a: str, b: int, c: float, d: bool, e: None, g: Any) -> None: ...

    assert properties(f) == {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": "number"},
        "d": {"type": "boolean"},
        "e": {"type": "null"},
        "g": {},
    }


def test_collections_describe_their_items() -> None:
    def f(a: list[int], b: tuple[int, str], c: set[str], d: dict[str, float]) -> None: ...

    found = properties(f)
    assert found["a"] == {"type": "array", "items": {"type": "integer"}}
    assert found["b"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert found["c"] == {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    assert found["d"] == {"type": "object", "additionalProperties": {"type": "number"}}


def test_unions_literals_and_enums_list_what_is_allowed() -> None:
    def f(a: int | str, b: Optional[int], c: Literal["x", "y"], d: Unit) -> None: ...  # noqa: UP045 - both spellings

    schema = Tool.from_function(f).parameters
    assert schema["properties"]["a"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert {"type": "null"} in schema["properties"]["b"]["anyOf"]
    assert schema["properties"]["c"] == {"enum": ["x", "y"]}
    assert schema["properties"]["d"] == {"$ref": "#/$defs/Unit"}
    assert schema["$defs"]["Unit"]["enum"] == ["celsius", "fahrenheit"]


def test_dates_and_paths_are_text_with_a_format() -> None:
    def f(a: datetime.date, b: datetime.datetime, c: Path, d: datetime.time | None) -> None: ...

    found = properties(f)
    assert {name: found[name]["format"] for name in "abc"} == {"a": "date", "b": "date-time", "c": "path"}
    assert {"type": "string", "format": "time"} in found["d"]["anyOf"]


def test_records_are_objects_under_defs() -> None:
    def f(place: Place, point: Point, options: Options) -> None: ...

    definitions = Tool.from_function(f).parameters["$defs"]
    assert definitions["Place"]["required"] == ["city"]
    assert definitions["Point"]["properties"]["y"] == {"type": "number", "default": 0.0}
    assert definitions["Options"]["required"] == ["depth"]


def test_a_default_makes_a_parameter_optional_and_is_in_the_schema() -> None:
    nice = Place("Nice")

    def f(a: int, b: int = 3, c: Unit = Unit.CELSIUS, d: Path = Path("x"), e: Place = nice) -> None: ...

    schema = Tool.from_function(f).parameters
    assert schema["required"] == ["a"]
    defaults = {name: item.get("default") for name, item in schema["properties"].items()}
    assert defaults["b"] == 3
    assert defaults["c"] == "celsius"
    assert defaults["d"] == "x"
    assert defaults["e"] == {"city": "Nice", "country": "France"}


def test_none_as_a_default_allows_null_whatever_the_annotation_says() -> None:
    def f(a: int, b: Annotated[int, "how many"]) -> str:
        return repr((a, b))

    f.__defaults__ = (None, None)  # what `a: int = None` does

    tool = Tool.from_function(f)
    assert tool.run({"a": None, "b": None}).output == "(None, None)"
    assert tool.parameters["properties"]["b"]["description"] == "how many"


def test_a_parameter_without_annotation_takes_anything() -> None:
    def f(a, b=2):  # type: ignore[no-untyped-def] # that is the point
        return [a, b]

    assert properties(f) == {"a": {}, "b": {"default": 2}}
    assert Tool.from_function(f).run({"a": [1, {"x": None}]}).output == [[1, {"x": None}], 2]


def test_keyword_arguments_take_any_other_name() -> None:
    def f(a: int, **rest: int) -> dict[str, int]:
        return {"a": a, **rest}

    tool = Tool.from_function(f)
    assert tool.parameters["additionalProperties"] == {"type": "integer"}
    assert tool.run({"a": 1, "b": 2}).output == {"a": 1, "b": 2}
    assert "b: Expected `int`" in str(tool.run({"a": 1, "b": "x"}).error)


def test_positional_only_parameters_are_filled_by_name() -> None:
    def f(a: int, b: int = 5, /, c: int = 0) -> list[int]:
        return [a, b, c]

    assert Tool.from_function(f).run({"a": 1, "c": 3}).output == [1, 5, 3]


@pytest.mark.parametrize(
    "docstring",
    [
        "Forecast.\n\nArgs:\n    city: Which\n        city.\n    days (int): How many.\n",
        "Forecast.\n\nParameters\n----------\ncity : str\n    Which city.\ndays : int\n    How many.\n",
        "Forecast.\n\n:param city: Which city.\n:param int days: How many.\n:returns: it\n",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_descriptions_come_from_the_docstring_in_each_style(docstring: str) -> None:
    def f(city: str, days: int) -> None: ...

    f.__doc__ = docstring
    tool = Tool.from_function(f)
    assert tool.description == "Forecast."
    assert tool.parameters["properties"]["city"]["description"] == "Which city."
    assert tool.parameters["properties"]["days"]["description"] == "How many."


def test_an_annotated_description_overrides_the_docstring() -> None:
    def f(a: Annotated[int, "from here"], b: Annotated[int, msgspec.Meta(ge=1, description="and here")]) -> None:
        """F.

        Args:
            a: not from here
            b: nor here
        """

    found = properties(f)
    assert found["a"]["description"] == "from here"
    assert found["b"] == {"type": "integer", "minimum": 1, "description": "and here"}


def test_arguments_are_converted_to_what_is_annotated() -> None:
    def f(unit: Unit, day: datetime.date, path: Path, place: Place, point: Point, words: set[str]) -> str:
        return repr((unit, day, path.name, place, point, words))

    given_arguments = {
        "unit": "celsius",
        "day": "2025-01-02",
        "path": "a/b.txt",
        "place": {"city": "Paris"},
        "point": {"x": 1},
        "words": ["a"],
    }
    expected = (Unit.CELSIUS, datetime.date(2025, 1, 2), "b.txt", Place("Paris"), Point(1.0), {"a"})
    assert Tool.from_function(f).run(given_arguments).output == repr(expected)


def test_a_string_is_converted_to_a_number_only_where_a_number_is_needed() -> None:
    def f(a: int, b: int | str, c: str) -> list[Any]:
        return [a, b, c]

    assert Tool.from_function(f).run({"a": "3", "b": "3", "c": "3"}).output == [3, "3", "3"]


def test_an_error_names_each_wrong_argument() -> None:
    def f(city: str, days: int, place: Place) -> None: ...

    outcome = Tool.from_function(f, name="weather").run({"days": "x", "place": {"city": 1}, "citty": "Paris"})
    assert outcome.wrong_input
    assert str(outcome.error).splitlines() == [
        "The arguments of 'weather' are wrong:",
        "- city: is missing",
        "- days: Expected `int`, got `str`",
        "- place.city: Expected `str`, got `int`",
        "- citty: is not a parameter; did you mean city?",
    ]


@pytest.mark.parametrize("arguments", [None, [], "city: Paris", 3, True])
def test_arguments_must_be_an_object(arguments: Any) -> None:
    def f(city: str = "") -> None: ...

    outcome = Tool.from_function(f).run(arguments)
    assert outcome.wrong_input
    assert "a JSON object is needed" in str(outcome.error)


def test_an_exception_in_a_type_s_constructor_is_a_wrong_argument() -> None:
    def f(place: _Picky) -> None: ...

    assert "place:" in str(Tool.from_function(f).run({"place": {"x": 1}}).error)


@dataclasses.dataclass
class _Picky:
    x: int

    def __post_init__(self) -> None:
        raise RuntimeError("never")


def test_a_tool_that_changes_its_argument_does_not_change_the_call() -> None:
    def f(items: Any) -> int:
        items["list"].append(1)
        return len(items["list"])

    arguments = {"items": {"list": [0]}}
    assert Tool.from_function(f).run(arguments).output == 2
    assert arguments == {"items": {"list": [0]}}


def _starred(*values: int) -> None: ...


def _array(c: numpy.ndarray[Any, Any]) -> None: ...


def _frame(a: int, c: pandas.DataFrame) -> None: ...


def _frames(c: list[pandas.DataFrame] | None = None) -> None: ...


def _callback(c: Callable[[int], int]) -> None: ...


def _unknown(c: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821 - that is the point


class _Class:
    def method(self, a: int) -> int:
        return a


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_starred, r"takes \*values"),
        (_array, r"parameter 'c'.*numpy.ndarray"),
        (_frame, r"parameter 'c'.*pandas.*DataFrame"),
        (_frames, r"parameter 'c'.*pandas.*DataFrame"),
        (_callback, r"parameter 'c'.*Callable"),
        (_unknown, "not known.*Nowhere"),
        (_Class.method, "method without its object"),
        (dict, "no signature"),
    ],
)
def test_a_function_that_a_model_could_not_call_is_refused_with_a_reason(function: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){says}"):
        Tool.from_function(function)


def test_bound_methods_partials_and_callable_objects_are_tools() -> None:
    def f(a: int, b: int) -> int:
        return a - b

    class Adder:
        """Adds."""

        def __call__(self, a: int) -> int:
            return a + 1

    assert Tool.from_function(_Class().method).run({"a": 4}).output == 4
    assert Tool.from_function(functools.partial(f, 10), name="minus").run({"b": 3}).output == 7
    adder = Tool.from_function(Adder())
    assert (adder.name, adder.description, adder.run({"a": 1}).output) == ("Adder", "Adds.", 2)


def _everything(
    a: Annotated[int, msgspec.Meta(ge=3, lt=9)],
    b: Annotated[float, msgspec.Meta(gt=0.5, le=1.0)],
    c: Annotated[str, msgspec.Meta(min_length=4, max_length=6)],
    d: Annotated[list[int], msgspec.Meta(min_length=2, max_length=3)],
    e: set[str],
    f: tuple[int, str, Unit],
    g: Place,
    h: Options,
    i: dict[str, int],
    j: Literal[1, "two"],
    k: int | str | None,
    l: datetime.datetime,  # noqa: E741 - the alphabet
    m: bool,
    n: Annotated[int, msgspec.Meta(multiple_of=4)],
    o: Any,
    p: Path,
    q: datetime.date,
    query: str,
    city: str,
    unit: Unit = Unit.CELSIUS,
    limit: int = 3,
    **rest: int,
) -> str:
    return "ran"


@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                [
                    "Paris",
                    "Add",
                    "12",
                    "-3.5",
                    '"a quote"',
                    "fahrenheit",
                    "limit",
                    "2024-13-45",
                    "2024-05-06",
                    "two",
                    "a/b.txt",
                    "x@y.org",
                ]
            )
        ).map(" ".join),
    )
)
def test_arguments_made_from_any_prompt_are_valid_by_the_schema_and_by_the_tool(prompt: str) -> None:
    tool = Tool.from_function(_everything)
    arguments = arguments_for(tool.parameters, prompt)
    jsonschema.Draft202012Validator(tool.parameters).validate(arguments)
    assert tool.run(arguments).output == "ran"
