"""The shape of a value: random like a key, or like something that a person wrote. `shape_regex` reads shapes."""

from __future__ import annotations

import re
from base64 import b64decode
from itertools import pairwise

_ALPHABETS = {
    "d": "0-9",
    "x": "a-fA-F0-9",
    "u": "A-Z0-9",
    "l": "A-Za-z",
    "w": "A-Za-z0-9",
    "s": "A-Za-z0-9_",
    "t": r"A-Za-z0-9_\-",  # base64url (RFC 4648)
    "p": r"A-Za-z0-9_\-.",
    "e": r"A-Za-z0-9_\-=",
    "q": r"A-Za-z0-9_\-=.",
    "b": "A-Za-z0-9+/",  # base64
    "k": r"A-Za-z0-9+/=_\-",
    "a": r"A-Za-z0-9_~.\-",  # Azure AD
    "v": "A-Za-z0-9%",
    "h": r"A-Za-z0-9_\-@/+",  # the path of a webhook
}
_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_GROUP = re.compile(r"<(?:(?P<uuid>uuid)|(?P<alphabet>[a-z])(?P<least>\d+)(?P<most>\+|-\d+)?)>")

_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_CHANGE = re.compile(r"(?<=[a-z])[A-Z]|(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]")
"""The ends of words and numbers: two in ``OAuthClient2``; in random text at four characters of ten."""
_CHANGES = 0.25
_LONG = 20
_DIGEST = re.compile(rf"[0-9a-fA-F]+|{_UUID}")
_LENGTH_OF_NO_DIGEST = 48
"""The number of hexadecimal digits of Jupyter's tokens and ElevenLabs' keys. No digest or id in use has so many."""
_PLACEHOLDER = re.compile(
    r"your|example|placeholder|change-?me|redacted|masked|dummy|insert|replace|xxx|\.\.\.|…|\*\*|://", re.IGNORECASE
)
_MADE_UP = frozenset(
    {"test", "fake", "mock", "dummy", "sample", "demo", "foo", "bar", "baz", "my", "not", "the", "here"}
)
_OF_MADE_UP = _MADE_UP.union(
    {"key", "token", "secret", "password", "pass", "api", "auth", "access", "sk", "client", "user", "value"},
    {"id", "abc", "a"},
)
"""Words of placeholders. A text with only these words, and at least one of `_MADE_UP`, is a placeholder."""
_LETTERS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_OF_SECRETS = re.compile(r"key|token|secret|passw|passphrase|credential|auth", re.IGNORECASE)
_TYPE = re.compile(
    r"(?:[A-Z]{1,4}[a-z]{2,})+\d{1,5}(?:[A-Z]{1,4}[a-z]{2,})+"
    r"|(?:[Uu]?[Ii]nt|float|bytes|string|str|utf|[Bb]ase|sha|md|rsa|aes|ed|oauth|arg|var|col|row|field|line|value)_?\d{1,5}"
    r"|[a-z]+(?:_[a-z]+)+_?\d{1,3}"
)
"""Names in programs that stand where a value may stand: ``Uint8Array``, ``OAuth2PasswordBearer``, ``bytes32``."""
_ORDINARY_WORDS = """
postgres guest docker localhost
absent accepted access account admin allowed always basic bearer blank boolean bytes cancelled changed char
config confirm confirmed constant count created credentials custom database declined default defined deleted
denied deprecated description digest disabled email empty enabled encrypted entered environment error expired
external failed false field fields file files filled float forbidden forgot format function generated given
hash hashed header headers hidden ignored include included incorrect input integer internal invalid issued
label length list locked login manual masked matched mismatch missing model module never none null number
object obscured omit omitted optional origin other output parameter params passed path pending plain plaintext
present private prompt property protected provided public query random read readonly received record redacted
rejected removed required reset result returned revoked rotated same same-origin saved schema scheme see self
sent server service session set settings show shown something stand state status stored string strong submit
success system table text this trimmed true type typed unchanged undefined unknown unset updated used user
username valid validated value values varchar variable verified verify visible weak with write wrong
"""
_ORDINARY = frozenset(_ORDINARY_WORDS.split())
"""Words that stand beside the name of a secret in prose, schemas and programs, and are none."""
_CAPITALISED = re.compile(r"(?:[A-Z][a-z]+)+")
_DOTTED = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+")
_DIFFERENT = 3
"""The least number of different characters of a secret."""
_SHORTEST_WORD = 6
"""The least characters of a password of letters."""
_LETTERS_OF_WORD = 4
"""The least letters of a word on average, in names of programs."""
_REFERENCES = ("$", "{", "<", "[", "%", "@", "./", "../", "~/", "arn:", "-")
_PATH = re.compile(r"/[a-z][a-z.\-]*/|[A-Za-z]:[\\/]")


