"""Secrets in assignments, where the name says what the value is: ``name=value``; and in manifests of Kubernetes.

`in_assignments` and `in_manifests` yield where the secrets in a text start and end. Each search is linear: it begins
at one character (``=``, ``:``) or word, and reads from there a bounded text, or up to where it begins again.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from toolcall_nb.redaction.secret_names import Naming, is_key_of_provider, keys_beside, naming
from toolcall_nb.redaction.value_shapes import has_odd_words, is_chosen, is_digest, is_literal, is_mixed, is_random

_BARE = r"[^\s\"'`<>(){}\[\],;&\\|=:]"
_SIGN = r"[=:>|,](?:(?<=[=:>|])[=:>|]*+|(?<=[\"'`],))[\s\"'`\\*|>]*+"
WITH_DIGIT = r"[^\s\"'`<>(){}\[\],;&\\|0-9]{0,100}+[0-9]"
_LETTERS = r"[A-Za-z]{12}"
_ASSIGNED = re.compile(rf"{_SIGN}(?=[^\s\"'`<>(){{}}\[\],;&\\|]{{6}})((?={WITH_DIGIT}|{_LETTERS}))?+")
_SECRET_NAME = re.compile(
    r"(?i:pass|pwd|key|secret|token|credential|authorization)[\w.\-]{0,30}(?:\W{1,10}\w{2,10}){0,2}\W{0,30}\Z"
)
"""The name of a secret, and perhaps a type, before a sign behind which the value may have any shape."""
_ASSIGNED_EAGERLY = re.compile(rf"{_SIGN}(?={_BARE}{{6}})")
"""The sign, and the quotes and spaces between it and a value that may be a secret."""
_IN_QUOTES = {'"': re.compile(r"[^\s\"\\]+"), "'": re.compile(r"[^\s'\\]+"), "`": re.compile(r"[^\s`\\]+")}
_UNQUOTED = re.compile(rf"{_BARE}+")
_TAIL = re.compile(r"(?:[=:]+[^\s\"'`<>(){}\[\],;&\\|=:]*)*+")
_WHOLE = re.compile(r"[^\s\"'`<>(){}\[\],;&\\|]+")
_IN_NAMES = string.ascii_letters + string.digits + "_.-"
_ESCAPED = ("n", "r", "t")
_WORDS = re.compile(r"[A-Za-z0-9_\-]+")
_NAME_WITHIN = 80
_BETWEEN = " \t\r\n\"'`\\*])|?+."
"""The characters that may stand between a name and its sign: ``os.environ["NAME"] =``, ``**Name**:``, ``$name .=``."""
_TYPES = frozenset(
    {"str", "string", "String", "SecretStr", "bytes", "char", "text", "auto", "None", "|", "Optional[str", "Final[str"}
)
_VALUES = ("value", "Value", "VALUE", "val")
_VERBS = ("is", "was", "are")
_NO_NAMES = _TYPES.union(_VALUES, _VERBS)
"""Words that may stand between a name and its sign: ``api_key: str =``, ``var apiKey string =``."""
_NAME_OF_VALUE = re.compile(
    r"(?:name|key|variable|id)[\"'\\]{0,4}[ \t]{0,4}[=:][ \t\"'\\]{0,4}([\w.\-]{1,80})", re.IGNORECASE
)
"""``{"name": "API_KEY", "value": "…"}``, ``<add key="Password" value="…"/>``."""
_OF_URLS = re.compile(r"(?:token|auth|sig|signature|code)$", re.IGNORECASE)
"""Parameters of a URL that are secrets. Elsewhere a signature is public: providers sign a model's reasoning."""
_NOT_EAGERLY = re.compile(r"null|none|true|false|bearer|basic|undefined", re.IGNORECASE)


