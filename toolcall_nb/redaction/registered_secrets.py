"""The known secrets (`known_secrets`), and values without them as they are saved (`saved_value`, `saved_text`).

Known are the secrets that were registered (`toolcall_nb.redaction.registration`), the keys of models that are in use,
and the values of environment variables whose names and values look like those of keys. They are masked in everything
that is saved: the outputs of cells, files, a server's conversations, logs. Tools, models and conversations in memory
have the real values. `mask` switches the masking on and off.
"""

from __future__ import annotations

import os
import re
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

from toolcall_nb.redaction.masked_values import masked_value
from toolcall_nb.redaction.masker import MIN_LENGTH, Masker, Tally
from toolcall_nb.redaction.secret_names import Naming, naming

_Value = TypeVar("_Value")

_SHORTEST_OF_ENVIRONMENT = 8
_LONGEST = 20_000
_WORD = re.compile(r"[a-z]{1,15}|[A-Z]{1,15}|[A-Z][a-z]{1,14}")
_NO_SECRET = re.compile(r"true|false|yes|no|on|off|none|null|[-+.,:\d]+", re.IGNORECASE)
_PATH = re.compile(r"(?:~|\.{1,2})?/.*\.[A-Za-z]{1,8}|(?:~|\.{1,2})/.*|[A-Za-z]:\\.*")

REGISTERED: dict[str, str | None] = {}
"""The registered secrets, with the names that their masks show."""

_held: WeakValueDictionary[int, HeldSecret] = WeakValueDictionary()
_switch = {"on": True}


class HeldSecret:
    """A secret in use. It is known as long as this object exists."""

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        _held[id(self)] = self


def known_secrets() -> dict[str, str | None]:
    """Returns the known secrets with their names, which may be None."""
    held = {held._value: None for held in list(_held.values()) if len(held._value) >= MIN_LENGTH}
    in_environment: dict[str, str] = {}
    for name, value in dict(os.environ).items():
        if naming(name) is not Naming.NOTHING and _looks_secret(value.strip()):
            in_environment[value.strip()] = name
        elif (password := _password(value)) is not None:
            in_environment[password] = name
    return {**held, **in_environment, **REGISTERED}


def mask(on: bool) -> None:
    """Switches the masking of what is saved, in this process. Logs and error texts are always masked."""
    _switch["on"] = on


def is_masking() -> bool:
    """Whether what is saved is masked."""
    return _switch["on"]


def saved_value(value: _Value) -> tuple[_Value, Tally]:
    """Returns a transcript, or a part of one, as it is saved, and the tally; the same object if nothing was masked."""
    return masked_value(value, known_secrets()) if is_masking() else (value, Tally())


def saved_text(text: str) -> str:
    """Returns a text as it is saved."""
    return Masker(known_secrets()).text(text) if is_masking() else text


def _looks_secret(value: str) -> bool:
    """Whether it is long enough, and not a switch, a number, a common word, an address or an existing file."""
    if not _SHORTEST_OF_ENVIRONMENT <= len(value) <= _LONGEST or _NO_SECRET.fullmatch(value) or _WORD.fullmatch(value):
        return False
    if "://" in value or _PATH.fullmatch(value):
        return False
    try:
        return not os.path.exists(os.path.expanduser(value))
    except (OSError, ValueError):
        return True


def _password(value: str) -> str | None:
    """Returns the password in an address, as in ``DATABASE_URL``; None if there is none."""
    if "://" not in value or "@" not in value:
        return None
    try:
        password = unquote(urlsplit(value.strip()).password or "")
    except ValueError:
        return None
    is_one = len(password) >= _SHORTEST_OF_ENVIRONMENT and not _WORD.fullmatch(password)
    return password if is_one and not _NO_SECRET.fullmatch(password) else None
