"""Values that are secrets by what stands before them: a name and a sign, a flag of a command, a header, an address.

Each search is linear: it begins at one character (``=``, ``:``) or word, and what it looks at from there is bounded or
ends before the next place where it begins.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from toolcall_nb.masking.names import Naming, naming
from toolcall_nb.masking.providers import is_key_of_provider, keys_beside
from toolcall_nb.masking.shapes import is_basic, is_digest, is_literal, is_mixed, is_password, is_random

__all__ = ["in_addresses", "in_assignments", "in_commands", "in_cookies", "in_headers", "in_kubernetes", "is_value"]

_BARE = r"[^\s\"'`<>(){}\[\],;&\\|=:]"
_SIGN = r"[=:>|,](?:(?<=[=:>|])[=:>|]*+|(?<=[\"'`],))[\s\"'`\\*|>]*+"
_WITH_DIGIT = r"[^\s\"'`<>(){}\[\],;&\\|0-9]{0,100}+[0-9]"
_LETTERS = r"[A-Za-z]{12}"
_ASSIGNED = re.compile(rf"{_SIGN}(?=[^\s\"'`<>(){{}}\[\],;&\\|]{{6}})(?={_WITH_DIGIT}|{_LETTERS})")
_ASSIGNED_EAGERLY = re.compile(rf"{_SIGN}(?={_BARE}{{6}})")
"""A sign, and whatever quotes and spaces are between it and a value that may be a secret."""
_IN_QUOTES = {'"': re.compile(r"[^\s\"\\]+"), "'": re.compile(r"[^\s'\\]+"), "`": re.compile(r"[^\s`\\]+")}
_UNQUOTED = re.compile(rf"{_BARE}+")
_REST = re.compile(r"(?:[=:]+[^\s\"'`<>(){}\[\],;&\\|=:]*)*+")
_WHOLE = re.compile(r"[^\s\"'`<>(){}\[\],;&\\|]+")
_IN_NAMES = string.ascii_letters + string.digits + "_.-"
_ESCAPED = ("n", "r", "t")
_WORDS = re.compile(r"[A-Za-z0-9_\-]+")
_NAME_WITHIN = 80
_BETWEEN = " \t\r\n\"'`\\*])|?+."
"""What may stand between a name and its sign: ``os.environ["NAME"] =``, ``**Name**:``, ``$name .=``."""
_TYPES = frozenset("str string String SecretStr bytes char text auto None | Optional[str Final[str".split())
_VALUES = ("value", "Value", "VALUE", "val")
_VERBS = ("is", "was", "are")
_NO_NAMES = _TYPES.union(_VALUES, _VERBS)
"""Types between a name and its sign: ``api_key: str =``, ``var apiKey string =``."""
_NAME_OF_VALUE = re.compile(r"(?:name|key|variable|id)[\"'\\]{0,4}[ \t]{0,4}[=:][ \t\"'\\]{0,4}([\w.\-]{1,80})", re.IGNORECASE)
"""``{"name": "API_KEY", "value": "…"}``, ``<add key="Password" value="…"/>``."""
_OF_URLS = re.compile(r"(?:token|auth|sig|signature|code)$", re.IGNORECASE)
"""Parameters of a URL with which it opens something. Elsewhere a signature is what a provider's thoughts have."""
_NOT_EAGERLY = re.compile(r"null|none|true|false|bearer|basic|undefined", re.IGNORECASE)

_VALUE = r"([A-Za-z0-9_\-.~+/]+=*)"
_HEADERS = {
    "earer": re.compile(rf"earer(?<=[Bb]earer)[ \t]{{1,4}}{_VALUE}"),
    "EARER": re.compile(rf"EARER(?<=BEARER)[ \t]{{1,4}}{_VALUE}"),
    "asic": re.compile(r"asic(?<=[Bb]asic)[ \t]{1,4}([A-Za-z0-9+/]+=*)"),
    "ASIC": re.compile(r"ASIC(?<=BASIC)[ \t]{1,4}([A-Za-z0-9+/]+=*)"),
    "uthorization": re.compile(
        rf"uthorization[\"'\\]{{0,4}}[ \t]{{0,4}}[:=][ \t\"'\\]{{0,8}}[A-Za-z][A-Za-z\-]{{1,20}}[ \t]{{1,4}}(?:token=\\?\"?)?{_VALUE}"
    ),
}
"""RFC 6750, RFC 7617, and the schemes that providers made up: ``Authorization: token …``, ``Bot …``, ``ApiKey …``."""
_ADDRESS = re.compile(r"://(?P<user>[^\s/@:\"'`<>]*+)(?::(?P<password>[^\s/\"'`<>]*))?@")
_DRIVERS = {
    "@tcp(": re.compile(r":([^\s:@/\"'`<>]{6,80})@tcp\("),
    "@unix(": re.compile(r":([^\s:@/\"'`<>]{6,80})@unix\("),
    "thin:": re.compile(r"thin:[^\s:@/\"'`<>]{1,80}/([^\s@/\"'`<>]{6,80})@"),
}
"""RFC 3986, 3.2.1; and what the database drivers of Go and of Oracle write."""

