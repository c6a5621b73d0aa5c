"""Lists of Google's ``Content``: a chat's history, or what ``generate_content(contents=...)`` takes.

Source: googleapis/python-genai 2.34, ``types.Content``: a role of ``user`` or ``model``, and parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from toolcall_nb.adapters.base import Format, never
from toolcall_nb.adapters.google.generate_content import GoogleAdapter
from toolcall_nb.adapters.google.parts import PROVIDER, at, file_of
from toolcall_nb.adapters.parts import custom
from toolcall_nb.adapters.plain import get, mapping, plain, type_name
from toolcall_nb.adapters.turns import Turns, first_of
from toolcall_nb.core.events import Event

__all__ = ["FORMAT"]

_ROLES = ("user", "model", "function", "tool", "system")


def _events(contents: Iterable[Any]) -> list[Event]:
    turns = Turns(partial(GoogleAdapter, itertools.count(1)))
    for given in contents:
        content = mapping(plain(given))
        if content.get("role") == "model":
            turns.assistant({"candidates": [{"content": content}]})
        else:
            turns.other(str(content.get("role")), list(_user_parts(turns, content)))
    turns.end()
    return turns.events


def _user_parts(turns: Turns[GoogleAdapter], content: Mapping[str, Any]) -> Iterator[str | Event]:
    """What a person said; results of functions that stand with it go to their calls."""
    for given in get(content, "parts", list) or []:
        part = {"text": given} if isinstance(given, str) else mapping(plain(given))
        response = at(part, "functionResponse", Mapping)
        if response is not None and turns.answer(partial(_respond, response)):
            continue
        text = get(part, "text", str)
        if text is not None:
            yield text
        elif part:
            yield file_of(part) or custom(PROVIDER, next(iter(part)), part)


def _respond(response: Mapping[str, Any], turn: GoogleAdapter) -> list[Event]:
    return turn.respond(response)


def _is_list(thing: Any) -> bool:
    return any(_is_content(content) for content in first_of(thing, 8))


def _is_content(thing: Any) -> bool:
    if not isinstance(thing, Mapping):
        return type_name(thing).startswith("google.genai.types.") and type_name(thing).endswith("Content")
    parts = first_of(thing.get("parts"), 4)
    are_parts = bool(parts) and all(isinstance(part, Mapping) and "type" not in part for part in parts)
    return thing.get("role", "user") in _ROLES and are_parts and not {"kind", "id"} & set(thing)


FORMAT = Format(
    name="google-contents",
    title="a list of Google's contents",
    is_item=never,
    adapter=GoogleAdapter,
    is_whole=_is_list,
    whole=_events,
)
