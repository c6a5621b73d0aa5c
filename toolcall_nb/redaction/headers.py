"""Finds secrets in HTTP headers, cookies, and addresses with a user and a password."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolcall_nb.redaction.value_shapes import is_basic, is_mixed, is_password, is_random

_VALUE = r"([A-Za-z0-9_\-.~+/]+=*)"
_HEADERS = {
    "earer": re.compile(rf"earer(?<=[Bb]earer)[ \t]{{1,4}}{_VALUE}"),
    "EARER": re.compile(rf"EARER(?<=BEARER)[ \t]{{1,4}}{_VALUE}"),
    "asic": re.compile(r"asic(?<=[Bb]asic)[ \t]{1,4}([A-Za-z0-9+/]+=*)"),
    "ASIC": re.compile(r"ASIC(?<=BASIC)[ \t]{1,4}([A-Za-z0-9+/]+=*)"),
    "uthorization": re.compile(
        r"uthorization[\"'\\]{0,4}[ \t]{0,4}[:=][ \t\"'\\]{0,8}[A-Za-z][A-Za-z\-]{1,20}[ \t]{1,4}"
        rf"(?:token=\\?\"?)?{_VALUE}"
    ),
}
"""RFC 6750, RFC 7617, and the schemes of providers: ``Authorization: token …``, ``Bot …``, ``ApiKey …``."""
_ADDRESS = re.compile(r"://(?P<user>[^\s/@:\"'`<>]*+)(?::(?P<password>[^\s/\"'`<>]*))?@")
_DRIVERS = {
    "@tcp(": re.compile(r":([^\s:@/\"'`<>]{6,80})@tcp\("),
    "@unix(": re.compile(r":([^\s:@/\"'`<>]{6,80})@unix\("),
    "thin:": re.compile(r"thin:[^\s:@/\"'`<>]{1,80}/([^\s@/\"'`<>]{6,80})@"),
}
"""RFC 3986, 3.2.1; and the addresses of database drivers for Go and Oracle."""

_COOKIES = re.compile(r"ookie2?[\"'\\]{0,4}[ \t]{0,4}:[ \t\"'\\]{0,8}(?=[\w.\-]{1,80}=)")
_COOKIE = re.compile(r"(?P<name>[\w.\-]{1,80})=(?P<value>[^\s;,\"'\\]*+)(?P<next>;[ \t]{0,4})?")
_ABOUT_COOKIES = frozenset({"expires", "path", "domain", "max-age", "samesite"})
_OF_SESSIONS = re.compile(r"sess|sid|auth|token|csrf|xsrf|login|secret|jwt", re.IGNORECASE)


def in_headers(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Finds the secrets of ``Bearer …``, ``Basic …`` and ``Authorization: token …``."""
    for hint, pattern in _HEADERS.items():
        for found in pattern.finditer(text) if hint in text else ():
            value = found[1].rstrip(".")
            is_secret = is_basic(value) if hint.lower() == "asic" else _is_token(value)
            if is_secret or (eager and len(value) >= 8 and re.search(r"[0-9_.~+/]", value)):
                yield found.start(1), found.start(1) + len(value)


def _is_token(value: str) -> bool:
    return len(value) >= 16 and is_mixed(value) and is_random(value)


def in_cookies(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Finds values that look random in ``Cookie: a=…; b=…`` and ``Set-Cookie: …`` (RFC 6265, 4.1 and 4.2)."""
    for header in _COOKIES.finditer(text) if "ookie" in text else ():
        found = _COOKIE.match(text, header.end())
        while found is not None:
            name, value = found["name"], found["value"]
            least = 8 if _OF_SESSIONS.search(name) else 16
            is_session = least == 8 and is_mixed(value)
            if name.lower() not in _ABOUT_COOKIES and len(value) >= least and (is_session or is_random(value)):
                yield found.span("value")
            found = _COOKIE.match(text, found.end()) if found["next"] else None


def in_addresses(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Finds the password of ``https://user:password@host``, unless it is a word, as documentation has it.

    A token in the place of the user is found too.
    """
    if "@" not in text:
        return
    for found in _ADDRESS.finditer(text) if "://" in text else ():
        if found["password"] is not None:
            if eager or is_password(found["password"]):
                yield found.span("password")
        elif is_random(found["user"], digests=len(found["user"]) == 40):
            yield found.span("user")
    for hint, pattern in _DRIVERS.items():
        for found in pattern.finditer(text) if hint in text else ():
            if is_password(found[1]):
                yield found.span(1)
