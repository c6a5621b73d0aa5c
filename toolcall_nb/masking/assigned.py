"""Values that are secrets by what stands before them: a name, a scheme of HTTP's, the user in an address.

Each search is linear: it begins at one character (``=``, ``:``) or word, and what it looks at from there ends before
the next place where it begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolcall_nb.masking.names import Naming, naming
from toolcall_nb.masking.shapes import is_basic, is_literal, is_mixed, is_random

__all__ = ["in_addresses", "in_assignments", "in_headers", "is_value"]

_BARE = r"[^\s\"'`<>(){}\[\],;&\\|=:]"
_ASSIGNED = re.compile(
    r"(?:key|token|secret|pass|credential|auth|cookie|pwd|sig)[a-z]{0,20}[0-9_.\-]{0,20}[\"'`\\ \t]{0,10}"
    rf"(?P<sign>[=:])[ \t\"'`\\]*+(?={_BARE}{{6}})"
)
"""In lower case; what `toolcall_nb.masking.names` knows ends in one of these words."""
_DIGIT = re.compile(rf"{_BARE}{{0,300}}?[0-9]")
_QUOTED = re.compile(r"[^\s\"'`<>\\]+")
_UNQUOTED = re.compile(rf"{_BARE}+")
_REST = re.compile(r"(?:[=:]+[^\s\"'`<>(){}\[\],;&\\|=:]*)*+")
_CALLS = frozenset("([")
_QUOTES = frozenset("\"'`")
_NO_NAME = re.compile(r"[^\w.\-]")
_NAME_WITHIN = 80
_NOT_EAGERLY = re.compile(r"null|none|true|false|bearer|basic|undefined", re.IGNORECASE)

_HEADERS = {
    "earer": re.compile(r"earer(?<=[Bb]earer)[ \t]{1,4}([A-Za-z0-9_\-.~+/]+=*)"),
    "EARER": re.compile(r"EARER(?<=BEARER)[ \t]{1,4}([A-Za-z0-9_\-.~+/]+=*)"),
    "asic": re.compile(r"asic(?<=[Bb]asic)[ \t]{1,4}([A-Za-z0-9+/]+=*)"),
    "ASIC": re.compile(r"ASIC(?<=BASIC)[ \t]{1,4}([A-Za-z0-9+/]+=*)"),
}
"""RFC 6750 and RFC 7617."""
_PASSWORD = re.compile(r"://[^\s/@:]*+:([^\s/@]++)@")
"""RFC 3986, 3.2.1."""


def in_assignments(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """``name=value`` and ``"name": "value"``, in a URL, a header, an environment, JSON or a program."""
    end = 0
    for found in _ASSIGNED.finditer(text.replace("İ", "i").lower()):  # the only letter that gets longer by it
        start = found.end()
        if start < end or not (eager or _DIGIT.match(text, start)):
            continue
        name = naming(_name_before(text, found.start("sign")))
        if name is not Naming.NOTHING:
            is_quoted = text[start - 1] in _QUOTES
            length = len(_value_at(text, start, name, is_quoted, eager))
            end = start + length
            if length:
                yield start, end


def _value_at(text: str, start: int, name: Naming, is_quoted: bool, eager: bool) -> str:
    """The secret that begins here; empty where there is none."""
    whole = (_QUOTED if is_quoted else _UNQUOTED).match(text, start)
    if whole is None or text[whole.end() : whole.end() + 1] in _CALLS:
        return ""
    value = whole[0].rstrip(".")
    if not is_value(name, value, is_quoted=is_quoted, eager=eager):
        return ""
    rest = None if is_quoted or value != whole[0] else _REST.match(text, whole.end())
    return value + (rest[0] if rest is not None else "")


def is_value(name: Naming, value: str, *, is_quoted: bool, eager: bool = False) -> bool:
    """Whether the value of something that is called so is a secret."""
    if eager:
        return len(value) >= 8 and not _NOT_EAGERLY.fullmatch(value) and (name is Naming.SECRET or is_mixed(value))
    if name is Naming.PERHAPS:
        return len(value) >= 16 and is_mixed(value) and is_random(value, digests=False)
    return name is Naming.SECRET and len(value) >= 6 and is_mixed(value) and (is_quoted or is_literal(value))


def in_headers(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """``Bearer …`` and ``Basic …``."""
    for hint, pattern in _HEADERS.items():
        for found in pattern.finditer(text) if hint in text else ():
            value = found[1].rstrip(".")
            if (is_basic(value) if hint.lower() == "asic" else len(value) >= 16 and is_mixed(value)) or (
                eager and len(value) >= 8 and re.search(r"[0-9_.~+/]", value)
            ):
                yield found.start(1), found.start(1) + len(value)


def in_addresses(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """The password of ``https://user:password@host``, unless it is a word, by which such addresses are explained."""
    for found in _PASSWORD.finditer(text) if "://" in text else ():
        if eager or (is_mixed(found[1]) and found[1][0] not in "{<$["):
            yield found.span(1)


def _name_before(text: str, place: int) -> str:
    before = text[max(place - _NAME_WITHIN, 0) : place].rstrip(" \t\"'`\\")
    return _NO_NAME.split(before)[-1]
