"""Finds secrets by what stands before them in HTTP headers, cookies, addresses and commands.

`in_headers`, `in_cookies` and `in_addresses` search requests; `in_commands` finds ``--password …``,
``curl -u user:password`` and ``sshpass -p …``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolcall_nb.redaction.assignments import WITH_DIGIT, value_at
from toolcall_nb.redaction.secret_names import Naming, is_key_of_provider, naming
from toolcall_nb.redaction.value_shapes import has_odd_words, is_basic, is_mixed, is_password, is_random

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
        for match in pattern.finditer(text) if hint in text else ():
            value = match[1].rstrip(".")
            is_token = len(value) >= 16 and is_mixed(value) and is_random(value)
            is_secret = is_basic(value) if hint.lower() == "asic" else is_token
            if is_secret or (eager and len(value) >= 8 and re.search(r"[0-9_.~+/]", value)):
                yield match.start(1), match.start(1) + len(value)


def in_cookies(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Finds values that look random in ``Cookie: a=…; b=…`` and ``Set-Cookie: …`` (RFC 6265, 4.1 and 4.2)."""
    for header in _COOKIES.finditer(text) if "ookie" in text else ():
        cookie = _COOKIE.match(text, header.end())
        while cookie is not None:
            name, value = cookie["name"], cookie["value"]
            least = 8 if _OF_SESSIONS.search(name) else 16
            is_session = least == 8 and is_mixed(value)
            if name.lower() not in _ABOUT_COOKIES and len(value) >= least and (is_session or is_random(value)):
                yield cookie.span("value")
            cookie = _COOKIE.match(text, cookie.end()) if cookie["next"] else None


