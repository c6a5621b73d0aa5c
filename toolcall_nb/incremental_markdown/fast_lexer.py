"""Makes lexers of pygments faster: `speed_up` has one try only the rules that may match, and gives the same tokens.

A `RegexLexer` tries the rules of its state in order, for Python's about 28 at each token. Most of them cannot match,
because they begin with another character. So the rules are sorted by the ASCII characters that they may begin with,
which Python's own parser of regular expressions shows. Where it does not, a rule may begin with any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any, TypeAlias

from pygments.lexer import Lexer, RegexLexer
from pygments.token import Error, Whitespace, _TokenType

code: Any
regex_parser: Any
try:  # private: another Python may have none
    code, regex_parser = import_module("re._constants"), import_module("re._parser")
except ImportError:
    regex_parser = None

_Rule: TypeAlias = "tuple[Any, Any, Any]"
"""The match method of a rule's expression, its action, and the state behind it."""

_ASCII = frozenset(map(chr, range(128)))


def speed_up(lexer: Lexer) -> None:
    """Makes the lexer faster, if it uses the loop of `RegexLexer`."""
    if regex_parser is None or not hasattr(type(lexer), "_tokens"):  # some have states of their own
        return
    if type(lexer).get_tokens_unprocessed is RegexLexer.get_tokens_unprocessed:
        lexer.get_tokens_unprocessed = partial(_tokens, lexer)  # type: ignore[method-assign]


def _tokens(lexer: Any, text: str, stack: Iterable[str] = ("root",)) -> Iterator[tuple[int, _TokenType, str]]:
    """Yields what `RegexLexer.get_tokens_unprocessed` yields (pygments 2.20, lexer.py)."""
    states = _states(lexer.__class__)
    stack, at = [*stack], 0
    rules = states[stack[-1]]
    while True:
        for match, action, then in rules[text[at : at + 1]]:
            matched = match(text, at)
            if not matched:
                continue
            if type(action) is _TokenType:
                yield at, action, matched.group()
            elif action is not None:
                yield from action(lexer, matched)
            at = matched.end()
            if then is not None:
                _go_on(stack, then)
                rules = states[stack[-1]]
            break
        else:
            if at >= len(text):
                return
            if text[at] == "\n":
                stack, rules = ["root"], states["root"]
            yield at, Whitespace if text[at] == "\n" else Error, text[at]
            at += 1


def _go_on(stack: list[str], then: Any) -> None:
    """Changes the stack of states as a rule says: by their names, or by how many are left."""
    if isinstance(then, int):
        del stack[max(1, len(stack) - abs(then)) :]
        return
    for name in then if isinstance(then, tuple) else (then,):
        if name == "#push":
            stack.append(stack[-1])
        elif name != "#pop":
            stack.append(name)
        elif len(stack) > 1:
            stack.pop()


@lru_cache(maxsize=64)
def _states(lexer: Any) -> dict[str, _State]:
    return {name: _State(rules) for name, rules in lexer._tokens.items()}


class _State(dict[str, "list[_Rule]"]):
    """The rules of one state that may match before a character, found when it first comes."""

    def __init__(self, rules: list[_Rule]) -> None:
        super().__init__()
        self._rules = rules

    def __missing__(self, character: str) -> list[_Rule]:
        if character not in _ASCII:  # or the end of the text
            return self._rules
        rules = self[character] = []
        for rule in self._rules:
            pattern = getattr(rule[0], "__self__", None)
            if not isinstance(pattern, re.Pattern) or character in _first_characters(pattern):
                rules.append(rule)
        return rules


@cache
def _first_characters(pattern: re.Pattern[str]) -> frozenset[str]:
    """Returns the ASCII characters with which a match may begin; all of them if it may be empty."""
    try:
        characters, may_be_empty = _first(regex_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG), pattern.flags)
    except Exception:  # another Python, with another parser
        return _ASCII
    return _ASCII if may_be_empty else characters


def _first(steps: Iterable[tuple[Any, Any]], flags: int) -> tuple[frozenset[str], bool]:
    """Returns the characters with which a match of these steps may begin, and whether it may be empty."""
    characters: frozenset[str] = frozenset()
    for kind, operand in steps:
        if kind in (code.AT, code.ASSERT, code.ASSERT_NOT):
            continue
        may_be_empty = False
        if kind is code.BRANCH:
            branches = [_first(branch, flags) for branch in operand[1]]
            first = frozenset().union(*(each for each, _ in branches))
            may_be_empty = any(is_empty for _, is_empty in branches)
        elif kind is code.SUBPATTERN:
            first, may_be_empty = _first(operand[3], (flags | operand[1]) & ~operand[2])
        elif kind is code.ATOMIC_GROUP:
            first, may_be_empty = _first(operand, flags)
        elif kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
            first, may_be_empty = _first(operand[2], flags)
            may_be_empty = may_be_empty or operand[0] == 0
        elif kind is code.LITERAL:
            first = _in_cases(flags, operand, operand)
        elif kind is code.IN:
            first = _in_set(operand, flags)
        elif kind is code.NOT_LITERAL:
            first = _ASCII - {chr(operand)}
        elif kind is code.ANY:
            first = _ASCII
        else:  # such as a reference to a group, which may be empty
            return _ASCII, True
        characters |= first
        if not may_be_empty:
            return characters, False
    return characters, True


def _in_set(members: Iterable[tuple[Any, Any]], flags: int) -> frozenset[str]:
    """Returns the characters of a set like ``[a-z_]``, and of ``[^a-z_]`` at least those that it holds."""
    characters: frozenset[str] = frozenset()
    is_negated = False
    for kind, operand in members:
        if kind is code.NEGATE:
            is_negated = True
            flags &= ~re.IGNORECASE  # without the other cases, it leaves out fewer
        elif kind is code.LITERAL:
            characters |= _in_cases(flags, operand, operand)
        elif kind is code.RANGE:
            characters |= _in_cases(flags, *operand)
        elif kind is code.CATEGORY and operand in _CATEGORIES and not flags & re.ASCII:
            characters |= _CATEGORIES[operand]
        elif not is_negated:
            return _ASCII
    return _ASCII - characters if is_negated else characters


def _in_cases(flags: int, first: int, last: int) -> frozenset[str]:
    """Returns the ASCII characters with these codes, and where case does not count, those of the other case."""
    characters = frozenset(map(chr, range(first, min(last, 127) + 1)))
    if not flags & re.IGNORECASE:
        return characters
    # The long s and the sign for Kelvin are cases of s and k.
    return _ASCII if last >= 128 else characters | {each.swapcase() for each in characters}


def _matching(expression: str) -> frozenset[str]:
    return frozenset(filter(re.compile(expression).match, _ASCII))


_CATEGORIES = (
    {}
    if regex_parser is None
    else {
        code.CATEGORY_DIGIT: _matching(r"\d"),
        code.CATEGORY_NOT_DIGIT: _matching(r"\D"),
        code.CATEGORY_SPACE: _matching(r"\s"),
        code.CATEGORY_NOT_SPACE: _matching(r"\S"),
        code.CATEGORY_WORD: _matching(r"\w"),
        code.CATEGORY_NOT_WORD: _matching(r"\W"),
    }
)
