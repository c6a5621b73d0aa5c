"""Checks arguments that a person or a program has edited before it approved a call.

`read_edited` parses the text that came from a card, a terminal or a request. `check_edited` checks a value; the
approval gate calls it once more, so that no approver can leave the check out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn

from toolcall_nb.core.events import Json
from toolcall_nb.core.json_text import from_extended_json, to_extended_json
from toolcall_nb.core.text import MAX_LEVELS, well_formed_json
from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.schemas.parameters import WrongArguments

_MAX_CHARACTERS = 5_000_000
_MAX_DIGITS = 4_000  # a little below Python's own limit

_asked_about: ContextVar[Tool | None] = ContextVar("toolcall_nb_asked_about", default=None)


@contextmanager
def asking_about(tool: Tool) -> Iterator[None]:
    """Within this block, `reader_of_edits` checks edited arguments against the parameters of ``tool``."""
    token = _asked_about.set(tool)
    try:
        yield
    finally:
        _asked_about.reset(token)


def reader_of_edits() -> Callable[[str], dict[str, Json]]:
    """Returns `read_edited` for the tool that is asked about now, to be called in any thread."""
    return partial(read_edited, tool=_asked_about.get())


def read_edited(text: str, tool: Tool | None = None) -> dict[str, Json]:
    """Parses edited arguments; raises `ValueError` with a sentence for the person who has edited them."""
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"These arguments have {len(text):,} characters; at most {_MAX_CHARACTERS:,} are read.")
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_number, parse_int=_integer, object_pairs_hook=_unique
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise ValueError("These arguments are nested too deep.") from None
    return check_edited(from_extended_json(value), tool)


def check_edited(value: Any, tool: Tool | None = None) -> dict[str, Json]:
    """Returns a copy of the arguments as plain JSON; raises `ValueError` as `read_edited` does.

    The arguments have to fit the parameters of ``tool``; without it, they are checked when the tool is called.
    """
    if not isinstance(value, dict):
        raise ValueError("Arguments are a JSON object: { … }.")
    try:
        text = json.dumps(to_extended_json(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"These arguments are not JSON: {error}.") from None
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"These arguments have {len(text):,} characters; at most {_MAX_CHARACTERS:,} are taken.")
    copied = json.loads(text)
    if well_formed_json(copied) != copied:
        raise ValueError(f"These arguments hold half a character, or are nested deeper than {MAX_LEVELS} levels.")
    plain: dict[str, Json] = from_extended_json(copied)
    if tool is not None:
        try:
            tool.bind(plain)
        except WrongArguments as error:
            raise ValueError(str(error)) from None
    return plain


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON.")


def _number(text: str) -> float:
    """Parses a float; one that would become infinite is refused, since the tool would get another value."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.40} is larger than any number here.")
    return number


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"A number has {len(text):,} digits; at most {_MAX_DIGITS:,} are read.")
    return int(text)


def _unique(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """Makes an object; refuses a name that is there twice, since it would be unclear which value the tool gets."""
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"The name {key!r} is there twice.")
        found[key] = value
    return found