def in_assignments(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Finds the secret values of ``name=value`` and ``"name": "value"``, in URLs, headers, JSON, XML and programs."""
    end = 0
    for sign in (_ASSIGNED_EAGERLY if eager else _ASSIGNED).finditer(text):
        name_end, start = sign.span()
        if start < end:
            continue
        if sign.lastindex is None and not eager:  # the value may be a word
            name_start = max(0, name_end - _NAME_WITHIN)
            if text[name_end] not in "=:>" or not _SECRET_NAME.search(text, name_start, name_end):
                continue
        length = _length_of_secret(text, sign, eager)
        end = start + length
        if length:
            yield start, end


def _length_of_secret(text: str, sign: re.Match[str], eager: bool) -> int:
    """Returns the length of the secret behind the sign; 0 if there is none."""
    before = text[max(0, sign.start() - _NAME_WITHIN) : sign.start()].rstrip(_BETWEEN)
    outside = before.rstrip(_IN_NAMES)
    name = before[len(outside) :]
    if outside[-1:] == "\\" and name[:1] in _ESCAPED:
        name = name[1:]  # the end of a line, as JSON writes it
    if name in _NO_NAMES:
        name, outside = _name_elsewhere(name, before, outside, sign[0])
    is_spaced = outside[-1:] == " " and outside[-2:-1].isalnum()
    phrase = "_".join([*_WORDS.findall(outside[-40:])[-2:], name]) if is_spaced else name
    meaning, keys = naming(name), keys_beside(phrase)
    if is_spaced and meaning is not Naming.SECRET and naming(phrase) is Naming.SECRET:
        meaning = Naming.LIKELY  # "API key: …"
    if outside[-1:] in ("?", "&") and meaning is not Naming.SECRET and _OF_URLS.search(name):
        meaning = Naming.LIKELY
    if (meaning is Naming.NOTHING and keys is None) or (sign[0][0] == ">" and outside[-1:] != "<"):
        return 0
    if outside[-1:] == ":" and "arn:" in outside:  # the name of a secret in a cloud
        return 0
    start = sign.end()
    line = outside.rstrip(" -")
    is_line = not line or line.endswith(("\n", "\\n", "\\", '"'))
    value = value_at(text, start, meaning, eager, is_on_next_line="\n" in sign[0])
    value = value or _chosen_at(text, start, meaning, name, sign[0], outside, is_line=is_line)
    if value:
        return len(value)
    whole = None if keys is None else _WHOLE.match(text, start)
    return len(whole[0]) if whole is not None and is_key_of_provider(phrase, whole[0]) else 0


def _name_elsewhere(name: str, before: str, outside: str, sign: str) -> tuple[str, str]:
    """Returns the name, and the text before it, if a type or ``value`` stands between the name and its sign."""
    if name in _VALUES:
        named = _NAME_OF_VALUE.findall(outside)
        return (named[-1], "") if named else ("", "")
    if name in _VERBS:
        before = outside.rstrip(_BETWEEN)  # "Your API key is: …"
    while sign[0] == "=" and len(words := before.split()) > 1 and words[-1].lstrip("&*") in _TYPES:
        before = before[: before.rindex(words[-1])].rstrip(_BETWEEN + ":")
    outside = before.rstrip(_IN_NAMES)
    return before[len(outside) :], outside


def value_at(text: str, start: int, meaning: Naming, eager: bool, *, is_on_next_line: bool = False) -> str:
    """Returns the secret that begins at ``start``; empty if there is none."""
    if meaning is Naming.NOTHING:
        return ""
    quote = _IN_QUOTES.get(text[start - 1])
    whole = (quote or _UNQUOTED).match(text, start)
    behind = "" if whole is None else text[whole.end() : whole.end() + 1]
    if whole is None or (behind and behind in "(["):
        return ""
    value = whole[0].rstrip(".")
    if is_on_next_line and ((behind and behind in "=:") or not is_random(value)):
        return ""
    if not is_value(meaning, value, is_quoted=quote is not None, eager=eager):
        return ""
    tail = None if quote or value != whole[0] else _TAIL.match(text, whole.end())
    return value + (tail[0] if tail is not None else "")


_PASSWORDS = re.compile(r"passw|pwd|passphrase|passcode", re.IGNORECASE)
_SNAKE_CASE = re.compile(r"[a-z]+(?:_[a-z]+)+")
_SHORTEST = 6
_END_OF_LINE = ("", "\n", "\r", "\\", '"', "'", "`")


def _chosen_at(text: str, start: int, meaning: Naming, name: str, sign: str, outside: str, *, is_line: bool) -> str:
    """Returns the secret at ``start`` that a person may have chosen, of any shape; empty if there is none.

    It is whole within quotes or tags; or it stands in a setting (``NAME=value``), in the query of a URL, or alone
    behind the name on a line. In such a line a program may have names too, so there it must be a password or look odd.
    """
    if meaning is not Naming.SECRET or "\n" in sign or sign[0] in "|,":
        return ""
    quote = _IN_QUOTES.get(text[start - 1])
    whole = (quote or _UNQUOTED).match(text, start)
    value = whole[0] if whole is not None else ""
    if len(value) < _SHORTEST:
        return ""
    behind = text[start + len(value) : start + len(value) + 1]
    is_tight, is_variable = sign == "=", name.isupper()
    if quote is not None:
        is_one = behind == text[start - 1] or (behind == "\\" and text[start - 2 : start - 1] == "\\")
        return value if is_one and is_chosen(value, is_setting=is_variable) else ""
    if sign == ">":
        return value if behind == "<" and is_chosen(value, is_setting=False) else ""
    if behind and behind in "(=[{:":
        return ""
    if is_tight and (is_variable or outside[-1:] in ("?", "&", ";")):
        return value if is_chosen(value.rstrip("."), is_setting=True) else ""
    is_alone = behind in _END_OF_LINE and is_line
    is_spaced = is_tight and (behind in _END_OF_LINE or behind.isspace()) and outside[-1:] not in ("(", ",")
    if not (is_alone or is_spaced) or not is_chosen(value, is_setting=False) or not is_literal(value):
        return ""
    is_plain = is_tight or (sign[0] == ":" and _PASSWORDS.search(name) is not None)
    return value if (is_plain and not _SNAKE_CASE.fullmatch(value)) or value.isdigit() or has_odd_words(value) else ""


def is_value(meaning: Naming, value: str, *, is_quoted: bool, eager: bool = False) -> bool:
    """Whether a value is a secret, given the meaning of its name."""
    if eager:
        return len(value) >= 8 and not _NOT_EAGERLY.fullmatch(value) and (meaning is Naming.SECRET or is_mixed(value))
    if meaning is Naming.SECRET:
        is_one = len(value) >= 6 and (is_mixed(value) or (is_random(value) and not is_digest(value)))
        return is_one and (is_literal(value) if not is_quoted else value[0] not in "${<[")
    is_one = len(value) >= 16 and is_mixed(value) and not value.startswith(("$", "{"))
    return is_one and is_random(value, digests=meaning is Naming.LIKELY)


# Manifests of Kubernetes ------------------------------------------------------------------------------------------

_MANIFEST_SIZE = 2_000
"""The most characters of a manifest that are read before its data, and of its data."""
_KIND = re.compile(r"kind[\"'\\]{0,4}:[ \t]{0,4}[\"'\\]{0,4}Secret[\"'\\]{0,4}(?=[ \t\r]{0,4}(?:\n|\\n|[,}]|$))")
_MANIFEST_DATA = re.compile(r"(?<![A-Za-z])(?:data|stringData)[\"'\\]{0,4}:[ \t]{0,4}(?=\\n|\n|\{)")
_ENTRY = re.compile(
    r"(?:\{|,|\n[ ]|\\n[ ])(?:[ \t\n]|\\n)*+[\"'\\]{0,4}[\w.\-]{1,80}[\"'\\]{0,4}:[ \t]{0,4}"
    r"(?:[|>][+\-]?(?:[ \t\n]|\\n)*+)?+[\"'\\]{0,4}(?P<value>[^\s\"'\\{}<>,]*+)[\"'\\]{0,4}"
)
"""One entry of the data, as YAML and as JSON."""


def in_manifests(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Finds the values in ``data`` and ``stringData`` of a manifest of the kind ``Secret``: all are secrets."""
    for data in _MANIFEST_DATA.finditer(text) if "Secret" in text and _KIND.search(text) else ():
        begin = text.rfind("---", max(data.start() - _MANIFEST_SIZE, 0), data.start())
        end = text.find("---", data.end(), data.end() + _MANIFEST_SIZE)
        begin, end = max(begin, data.start() - _MANIFEST_SIZE, 0), end if end >= 0 else data.end() + _MANIFEST_SIZE
        if not _KIND.search(text, begin, end):
            continue
        entry = _ENTRY.match(text, data.end())
        while entry is not None:
            if len(entry["value"]) >= 8:
                yield entry.span("value")
            entry = _ENTRY.match(text, entry.end())