def in_addresses(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Finds the password of ``https://user:password@host``, unless it is a word, as documentation has it.

    A token in the place of the user is found too.
    """
    if "@" not in text:
        return
    for address in _ADDRESS.finditer(text) if "://" in text else ():
        if address["password"] is not None:
            if eager or is_password(address["password"]):
                yield address.span("password")
        elif is_random(address["user"], digests=len(address["user"]) == 40):
            yield address.span("user")
    for hint, pattern in _DRIVERS.items():
        for match in pattern.finditer(text) if hint in text else ():
            if is_password(match[1]):
                yield match.span(1)


_FLAG = re.compile(rf"--([A-Za-z][\w\-.]{{0,60}}+)[ \t]{{1,4}}[\"'`\\]{{0,4}}(?={WITH_DIGIT}|[^\s\"'`\\]{{6}})(?!-)")
_NO_PROSE = re.compile(r"[\"'`\\]|[ \t]*(?:[\n;&|]|$|-)")
"""What follows the argument of a command, and no word of a sentence or a help text."""
_ARGUMENT = re.compile(r"-(?<=[ \t]-)([uUapPw]|-(?:proxy-)?user|-auth)[ \t=]{0,4}([\"'\\]{0,4})(?=[^\s\"'\\\-]{4})")
_CURL = re.compile(r"(?<![\w\-])curl[ \t\\]")
_HTTPIE = re.compile(r"(?<![\w\-])(?:redis-cli|https?|xh)[ \t\\]")
_COMMANDS = {
    **dict.fromkeys(("u", "U", "-user", "-proxy-user"), _CURL),
    **dict.fromkeys(("a", "-auth"), _HTTPIE),
    "p": re.compile(
        r"(?<![\w\-])(?:sshpass|(?:docker|podman|nerdctl|registry|oc|az) login|mysql(?:dump|admin)?|mariadb"
        r"|mongo(?:sh|dump)?)[ \t\\]"
    ),
    "P": re.compile(r"(?<![\w\-])(?:sqlcmd|bcp|mosquitto_(?:pub|sub)|(?:un)?zip)[ \t\\]"),
    "w": re.compile(r"(?<![\w\-])ldap(?:search|add|modify)[ \t\\]"),
}
"""By flag, the commands that take a password, or ``user:password``, with it."""
_USER_AND_PASSWORD = frozenset({"u", "U", "-user", "-proxy-user", "a", "-auth"})
_COMMAND_WITHIN = 400
"""The number of characters before a flag in which its command is searched."""
_WORD = re.compile(r"[^\s\"'`\\<>|;&)]+")
_IN_QUOTES = re.compile(r"[^\s\"'\\]+")
_NAME_AND_VALUE = r"[ \t]{1,4}(?P<name>[\w./:\-]{1,80}+)[ \t]{1,4}[\"'\\]{0,4}(?P<value>[^\s\"'\\]{6,})"
_SETTINGS = {
    "ENV ": re.compile(rf"ENV{_NAME_AND_VALUE}"),
    "set": re.compile(rf"set(?:x|env|(?<=config set)|(?<=configure set)){_NAME_AND_VALUE}"),
    "wandb login": re.compile(r"(?P<name>wandb login)[ \t]{1,4}(?P<value>[^\s\"'\\]{6,})"),
}
"""``ENV API_KEY …``, ``aws configure set aws_secret_access_key …``, ``wandb login …``."""
_LOGIN = re.compile(r"login[ \t]{1,4}[^\s\"'\\]{1,80}(?:[ \t]|\\n|\n){1,4}password[ \t]{1,4}([^\s\"'\\]+)")
"""``.netrc``."""
_PAIR = re.compile(r"uth(?:[ \t]?=[ \t]?)?\([ \t]{0,4}\\?[\"'][^\"'\n\\]{1,80}\\?[\"'],[ \t]{0,4}\\?[\"']([^\s\"'\\]+)")
"""``auth=("user", "password")``, ``HTTPBasicAuth("user", "password")``."""


def in_commands(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Finds the secrets of ``--password …``, ``curl -u user:password``, ``sshpass -p …`` and ``.netrc``."""
    for flag in _FLAG.finditer(text) if "--" in text else ():
        meaning = Naming.LIKELY if naming(flag[1]) is Naming.PERHAPS and flag[1] != "key" else naming(flag[1])
        value = value_at(text, flag.end(), meaning, eager)
        word = _WORD.match(text, flag.end())
        if not value and meaning is Naming.SECRET and word is not None and is_password(word[0]):
            value = word[0] if has_odd_words(word[0]) or _NO_PROSE.match(text, word.end()) else ""
        if value:
            yield flag.end(), flag.end() + len(value)
    for flag in _ARGUMENT.finditer(text) if " -" in text else ():
        yield from _password_of_command(text, flag)
    for hint, pattern in _SETTINGS.items():
        for setting in pattern.finditer(text) if hint in text else ():
            name, value = setting["name"], setting["value"]
            if is_key_of_provider(name, value) or (naming(name) is Naming.SECRET and is_password(value)):
                yield setting.span("value")
    for hint, pattern in (("login", _LOGIN), ("uth", _PAIR)):
        for match in pattern.finditer(text) if hint in text else ():
            if is_password(match[1]):
                yield match.span(1)


def _password_of_command(text: str, flag: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Finds the password after a flag of one of the `_COMMANDS`, on the same line (a backslash continues it)."""
    before = text[max(flag.start() - _COMMAND_WITHIN, 0) : flag.start() + 1]
    line = re.split(r"(?<!\\)\n", before)[-1]
    if not _COMMANDS[flag[1]].search(line):
        return
    argument = (_IN_QUOTES if flag[2] else _WORD).match(text, flag.end())
    if argument is None:
        return
    start = argument.start()
    if flag[1] in _USER_AND_PASSWORD and ":" in argument[0]:
        start += argument[0].index(":") + 1
    elif flag[1] in _USER_AND_PASSWORD and flag[1] != "a":
        return
    if is_password(text[start : argument.end()]):
        yield start, argument.end()