def shape_regex(shape: str) -> str:
    """Returns the regular expression for a shape: literal text with groups in angle brackets.

    ``<w36>`` is exactly 36 letters and digits, ``<w36+>`` at least, ``<w20-40>`` between; ``<uuid>`` is a UUID.
    The letter names the alphabet. A group at the end with an exact number is not followed by more of its alphabet.
    """
    pieces, end = [], 0
    for group in _GROUP.finditer(shape):
        pieces += [re.escape(shape[end : group.start()]), _group_regex(group, is_last=group.end() == len(shape))]
        end = group.end()
    return "".join([*pieces, re.escape(shape[end:])])


def _group_regex(group: re.Match[str], *, is_last: bool) -> str:
    if group["uuid"]:
        return _UUID + (r"(?![\w\-])" if is_last else "")
    alphabet, least, most = _ALPHABETS[group["alphabet"]], group["least"], group["most"] or ""
    if most == "+":
        return f"[{alphabet}]{{{least},}}+"
    count = f"[{alphabet}]{{{least}{most.replace('-', ',')}}}"
    return f"{count}(?![{alphabet}])" if is_last else count


def is_mixed(text: str) -> bool:
    """Whether it has both letters and digits, and is not a placeholder as documentation uses them."""
    return _has_both(text) and not _is_placeholder(text)


def is_random(text: str, *, digests: bool = True) -> bool:
    """Whether letters, capitals and digits alternate as in random text. ``digests``: also for digests and UUIDs.

    They do not in words with hyphens, such as CSS classes and file names, or in a word with a number.
    """
    if is_digest(text):
        return digests
    if any(len(_CHANGE.findall(run)) >= 2 or _is_of_odd_letters(run) for run in _RUN.findall(text)):
        return True
    return len(text) >= _LONG and len(_CHANGE.findall(text)) >= _CHANGES * len(text)


def is_digest(text: str) -> bool:
    """Whether it is hexadecimal, like a digest or id, or a UUID."""
    return _DIGEST.fullmatch(text) is not None and len(text) != _LENGTH_OF_NO_DIGEST


def is_literal(text: str) -> bool:
    """Whether text without quotes is a value, and not an expression of a program such as ``config.password2``."""
    if text.startswith(_REFERENCES) or _PATH.match(text) or _TYPE.fullmatch(text):
        return False
    return not _IDENTIFIER.fullmatch(text) or not ("." in text or _OF_SECRETS.search(text))


def is_chosen(text: str, *, is_setting: bool) -> bool:
    """Whether a value beside the name of a secret is one although nothing of it looks random: ``correcthorse``.

    Not one are words that say what is true of a secret (``required``), placeholders, types and names in programs. Where
    ``is_setting``, as in ``DB_PASSWORD=``, no program has names; elsewhere, it takes more than one capitalised word.
    """
    lower = text.lower()
    if text.startswith(_REFERENCES) or _PATH.match(text) or _TYPE.fullmatch(text) or _is_placeholder(text):
        return False
    if not any(map(str.isalnum, text)) or len(set(lower)) < _DIFFERENT:
        return False
    words = {word.lower() for word in _LETTERS.findall(text)}
    if lower in _ORDINARY or words <= _OF_MADE_UP.union(_ORDINARY):
        return not words
    return is_setting or not (_OF_SECRETS.search(text) or _CAPITALISED.fullmatch(text) or _DOTTED.fullmatch(text))


def has_odd_words(text: str) -> bool:
    """Whether capitals stand where words and names in programs have none: ``QqAOPHgigtmY``, not ``userInput``."""
    words = _LETTERS.findall(text)
    return len(words) > 1 and len(text) < _LETTERS_OF_WORD * len(words) and not text.isupper()


def is_password(text: str) -> bool:
    """Whether an argument that should be a password is one, and not a variable, file or placeholder."""
    is_more_than_a_word = _has_both(text) or re.search(r"[A-Za-z0-9][!#%^&*+=?~:@]", text) is not None
    if not is_more_than_a_word:
        return len(text) >= _SHORTEST_WORD and is_chosen(text, is_setting=False)
    return not text.startswith(_REFERENCES) and not _is_placeholder(text)


def is_basic(text: str) -> bool:
    """Whether it is ``user:password`` in base64, as in HTTP's basic authentication (RFC 7617)."""
    if len(text) % 4 or len(text) > 1_000:
        return False
    try:
        return b":" in b64decode(text, validate=True)
    except ValueError:
        return False


def _is_placeholder(text: str) -> bool:
    words = {word.lower() for word in _LETTERS.findall(text)}
    return bool(_PLACEHOLDER.search(text)) or (words <= _OF_MADE_UP and not words.isdisjoint(_MADE_UP))


def _has_both(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _is_of_odd_letters(run: str) -> bool:
    """Whether capitals and small letters alternate more often than in words. In random text every second one does."""
    return run.isalpha() and 3 * sum(one.islower() != other.islower() for one, other in pairwise(run)) > len(run)