_COOKIES = re.compile(r"ookie2?[\"'\\]{0,4}[ \t]{0,4}:[ \t\"'\\]{0,8}(?=[\w.\-]{1,80}=)")
_COOKIE = re.compile(r"(?P<name>[\w.\-]{1,80})=(?P<value>[^\s;,\"'\\]*+)(?P<next>;[ \t]{0,4})?")
_ABOUT_COOKIES = frozenset({"expires", "path", "domain", "max-age", "samesite"})
_OF_SESSIONS = re.compile(r"sess|sid|auth|token|csrf|xsrf|login|secret|jwt", re.IGNORECASE)

_FLAG = re.compile(rf"--([A-Za-z][\w\-.]{{0,60}}+)[ \t]{{1,4}}[\"'`\\]{{0,4}}(?={_WITH_DIGIT})(?!-)")
_ARGUMENT = re.compile(r"-(?<=[ \t]-)([uUapPw]|-(?:proxy-)?user|-auth)[ \t=]{0,4}([\"'\\]{0,4})(?=[^\s\"'\\\-]{4})")
_CURL = re.compile(r"(?<![\w\-])curl[ \t\\]")
_HTTPIE = re.compile(r"(?<![\w\-])(?:redis-cli|https?|xh)[ \t\\]")
_COMMANDS = {
    **dict.fromkeys(("u", "U", "-user", "-proxy-user"), _CURL),
    **dict.fromkeys(("a", "-auth"), _HTTPIE),
    "p": re.compile(
        r"(?<![\w\-])(?:sshpass|(?:docker|podman|nerdctl|registry|oc|az) login|mysql(?:dump|admin)?|mariadb|mongo(?:sh|dump)?)[ \t\\]"
    ),
    "P": re.compile(r"(?<![\w\-])(?:sqlcmd|bcp|mosquitto_(?:pub|sub)|(?:un)?zip)[ \t\\]"),
    "w": re.compile(r"(?<![\w\-])ldap(?:search|add|modify)[ \t\\]"),
}
"""The commands whose flag has a password, or ``user:password``."""
_USER_AND_PASSWORD = frozenset({"u", "U", "-user", "-proxy-user", "a", "-auth"})
_COMMAND_WITHIN = 400
_MANIFEST = 2_000
"""Characters of a manifest before its data, and of its data."""
_KIND = re.compile(r"kind[\"'\\]{0,4}:[ \t]{0,4}[\"'\\]{0,4}Secret[\"'\\]{0,4}(?=[ \t\r]{0,4}(?:\n|\\n|[,}]|$))")
_DATA = re.compile(r"(?:data|stringData)[\"'\\]{0,4}:[ \t]{0,4}(?=\\n|\n|\{)")
_ENTRY = re.compile(
    r"(?:\{|,|\n[ ]|\\n[ ])(?:[ \t\n]|\\n)*+[\"'\\]{0,4}[\w.\-]{1,80}[\"'\\]{0,4}:[ \t]{0,4}"
    r"(?:[|>][+\-]?(?:[ \t\n]|\\n)*+)?+[\"'\\]{0,4}(?P<value>[^\s\"'\\{}<>,]*+)[\"'\\]{0,4}"
)
"""A secret of Kubernetes, as YAML and as JSON: all that stands in its data is secret, and has names of its own."""
_OF_SETTINGS = ("ENV ", "setx ", "setenv ", "configure set ", "config set ", "wandb login")
_SETTING = re.compile(
    r"(?:(?:ENV|setx|setenv|configure set|config set)[ \t]{1,4}(?=[\w./:\-])|(?=wandb login ))"
    r"(?P<name>[\w./:\-]{1,80}+(?: login)?)[ \t]{1,4}[\"'\\]{0,4}(?P<value>[^\s\"'\\]{6,})"
)
"""``ENV API_KEY …``, ``aws configure set aws_secret_access_key …``, ``wandb login …``."""
_LOGIN = re.compile(r"login[ \t]{1,4}[^\s\"'\\]{1,80}(?:[ \t]|\\n|\n){1,4}password[ \t]{1,4}([^\s\"'\\]+)")
"""``.netrc``."""
_PAIR = re.compile(r"(?:uth|uth[ \t]?=[ \t]?)\([ \t]{0,4}\\?[\"'][^\"'\n\\]{1,80}\\?[\"'],[ \t]{0,4}\\?[\"']([^\s\"'\\]+)")
"""``auth=("user", "password")``, ``HTTPBasicAuth("user", "password")``."""


