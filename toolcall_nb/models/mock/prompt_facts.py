"""Finds possible arguments in a prompt: numbers, quoted strings, names and the like. `facts_of` is the entry point."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w]|\.\d)")
_QUOTED = re.compile(r'"([^"\n]+)"|\u201c([^\u201c\u201d\n]+)\u201d|`([^`\n]+)`|(?<!\w)\'([^\'\n]+)\'(?!\w)')
_NAME = re.compile(r"[^\W\d_a-z][\w'-]*(?:\s+[^\W\d_a-z][\w'-]*)*")
_SUM = re.compile(r"[(\d][\d\s.()+*/^-]*+")
_SUM_TO_ITS_END = re.compile(r".*[\d)]", re.DOTALL)
_OPERATOR = re.compile(r"[-+*/^]")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_URL = re.compile(r"https?://[^\s<>\"']+")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+")
_PATH = re.compile(r"(?<![\w./~-])[\w./~-]*\w[./]\w[\w./-]*")

_MAX_DIGITS = 300
"""Longer numbers do not fit in a float."""

_NOT_NAMES = """
    a add an and are ask at be call can check compare compute could count create do does draw explain fetch find for
    get give how i if in is it let list look make multiply my now on open or please plot read run search show sum
    tell that the then there these they this to translate turn use we what when where which who why will with
    would write you
"""
"""Words that are often capitalised at the beginning of a sentence, but are no names."""


class Facts(Struct, frozen=True):
    """The possible arguments in a prompt, each kind in order of appearance."""

    prompt: str
    numbers: tuple[float | int, ...]
    quoted: tuple[str, ...]
    names: tuple[str, ...]
    sums: tuple[str, ...]
    dates: tuple[str, ...]
    urls: tuple[str, ...]
    emails: tuple[str, ...]
    paths: tuple[str, ...]
    words: frozenset[str]


def facts_of(prompt: str, tool: str = "") -> Facts:
    """Returns the facts of a prompt, in linear time.

    ``tool`` is the name and description of the tool: capitalised words from there name the tool, not an argument.
    """
    prompt = prompt[:10_000]  # enough also of a pasted document
    dates, urls, emails = _DATE.findall(prompt), _URL.findall(prompt), _EMAIL.findall(prompt)
    return Facts(
        prompt=prompt,
        numbers=tuple(_number(text) for text in _NUMBER.findall(_DATE.sub(" ", prompt)) if len(text) <= _MAX_DIGITS),
        quoted=tuple(next(filter(None, groups)) for groups in _QUOTED.findall(prompt)),
        names=tuple(name for name in _names(prompt) if not set(words(name)) <= set(words(tool))),
        sums=tuple(_sums(_DATE.sub(" ", prompt))),
        dates=tuple(dates),
        urls=tuple(urls),
        emails=tuple(emails),
        paths=tuple(path for path in _PATH.findall(prompt) if path not in urls and not _NUMBER.fullmatch(path)),
        words=frozenset(words(prompt)),
    )


def words(text: str) -> list[str]:
    """Returns the words of a text or an identifier in lower case, without a plural s."""
    parts = _WORD.findall(_CAMEL.sub(" ", text.replace("_", " ")))
    return [word.casefold().removesuffix("s") if len(word) > 3 else word.casefold() for word in parts]


def _number(text: str) -> float | int:
    return float(text) if "." in text else int(text)


def _sums(prompt: str) -> Iterator[str]:
    """Yields arithmetic expressions: digits, brackets and operators, from the first digit or bracket to the last."""
    for candidate in _SUM.findall(prompt):
        expression = _SUM_TO_ITS_END.match(candidate)
        if expression is not None and _OPERATOR.search(expression[0][1:-1]):
            yield expression[0]


def _names(prompt: str) -> list[str]:
    """Capitalised words, with neighbours joined and without those that only begin a sentence."""
    names = []
    for match in _NAME.findall(_QUOTED.sub(" ", prompt)):
        parts = match.split()
        while parts and parts[0].casefold().partition("'")[0] in _NOT_NAMES.split():
            del parts[0]
        if parts:
            names.append(" ".join(parts))
    return list(dict.fromkeys(names))
