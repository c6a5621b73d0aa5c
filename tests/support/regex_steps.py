"""Counts the exact number of steps that a regular expression takes over a text; main entry point: `Steps`.

`re` does not report how often it backtracks. `Steps` walks the same parse tree in the same order and counts the
characters that it tries. It ignores the literal search with which `re` saves some steps, so its counts are slightly
higher but grow in the same way. It treats repeat bounds above nine as nine: once a text is longer than the bound,
``{0,99}`` costs the same for each start, so small texts are enough to see how the cost grows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

__all__ = ["Steps", "TooMany", "samples"]

_parser: Any = import_module("re._parser")
_constants: Any = import_module("re._constants")
_FOREVER = int(_constants.MAXREPEAT)
_HIGHEST = 9

_Items: TypeAlias = list[tuple[str, Any]]
"""The items of an expression: what `_plain` returns."""


class TooMany(Exception):
    """Raised when the expression takes more steps than allowed."""


class Steps:
    """Counts the steps of one expression; raises `TooMany` after ``most`` steps."""

    def __init__(self, pattern: str, flags: int = 0, most: int = 300_000) -> None:
        self._items = _plain(_parser.parse(pattern, flags), bool(re.compile(pattern, flags).flags & re.IGNORECASE))
        self._most = most
        self.count = 0

    def match(self, text: str) -> int:
        """Returns the number of steps of a match at the text's beginning."""
        self.count = 0
        self._at(text, 0)
        return self.count

    def search(self, text: str) -> int:
        """Returns the number of steps of finding all successive matches in the text."""
        self.count, start = 0, 0
        while start <= len(text):
            end = self._at(text, start)
            start = start + 1 if end is None or end == start else end
        return self.count

    def _at(self, text: str, start: int) -> int | None:
        self._text, self._groups = text, {}  # type: tuple[str, dict[int, tuple[int, int]]]
        return next(self._sequence(self._items, 0, start), None)

    def _sequence(self, items: _Items, number: int, at: int) -> Iterator[int]:
        """Yields the positions where the items from ``number`` on may end, in the order in which `re` tries them."""
        if number == len(items):
            yield at
            return
        for end in self._item(items[number], at):
            yield from self._sequence(items, number + 1, end)

    def _item(self, item: tuple[str, Any], at: int) -> Iterator[int]:
        name, argument = item
        if name == "ONE":
            return iter([at + 1] if self._is_one(argument, at) else [])
        return _WAYS[name](self, argument, at)

    def _is_one(self, matches: Callable[[str], bool], at: int) -> bool:
        self._step()
        return at < len(self._text) and matches(self._text[at])

    def _step(self) -> None:
        self.count += 1
        if self.count > self._most:
            raise TooMany

    def _branch(self, branches: list[_Items], at: int) -> Iterator[int]:
        for branch in branches:
            yield from self._sequence(branch, 0, at)

    def _subpattern(self, argument: tuple[int | None, _Items], at: int) -> Iterator[int]:
        group, items = argument
        for end in self._sequence(items, 0, at):
            if group is not None:
                self._groups[group] = (at, end)
            yield end

    def _greedy(self, argument: tuple[int, int, _Items], at: int) -> Iterator[int]:
        least, most, items = argument
        if len(items) == 1 and items[0][0] == "ONE":
            return self._run(items[0][1], least, most, at)
        return self._nested(items, least, most, at)

    def _run(self, matches: Callable[[str], bool], least: int, most: int, at: int) -> Iterator[int]:
        end = at
        while end - at < most and self._is_one(matches, end):
            end += 1
        while end - at >= least:
            yield end
            self._step()
            end -= 1

    def _nested(self, items: _Items, least: int, most: int, at: int) -> Iterator[int]:
        if most > 0:
            for end in self._sequence(items, 0, at):
                if end > at or least > 0:
                    yield from self._nested(items, max(least - 1, 0), most - 1, end)
        if least == 0:
            yield at

    def _lazy(self, argument: tuple[int, int, _Items], at: int) -> Iterator[int]:
        least, most, items = argument
        if least == 0:
            yield at
        if most > 0:
            for end in self._sequence(items, 0, at):
                if end > at or least > 0:
                    yield from self._lazy((max(least - 1, 0), most - 1, items), end)

    def _possessive(self, argument: tuple[int, int, _Items], at: int) -> Iterator[int]:
        end = next(self._greedy(argument, at), None)
        return iter([] if end is None else [end])

    def _atomic(self, items: _Items, at: int) -> Iterator[int]:
        end = next(self._sequence(items, 0, at), None)
        return iter([] if end is None else [end])

    def _assert(self, argument: tuple[int, _Items], at: int) -> Iterator[int]:
        return iter([at] if self._looks(argument, at) else [])

    def _assert_not(self, argument: tuple[int, _Items], at: int) -> Iterator[int]:
        return iter([] if self._looks(argument, at) else [at])

    def _looks(self, argument: tuple[int, _Items], at: int) -> bool:
        back, items = argument
        return at >= back and next(self._sequence(items, 0, at - back), None) is not None

    def _place(self, is_there: Callable[[str, int], bool], at: int) -> Iterator[int]:
        self._step()
        return iter([at] if is_there(self._text, at) else [])

    def _again(self, group: int, at: int) -> Iterator[int]:
        start, end = self._groups.get(group, (0, 0))
        said = self._text[start:end]
        return iter([at + len(said)] if self._text.startswith(said, at) else [])