def in_assignments(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """``name=value`` and ``"name": "value"``, in a URL, a header, an environment, JSON, XML or a program."""
    end = 0
    for found in (_ASSIGNED_EAGERLY if eager else _ASSIGNED).finditer(text):
        start = found.end()
        if start < end:
            continue
        length = _length_of_secret(text, found, eager)
        end = start + length
        if length:
            yield start, end


def _length_of_secret(text: str, sign: re.Match[str], eager: bool) -> int:
    """How long the secret is that stands behind the sign; 0 where there is none."""
    place = sign.start()
    before = text[place - _NAME_WITHIN if place > _NAME_WITHIN else 0 : place].rstrip(_BETWEEN)
    outside = before.rstrip(_IN_NAMES)
    name = before[len(outside) :]
    if outside[-1:] == "\\" and name[:1] in _ESCAPED:
        name = name[1:]  # behind a line end, as JSON writes it
    if name in _NO_NAMES:
        name, outside = _name_elsewhere(name, before, outside, sign[0])
    is_spaced = outside[-1:] == " " and outside[-2:-1].isalnum()
    phrase = "_".join([*_WORDS.findall(outside[-40:])[-2:], name]) if is_spaced else name
    said, keys = naming(name), keys_beside(phrase)
    if is_spaced and said is not Naming.SECRET and naming(phrase) is Naming.SECRET:
        said = Naming.LIKELY  # "API key: …"
    if outside[-1:] in ("?", "&") and said is not Naming.SECRET and _OF_URLS.search(name):
        said = Naming.LIKELY
    if (said is Naming.NOTHING and keys is None) or (sign[0][0] == ">" and outside[-1:] != "<"):
        return 0
    if outside[-1:] == ":" and "arn:" in outside:  # the name of a secret in a cloud
        return 0
    start = sign.end()
    if said is not Naming.NOTHING and (value := _value_at(text, start, said, "\n" in sign[0], eager)):
        return len(value)
    whole = None if keys is None else _WHOLE.match(text, start)
    return len(whole[0]) if whole is not None and is_key_of_provider(phrase, whole[0]) else 0


def _name_elsewhere(name: str, before: str, outside: str, sign: str) -> tuple[str, str]:
    """The name, and what is before it, where a type or ``value`` stands between the name and its sign."""
    if name in _VALUES:
        named = _NAME_OF_VALUE.findall(outside)
        return (named[-1], "") if named else ("", "")
    if name in _VERBS:
        before = outside.rstrip(_BETWEEN)  # "Your API key is: …"
    while sign[0] == "=" and len(words := before.split()) > 1 and words[-1].lstrip("&*") in _TYPES:
        before = before[: before.rindex(words[-1])].rstrip(_BETWEEN + ":")
    outside = before.rstrip(_IN_NAMES)
    return before[len(outside) :], outside


def _value_at(text: str, start: int, said: Naming, is_on_next_line: bool, eager: bool) -> str:
    """The secret that begins here; empty where there is none."""
    quote = _IN_QUOTES.get(text[start - 1])
    whole = (quote or _UNQUOTED).match(text, start)
    behind = "" if whole is None else text[whole.end() : whole.end() + 1]
    if whole is None or (behind and behind in "(["):
        return ""
    value = whole[0].rstrip(".")
    if is_on_next_line and ((behind and behind in "=:") or not is_random(value)):
        return ""
    if not is_value(said, value, is_quoted=quote is not None, eager=eager):
        return ""
    rest = None if quote or value != whole[0] else _REST.match(text, whole.end())
    return value + (rest[0] if rest is not None else "")


def is_value(said: Naming, value: str, *, is_quoted: bool, eager: bool = False) -> bool:
    """Whether the value of a thing whose name says this is a secret."""
    if eager:
        return len(value) >= 8 and not _NOT_EAGERLY.fullmatch(value) and (said is Naming.SECRET or is_mixed(value))
    if said is Naming.SECRET:
        is_one = len(value) >= 6 and (is_mixed(value) or (is_random(value) and not is_digest(value)))
        return is_one and (is_literal(value) if not is_quoted else value[0] not in "${<[")
    is_one = len(value) >= 16 and is_mixed(value) and not value.startswith(("$", "{"))
    return is_one and is_random(value, digests=said is Naming.LIKELY)


def in_headers(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """``Bearer …``, ``Basic …`` and ``Authorization: token …``."""
    for hint, pattern in _HEADERS.items():
        for found in pattern.finditer(text) if hint in text else ():
            value = found[1].rstrip(".")
            if (is_basic(value) if hint.lower() == "asic" else len(value) >= 16 and is_mixed(value) and is_random(value)) or (
                eager and len(value) >= 8 and re.search(r"[0-9_.~+/]", value)
            ):
                yield found.start(1), found.start(1) + len(value)


def in_cookies(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """The values in ``Cookie: a=…; b=…`` and ``Set-Cookie: …`` that look random (RFC 6265, 4.1 and 4.2)."""
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
    """The password of ``https://user:password@host``, unless it is a word, by which such addresses are explained.

    A token in the place of the user is one as well.
    """
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


def in_kubernetes(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """The values in ``data`` and ``stringData`` of a manifest of the kind ``Secret``."""
    for data in _DATA.finditer(text) if "Secret" in text and _KIND.search(text) else ():
        begin = text.rfind("---", max(data.start() - _MANIFEST, 0), data.start())
        end = text.find("---", data.end(), data.end() + _MANIFEST)
        begin, end = max(begin, data.start() - _MANIFEST, 0), end if end >= 0 else data.end() + _MANIFEST
        if not _KIND.search(text, begin, end):
            continue
        entry = _ENTRY.match(text, data.end())
        while entry is not None:
            if len(entry["value"]) >= 8:
                yield entry.span("value")
            entry = _ENTRY.match(text, entry.end())


def in_commands(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """``--password …``, ``curl -u user:password``, ``sshpass -p …``; and ``.netrc``."""
    for found in _FLAG.finditer(text) if "--" in text else ():
        said = Naming.LIKELY if naming(found[1]) is Naming.PERHAPS and found[1] != "key" else naming(found[1])
        if said is not Naming.NOTHING and (value := _value_at(text, found.end(), said, False, eager)):
            yield found.end(), found.end() + len(value)
    for found in _ARGUMENT.finditer(text) if " -" in text else ():
        yield from _password_of_command(text, found)
    for found in _SETTING.finditer(text) if any(hint in text for hint in _OF_SETTINGS) else ():
        name, value = found["name"], found["value"]
        if is_key_of_provider(name, value) or (naming(name) is Naming.SECRET and is_password(value)):
            yield found.span("value")
    for hint, pattern in (("login", _LOGIN), ("uth", _PAIR)):
        for found in pattern.finditer(text) if hint in text else ():
            if is_password(found[1]):
                yield found.span(1)


def _password_of_command(text: str, flag: re.Match[str]) -> Iterator[tuple[int, int]]:
    """What stands behind a flag of one of the `_COMMANDS`, in the same line (a backslash goes on with it)."""
    before = text[max(flag.start() - _COMMAND_WITHIN, 0) : flag.start() + 1]
    line = re.split(r"(?<!\\)\n", before)[-1]
    if not _COMMANDS[flag[1]].search(line):
        return
    quote = _IN_QUOTES.get(text[flag.end() - 1]) if flag[2] else None
    found = (quote or _WHOLE_ARGUMENT).match(text, flag.end())
    if found is None:
        return
    start = found.start()
    if flag[1] in _USER_AND_PASSWORD and ":" in found[0]:
        start += found[0].index(":") + 1
    elif flag[1] in _USER_AND_PASSWORD and flag[1] != "a":
        return
    if is_password(text[start : found.end()]):
        yield start, found.end()


_WHOLE_ARGUMENT = re.compile(r"[^\s\"'`\\<>|;&)]+")
