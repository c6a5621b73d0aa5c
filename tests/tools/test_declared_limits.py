"""What a tool's author declares with pydantic, annotated-types and others reaches the model and is enforced."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import datetime
import enum
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypeVar,
)

import annotated_types as at
import jsonschema  # type: ignore[import-untyped] # comes with JupyterLab, without types
import msgspec
import pydantic
import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, RootModel, SecretStr
from typing_extensions import Doc, ReadOnly, TypeAliasType, TypedDict, Unpack

from toolcall_nb.errors import UsageError
from toolcall_nb.tools import Tool, WorkspacePath, workspace


def schema_of(function: Any) -> dict[str, Any]:
    schema = Tool.from_function(function).parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def properties(function: Any) -> dict[str, Any]:
    found: dict[str, Any] = schema_of(function)["properties"]
    return found


def got(function: Any, **arguments: Any) -> Any:
    outcome = Tool.from_function(function).run(arguments)
    assert outcome.error is None, outcome.error
    return outcome.value


def problems(function: Any, **arguments: Any) -> list[str]:
    outcome = Tool.from_function(function, name="f").run(arguments)
    assert outcome.wrong_input, outcome
    first, *rest = str(outcome.error).splitlines()
    assert first == "The arguments of 'f' are wrong:"
    return [line.removeprefix("- ") for line in rest]


def never(value: int) -> int:
    raise RuntimeError("never")


class Kind(enum.StrEnum):
    CAT = "cat"
    DOG = "dog"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"
    HALF = 0.5


class Cat(BaseModel):
    """A cat."""

    kind: Literal["cat"]
    lives: int = Field(9, ge=1, le=9, description="How many are left.")


class Dog(BaseModel):
    kind: Literal["dog"]
    name: Annotated[str, "What it is called."]


class Tree(BaseModel):
    value: int = Field(ge=0)
    children: list[Tree] = []


class Words(RootModel[list[str]]):
    pass


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    quantity: int = Field(gt=0, alias="qty")
    note: Optional[str] = Field(None, max_length=3)  # noqa: UP045 - both spellings

    @pydantic.field_validator("note")
    @classmethod
    def _no_shouting(cls, note: str | None) -> str | None:
        if note and note.isupper():
            raise ValueError("a note is not shouted")
        return note

    @pydantic.computed_field  # type: ignore[prop-decorator] # as pydantic documents it
    @property
    def total(self) -> int:
        return self.quantity * 2


@pydantic.dataclasses.dataclass
class Measured:
    metres: float = Field(gt=0)


@dataclasses.dataclass
class Plain:
    level: Annotated[int, Field(ge=0, le=5)]
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Described:
    city: Annotated[str, "Which city."]
    days: int = dataclasses.field(default=1, metadata={"description": "How many days."})


@dataclasses.dataclass
class WithFieldDefault:
    level: int = Field(3, ge=1)


class Settings(TypedDict, total=False):
    level: Required[Annotated[int, Field(ge=0)]]
    name: NotRequired[ReadOnly[str]]


class Options(TypedDict):
    depth: Annotated[int, "How deep."]
    follow: NotRequired[bool]


class LimitedOptions(TypedDict):
    depth: Annotated[int, Field(le=3)]
    follow: NotRequired[bool]


class Pair(NamedTuple):
    left: Annotated[int, at.Ge(1)]
    right: str = "r"


T = TypeVar("T")
Choice = TypeVar("Choice", int, str)


class Box(BaseModel, Generic[T]):
    content: T


UserId = NewType("UserId", int)
Percent = TypeAliasType("Percent", Annotated[int, Field(ge=0, le=100)])


# One parameter's limits ---------------------------------------------------------------------------------------

LIMITS: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (
        Annotated[int, Field(ge=0, le=100, description="d")],
        {"minimum": 0, "maximum": 100, "description": "d"},
        100,
        900,
    ),
    (Annotated[int, Field(gt=0, lt=3)], {"exclusiveMinimum": 0, "exclusiveMaximum": 3}, 2, 3),
    (Annotated[float, Field(multiple_of=0.5)], {"multipleOf": 0.5}, 1.5, 1.3),
    (Annotated[str, Field(min_length=2, max_length=3)], {"minLength": 2, "maxLength": 3}, "ab", "abcd"),
    (Annotated[str, Field(pattern="^a+$", examples=["aa"])], {"pattern": "^a+$", "examples": ["aa"]}, "aa", "b"),
    (Annotated[int, Field(title="T", json_schema_extra={"z": 1})], {"title": "T", "z": 1}, 1, "x"),
    (Annotated[int, Field(strict=True)], {"type": "integer"}, 1, "1"),
    (Annotated[int, at.Gt(1), at.Lt(5)], {"exclusiveMinimum": 1, "exclusiveMaximum": 5}, 2, 5),
    (Annotated[int, at.Ge(1), at.Le(5)], {"minimum": 1, "maximum": 5}, 5, 6),
    (Annotated[int, at.Interval(ge=1, le=5)], {"minimum": 1, "maximum": 5}, 1, 0),
    (Annotated[int, at.MultipleOf(5)], {"multipleOf": 5}, 10, 11),
    (Annotated[str, at.MinLen(2)], {"minLength": 2}, "ab", "a"),
    (Annotated[list[int], at.MaxLen(1)], {"maxItems": 1}, [1], [1, 2]),
    (Annotated[list[int], at.Len(1, 2)], {"minItems": 1, "maxItems": 2}, [1], []),
    (Annotated[str, at.Predicate(str.islower)], {"type": "string"}, "a", "A"),
    (Annotated[float, at.Ge(0), at.Unit("m/s")], {"minimum": 0, "description": "Unit: m/s"}, 1.0, -1.0),
    (Annotated[int, msgspec.Meta(ge=3, description="m")], {"minimum": 3, "description": "m"}, 3, 2),
    (Annotated[int, Doc("documented"), Field(ge=1)], {"minimum": 1, "description": "documented"}, 1, 0),
    (Annotated[int, "in a text", at.Ge(1)], {"minimum": 1, "description": "in a text"}, 1, 0),
    (pydantic.PositiveInt, {"exclusiveMinimum": 0}, 1, 0),
    (pydantic.conint(ge=3), {"minimum": 3}, 3, 2),
    (pydantic.constr(max_length=2), {"maxLength": 2}, "ab", "abc"),
    (pydantic.HttpUrl, {"format": "uri"}, "https://example.org/", "example"),
    (Percent, {"$ref": "#/$defs/Percent"}, 100, 101),
    (Annotated[int, Field(ge=0)] | None, {"anyOf": [{"minimum": 0, "type": "integer"}, {"type": "null"}]}, None, -1),
    (Annotated[int | None, Field(ge=0)], {"anyOf": [{"minimum": 0, "type": "integer"}, {"type": "null"}]}, 0, -1),
    (list[Annotated[int, Field(ge=0)]], {"items": {"minimum": 0, "type": "integer"}}, [0], [-1]),
    (
        dict[str, Annotated[int, at.Le(1)]],
        {"additionalProperties": {"maximum": 1, "type": "integer"}},
        {"a": 1},
        {"a": 2},
    ),
    (Annotated[int | str, Field(ge=1)], {"minimum": 1}, 1, 0),
    (Annotated[Any, Field(ge=1)], {"minimum": 1}, 1, 0),
    (Annotated[int, BeforeValidator(int), Field(le=1)], {"type": "integer", "maximum": 1}, 1, 2),
    (Annotated[str | list[int], Field(max_length=1)], {"maxLength": 1, "maxItems": 1}, [1], [1, 2]),
    (
        Annotated[datetime.date, Field(ge=datetime.date(2020, 1, 1))],
        {"formatMinimum": "2020-01-01"},
        "2020-01-01",
        "2019-12-31",
    ),
    (Literal["a", "b"], {"enum": ["a", "b"]}, "a", "c"),
]


@pytest.mark.parametrize(("annotation", "told", "good", "bad"), LIMITS, ids=[str(case[0])[:60] for case in LIMITS])
def test_a_declared_limit_reaches_the_model_and_is_enforced(annotation: Any, told: Any, good: Any, bad: Any) -> None:
    def f(x: Any) -> Any:
        return x

    f.__annotations__["x"] = annotation
    assert told.items() <= properties(f)["x"].items()
    got(f, x=good)
    assert problems(f, x=bad)[0].startswith("x")


def test_an_error_names_the_field_and_the_limit() -> None:
    def f(count: Annotated[int, Field(le=100)], cats: list[Cat], order: Order) -> None: ...

    assert problems(
        f, count=900, cats=[{"kind": "cat"}, {"kind": "cat", "lives": 10}], order={"qty": 1, "note": "HEY"}
    ) == [
        "count: Input should be less than or equal to 100",
        "cats[1].lives: Input should be less than or equal to 9",
        "order.note: Value error, a note is not shouted",
    ]
    assert problems(f, cats=[{}], order={}, cuont=1) == [
        "count: is missing",
        "cats[0].kind: is missing",
        "order.qty: is missing",
        "cuont: is not a parameter; did you mean count?",
    ]


# Defaults and names -------------------------------------------------------------------------------------------


def test_a_default_in_a_field_is_in_the_schema_and_used() -> None:
    def f(
        a: int = Field(3, ge=1), b: list[int] = Field(default_factory=lambda: [7]), c: int | None = Field(None, le=5)
    ) -> Any:
        return a, b, c

    schema = schema_of(f)
    assert schema["required"] == []
    assert schema["properties"]["a"] == {"type": "integer", "minimum": 1, "default": 3}
    assert got(f) == (3, [7], None)
    assert got(f, a=5, b=[1], c=2) == (5, [1], 2)
    assert problems(f, a=0) == ["a: Input should be greater than or equal to 1"]
    assert problems(f, c=6) == ["c: Input should be less than or equal to 5"]


def test_a_field_without_a_default_is_required() -> None:
    def f(a: int = Field(..., ge=1), b: int = Field(description="b"), c: Annotated[int, Field(ge=2)] = 4) -> Any:
        return a, b, c

    assert schema_of(f)["required"] == ["a", "b"]
    assert got(f, a=1, b=2) == (1, 2, 4)
    assert problems(f) == ["a: is missing", "b: is missing"]


def test_an_alias_is_the_name_that_the_model_uses() -> None:
    def f(query: Annotated[str, Field(alias="q")], limit: int = Field(10, alias="max", le=20)) -> Any:
        return query, limit

    assert list(properties(f)) == ["q", "max"]
    assert got(f, q="x", max=20) == ("x", 20)
    assert got(f, q="x") == ("x", 10)
    assert problems(f, query="x") == ["q: is missing", "query: is not a parameter; there are: q, max"]


def test_parameters_may_have_names_that_pydantic_forbids() -> None:
    def f(schema: Annotated[int, at.Ge(1)], copy: int, model_config: int, _x: int, json: int = 5) -> Any:
        return schema, copy, model_config, _x, json

    assert list(properties(f)) == ["schema", "copy", "model_config", "_x", "json"]
    assert got(f, schema=1, copy=2, model_config=3, _x=4) == (1, 2, 3, 4, 5)


def test_positional_only_and_rest_parameters_are_read_by_pydantic_too() -> None:
    def f(a: Annotated[int, at.Ge(0)], b: int = 5, /, *, c: int = 6, **rest: Annotated[int, at.Le(9)]) -> Any:
        return a, b, c, rest

    assert schema_of(f)["additionalProperties"] == {"type": "integer", "maximum": 9}
    assert got(f, a=1, c=2, d=9) == (1, 5, 2, {"d": 9})
    assert problems(f, a=1, d=10) == ["d: Input should be less than or equal to 9"]


@pytest.mark.parametrize("options", [Options, LimitedOptions])
def test_the_items_of_unpacked_options_are_parameters(options: Any) -> None:
    def f(a: int, **rest: Any) -> Any:
        return a, rest

    f.__annotations__["rest"] = Unpack[options]
    schema = schema_of(f)
    assert schema["required"] == ["a", "depth"]
    assert schema["additionalProperties"] is False
    assert got(f, a=1, depth=2) == (1, {"depth": 2})
    assert got(f, a=1, depth=2, follow=True) == (1, {"depth": 2, "follow": True})
    assert problems(f, a=1, depth="x")[0].startswith("depth")
    assert problems(f, a=1, depth=1, other=1) == ["other: is not a parameter; there are: a, depth, follow"]


def test_a_default_that_json_cannot_express_is_left_out() -> None:
    sentinel = object()

    def plain(a: Any = sentinel) -> Any:
        return a is sentinel

    def limited(a: Any = sentinel, b: Annotated[int, at.Ge(0)] = 1) -> Any:
        return a is sentinel

    for function in (plain, limited):
        assert "default" not in properties(function)["a"]
        assert got(function) is True


def test_the_docstring_describes_fields_without_a_description() -> None:
    def f(a: Annotated[int, Field(ge=0)], b: Annotated[int, Field(description="from the field")]) -> None:
        """F.

        Args:
            a: from the docstring
            b: not from here
        """

    found = properties(f)
    assert found["a"]["description"] == "from the docstring"
    assert found["b"]["description"] == "from the field"


def test_descriptions_deep_in_a_type_reach_the_model() -> None:
    def f(a: list[Annotated[int, "each"]], b: Described, c: Options) -> None: ...

    def g(a: list[Annotated[int, "each"]], b: Described, c: Dog, d: Annotated[int, at.Ge(0)]) -> None: ...

    for function in (f, g):
        schema = schema_of(function)
        assert schema["properties"]["a"]["items"]["description"] == "each"
        described = schema["$defs"]["Described"]["properties"]
        assert {name: item["description"] for name, item in described.items()} == {
            "city": "Which city.",
            "days": "How many days.",
        }
    assert schema_of(f)["$defs"]["Options"]["properties"]["depth"]["description"] == "How deep."
    assert schema_of(g)["$defs"]["Dog"]["properties"]["name"]["description"] == "What it is called."


# Values -------------------------------------------------------------------------------------------------------

VALUES: list[tuple[Any, Any, Any]] = [
    (Cat, {"kind": "cat"}, Cat(kind="cat", lives=9)),
    (list[Cat], [{"kind": "cat"}], [Cat(kind="cat", lives=9)]),
    (Cat | None, None, None),
    (Cat | None, {"kind": "cat"}, Cat(kind="cat", lives=9)),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "dog", "name": "Rex"}, Dog(kind="dog", name="Rex")),
    (dict[str, Cat], {"a": {"kind": "cat"}}, {"a": Cat(kind="cat", lives=9)}),
    (Tree, {"value": 1, "children": [{"value": 2}]}, Tree(value=1, children=[Tree(value=2)])),
    (Words, ["a"], Words(["a"])),
    (Order, {"qty": 2}, Order(qty=2, note=None)),
    (Box[int], {"content": 1}, Box[int](content=1)),
    (Measured, {"metres": 1}, Measured(metres=1.0)),
    (Plain, {"level": 1}, Plain(1)),
    (WithFieldDefault, {}, WithFieldDefault(3)),
    (Described, {"city": "Nice"}, Described("Nice")),
    (Plain | Described, {"city": "Nice"}, Described("Nice")),
    (Settings, {"level": 0}, {"level": 0}),
    (Pair, [1], Pair(1)),
    (Kind, "cat", Kind.CAT),
    (Mixed, 0.5, Mixed.HALF),
    (Literal[Kind.CAT], "cat", Kind.CAT),
    (list[int] | set[int], [1], [1]),
    (complex, "1+2j", 1 + 2j),
    (collections.deque[int], [1], collections.deque([1])),
    (collections.abc.Iterable[int], [1], [1]),
    (collections.abc.Sequence[int], [1], [1]),
    (collections.abc.Mapping[str, int], {"a": 1}, {"a": 1}),
    (frozenset[int], [1], frozenset([1])),
    (tuple[int, ...], [1, 2], (1, 2)),
    (datetime.datetime, "2025-01-02T03:04:05", datetime.datetime(2025, 1, 2, 3, 4, 5)),
    (datetime.timedelta, "P1D", datetime.timedelta(days=1)),
    (Decimal, "1.50", Decimal("1.50")),
    (uuid.UUID, str(uuid.UUID(int=1)), uuid.UUID(int=1)),
    (Path, "a/b", Path("a/b")),
    (UserId, 3, 3),
    (Choice, "x", "x"),
    (Percent, 3, 3),
    (Annotated[int, BeforeValidator(lambda value: value + 1)], 1, 2),
    (Annotated[int, AfterValidator(lambda value: value * 2)], 2, 4),
    (SecretStr, "hidden", SecretStr("hidden")),
]


@pytest.mark.parametrize(("annotation", "given", "expected"), VALUES, ids=[str(case[0])[:60] for case in VALUES])
@pytest.mark.parametrize("beside", [int, Annotated[int, Field(ge=0)]], ids=["alone", "beside-pydantic"])
def test_a_value_arrives_as_the_declared_type(annotation: Any, given: Any, expected: Any, beside: Any) -> None:
    def f(x: Any, beside: Any = 0) -> Any:
        return x

    f.__annotations__.update(x=annotation, beside=beside)
    schema = schema_of(f)
    jsonschema.Draft202012Validator(schema).validate({"x": given})
    value = got(f, x=given)
    assert (value, type(value)) == (expected, type(expected))


def test_a_path_of_the_workspace_may_have_a_field() -> None:
    def f(
        path: Annotated[WorkspacePath, Field(description="Where.")], others: list[WorkspacePath] | None = None
    ) -> Any:
        return path, others

    assert properties(f)["path"] == {"type": "string", "format": "path", "description": "Where."}
    assert got(f, path="a/b", others=["c"]) == (workspace.root / "a/b", [workspace.root / "c"])
    assert "leaves the workspace" in problems(f, path="../../..")[0]


def test_a_model_as_a_result_is_an_object() -> None:
    def f(order: Order) -> Any:
        return [order, Measured(metres=1.0), Kind.CAT, Words(["a"]), SecretStr("hidden")]

    outcome = Tool.from_function(f).run({"order": {"qty": 2}})
    assert outcome.output == [
        {"quantity": 2, "note": None, "total": 4},
        {"metres": 1.0},
        "cat",
        ["a"],
        "SecretStr('**********')",
    ]


def test_a_tool_that_changes_its_model_does_not_change_the_call() -> None:
    def f(words: Words) -> int:
        words.root.append("b")
        return len(words.root)

    arguments = {"words": ["a"]}
    assert Tool.from_function(f).run(arguments).output == 2
    assert arguments == {"words": ["a"]}


def test_a_lone_surrogate_is_a_wrong_argument_or_a_value() -> None:
    def f(x: Annotated[str, Field(max_length=3)]) -> str:
        return x

    assert problems(f, x="\ud800")[0].startswith("x: ")


def test_a_validator_that_raises_anything_makes_a_wrong_argument() -> None:
    def f(x: Annotated[int, AfterValidator(never)]) -> None: ...

    assert problems(f, x=1) == ["the arguments: RuntimeError: never"]


# What is refused ----------------------------------------------------------------------------------------------


class Struct(msgspec.Struct):
    x: int


class MetaInModel(BaseModel):
    x: Annotated[int, msgspec.Meta(ge=1)]


class ForeignLimit:
    def __repr__(self) -> str:
        return "<ForeignLimit>"


def _mixed(a: Annotated[int, Field(ge=0)], b: Struct) -> None: ...


def _mixed_in_one(a: Annotated[int, Field(ge=0), msgspec.Meta(le=9)]) -> None: ...


def _mixed_inside(a: MetaInModel) -> None: ...


def _foreign(a: Annotated[int, ForeignLimit()]) -> None: ...


def _foreign_inside(a: list[Annotated[int, ForeignLimit()]]) -> None: ...


def _timezone(a: Annotated[datetime.datetime, at.Timezone(None)]) -> None: ...


def _lost_alias(a: Optional[Annotated[int, Field(alias="q")]]) -> None: ...  # noqa: UP045


def _lost_default(a: list[Annotated[int, Field(default=3)]]) -> None: ...


def _limit_on_the_wrong_type(a: Annotated[bool, Field(max_length=3)]) -> None: ...


def _lookahead(a: Annotated[str, Field(pattern="^(?!a)")]) -> None: ...


def _alias_path(a: Annotated[int, Field(validation_alias=pydantic.AliasPath("q", 1))]) -> None: ...


def _email(a: int, b: pydantic.EmailStr) -> None: ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_mixed, r"mixes types of pydantic \(a\) and of msgspec \(b\)"),
        (_mixed_in_one, "mixes types"),
        (_mixed_inside, "mixes types"),
        (_foreign, "'a'.*<ForeignLimit>"),
        (_foreign_inside, "'a'.*<ForeignLimit>"),
        (_timezone, "'a'.*Timezone"),
        (_lost_alias, "'a'.*alias"),
        (_lost_default, "'a'.*default"),
        (_limit_on_the_wrong_type, "'a'.*maxLength does not fit the type boolean"),
        (_lookahead, "'a'.*look-ahead"),
        (_alias_path, "'a'.*AliasPath"),
        (_email, "'b'.*email-validator"),
    ],
)
def test_a_declaration_that_nothing_enforces_is_refused_by_name(function: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){says}") as caught:
        Tool.from_function(function)
    assert "\n" not in str(caught.value)


def test_a_tool_with_plain_types_does_not_import_pydantic() -> None:
    import subprocess

    script = (
        "import sys, enum, dataclasses\nfrom toolcall_nb.tools import Tool\n"
        "@dataclasses.dataclass\nclass P:\n    x: int = 1\n"
        "def f(a: int, b: list[P], c: P | None = None): ...\n"
        "Tool.from_function(f).run({'a': 1, 'b': []})\nprint('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
