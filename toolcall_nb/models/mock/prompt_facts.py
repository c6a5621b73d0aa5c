"""What a prompt mentions that could be an argument: numbers, quoted strings, names, and more of the kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

__all__ = ["Facts", "facts_of", "words"]

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

_LONGEST_NUMBER = 300
"""Digits; of more there is no float."""

_NO_NAMES = """
    a add an and are ask at be call can check compare compute could count create do does draw explain fetch find for
    get give how i if in is it let list look make multiply my now on open or please plot read run search show sum
    tell that the then there these they this to translate turn use we what when where which who why will with
    would write you
"""
"""Words that are often capitalised at the beginning of a sentence, and name nothing."""


class Facts(Struct, frozen=True):
    """What a prompt mentions, each in order of appearance."""

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


def facts_of(prompt: str, about: str = "") -> Facts:
    """The facts of a prompt; linear in its length, and none of an empty one.

    ``about`` describes the tool: its words name the tool in the prompt, and no argument of it.
    """
    prompt = prompt[:10_000]  # a pasted document needs no more for this
    dates, urls, emails = _DATE.findall(prompt), _URL.findall(prompt), _EMAIL.findall(prompt)
    return Facts(
        prompt=prompt,
        numbers=tuple(
            _number(text) for text in _NUMBER.findall(_DATE.sub(" ", prompt)) if len(text) <= _LONGEST_NUMBER
        ),
        quoted=tuple(next(filter(None, groups)) for groups in _QUOTED.findall(prompt)),
        names=tuple(name for name in _names(prompt) if not set(words(name)) <= set(words(about))),
        sums=tuple(_sums(_DATE.sub(" ", prompt))),
        dates=tuple(dates),
        urls=tuple(urls),
        emails=tuple(emails),
        paths=tuple(path for path in _PATH.findall(prompt) if path not in urls and not _NUMBER.fullmatch(path)),
        words=frozenset(words(prompt)),
    )


def words(text: str) -> list[str]:
    """The words of a text or an identifier, lower case; a plural counts as its singular."""
    found = _WORD.findall(_CAMEL.sub(" ", text.replace("_", " ")))
    return [word.casefold().removesuffix("s") if len(word) > 3 else word.casefold() for word in found]


def _number(text: str) -> float | int:
    return float(text) if "." in text else int(text)


def _sums(prompt: str) -> Iterator[str]:
    """What is written of digits, brackets and operators, from a digit or bracket to the last one of them."""
    for written in _SUM.findall(prompt):
        found = _SUM_TO_ITS_END.match(written)
        if found is not None and _OPERATOR.search(found[0][1:-1]):
            yield found[0]


def _names(prompt: str) -> list[str]:
    """Capitalised words, neighbours joined, without those that only begin a sentence."""
    found = []
    for match in _NAME.findall(_QUOTED.sub(" ", prompt)):
        parts = match.split()
        while parts and parts[0].casefold().partition("'")[0] in _NO_NAMES.split():
            del parts[0]
        if parts:
            found.append(" ".join(parts))
    return list(dict.fromkeys(found))