_WAYS: dict[str, Callable[[Steps, Any, int], Iterator[int]]] = {
    "BRANCH": Steps._branch,
    "SUBPATTERN": Steps._subpattern,
    "MAX_REPEAT": Steps._greedy,
    "MIN_REPEAT": Steps._lazy,
    "POSSESSIVE_REPEAT": Steps._possessive,
    "ATOMIC_GROUP": Steps._atomic,
    "ASSERT": Steps._assert,
    "ASSERT_NOT": Steps._assert_not,
    "AT": Steps._place,
    "GROUPREF": Steps._again,
}


def _plain(tree: Any, ignores_case: bool) -> _Items:
    """Returns the items of a parse tree by name, with the arguments that `Steps` needs and inner trees as lists.

    An item for one character is named ``ONE``; its argument tells whether a character matches.
    """
    return [_item(str(op), argument, ignores_case) for op, argument in tree]


def _item(name: str, argument: Any, ignores_case: bool) -> tuple[str, Any]:
    match name:
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
            return "ONE", cache(
                lambda character: (
                    _among(name, argument, character) or (ignores_case and _among(name, argument, character.swapcase()))
                )
            )
        case "BRANCH":
            return name, [_plain(branch, ignores_case) for branch in argument[1]]
        case "SUBPATTERN":
            return name, (argument[0], _plain(argument[3], ignores_case))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, inner = argument
            highest = int(most) if int(most) >= _FOREVER else min(int(most), _HIGHEST)
            return name, (min(int(least), _HIGHEST), highest, _plain(inner, ignores_case))
        case "ATOMIC_GROUP":
            return name, _plain(argument, ignores_case)
        case "ASSERT" | "ASSERT_NOT":
            direction, inner = argument
            return name, (0 if direction > 0 else inner.getwidth()[0], _plain(inner, ignores_case))
        case "AT":
            return name, _PLACES[str(argument)]
    return name, argument


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")


_PLACES: dict[str, Callable[[str, int], bool]] = {
    "AT_BEGINNING": lambda text, at: at == 0 or text[at - 1] == "\n",  # with MULTILINE, the more expensive
    "AT_BEGINNING_STRING": lambda text, at: at == 0,
    "AT_END": lambda text, at: at == len(text) or text[at] == "\n",
    "AT_END_STRING": lambda text, at: at == len(text),
    "AT_BOUNDARY": lambda text, at: _is_word(text, at - 1) != _is_word(text, at),
    "AT_NON_BOUNDARY": lambda text, at: _is_word(text, at - 1) == _is_word(text, at),
}

_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda character: character.isalnum() or character == "_",
}


def _among(name: str, argument: Any, character: str) -> bool:
    """Whether the item matches the character."""
    match name:
        case "LITERAL":
            return bool(ord(character) == argument)
        case "NOT_LITERAL":
            return bool(ord(character) != argument)
        case "ANY":
            return True
        case "IN":
            negated = str(argument[0][0]) == "NEGATE"
            return negated != any(_among(str(op), value, character) for op, value in argument[negated:])
        case "RANGE":
            return bool(argument[0] <= ord(character) <= argument[1])
    category = str(argument)
    return _CATEGORIES[category.replace("NOT_", "")](character) != ("NOT_" in category)


# Texts to try -------------------------------------------------------------------------------------------------------

_CANDIDATES = "ax1_ \n\"'\\/<>=:.-@[]{}()$`~#*,;|&?!+%^\r\t\x1béZ0"


def samples(pattern: str, flags: int = 0) -> tuple[str, list[str]]:
    """Returns a text that begins like a match, and characters that distinguish the items of the expression."""
    items = list(_flat(_parser.parse(pattern, flags)))
    letters = [next((c for c in _CANDIDATES if _among(str(op), argument, c)), None) for op, argument in items]
    text = "".join(
        chr(argument) if str(op) == "LITERAL" else letter or "a"
        for (op, argument), letter in zip(items, letters, strict=True)
    )
    return text[:24], list(dict.fromkeys(text))


def _flat(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the items that match one character, in order: those of all branches, none of lookbehinds."""
    for op, argument in tree:
        match str(op):
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                yield op, argument
            case "BRANCH":
                for branch in argument[1]:
                    yield from _flat(branch)
            case "SUBPATTERN":
                yield from _flat(argument[3])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield from list(_flat(argument[2])) * max(1, min(int(argument[0]), 3))
            case "ATOMIC_GROUP":
                yield from _flat(argument)
            case "ASSERT":
                yield from _flat(argument[1]) if argument[0] > 0 else ()
