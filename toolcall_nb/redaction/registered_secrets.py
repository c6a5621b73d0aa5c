"""The secrets that are known here, and what is saved without them.

Known are those that were registered, the keys of models that are in use, and the values of environment variables that
are called as keys are and look like one. They are masked in whatever is saved: what a cell keeps, files, a server's
threads, logs. Tools, models and the conversation that goes on in memory have the real ones. `mask` switches it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

from toolcall_nb.errors import UsageError
from toolcall_nb.redaction import Naming, Tally, masked_text, masked_value, naming

__all__ = [
    "HeldSecret",
    "is_masking",
    "known_secrets",
    "mask",
    "register_secret",
    "saved_text",
    "saved_value",
]

_Value = TypeVar("_Value")

_SHORTEST = 6
_SHORTEST_OF_ENVIRONMENT = 8
_LONGEST = 20_000
_WORD = re.compile(r"[a-z]{1,15}|[A-Z]{1,15}|[A-Z][a-z]{1,14}")
_NO_SECRET = re.compile(r"true|false|yes|no|on|off|none|null|[-+.,:\d]+", re.IGNORECASE)
_PATH = re.compile(r"(?:~|\.{1,2})?/.*\.[A-Za-z]{1,8}|(?:~|\.{1,2})/.*|[A-Za-z]:\\.*")

_registered: dict[str, str | None] = {}
_held: WeakValueDictionary[int, HeldSecret] = WeakValueDictionary()
_switch = {"on": True}


class HeldSecret:
    """What holds a secret in use. It is known as long as this is there."""

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        _held[id(self)] = self


def register_secret(value: str, name: str | None = None) -> None:
    """Have a value masked wherever it would be saved; ``name`` stands in the mark, and is no secret.

    Take it from where it is kept (``register_secret(os.environ["MY_KEY"])``): what is typed into a cell stays in the
    notebook. Raises `UsageError` for what is no text, or too short to be told from other text.
    """
    if not isinstance(value, str) or len(value.strip()) < _SHORTEST:
        raise UsageError(f"A secret is a text of {_SHORTEST} characters or more: shorter ones are parts of words.")
    _registered[value.strip()] = name


def known_secrets() -> dict[str, str | None]:
    """All of them, with their names: environment variables', or None."""
    held = {held._value: None for held in list(_held.values()) if len(held._value) >= _SHORTEST}
    return {**held, **dict(_in_environment(dict(os.environ))), **_registered}


def mask(on: bool) -> None:
    """Whether what is saved from now on is masked, in this process. Logs and the texts of errors always are."""
    _switch["on"] = on


def is_masking() -> bool:
    """Whether what is saved is masked."""
    return _switch["on"]


def saved_value(value: _Value) -> tuple[_Value, Tally]:
    """A transcript, or a part of one, as it is saved, and what was masked in it; the same object where nothing was."""
    return masked_value(value, known_secrets()) if is_masking() else (value, Tally())


def saved_text(text: str) -> str:
    """A text as it is saved."""
    return masked_text(text, known_secrets())[0] if is_masking() else text


def _in_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in environment.items():
        if naming(name) is not Naming.NOTHING and _looks_like_one(value.strip()):
            yield value.strip(), name
        elif (password := _password(value)) is not None:
            yield password, name


def _looks_like_one(value: str) -> bool:
    """Long enough, and neither a switch, a number, a common word, an address nor a file that is there."""
    if not _SHORTEST_OF_ENVIRONMENT <= len(value) <= _LONGEST or _NO_SECRET.fullmatch(value) or _WORD.fullmatch(value):
        return False
    return "://" not in value and not _is_file(value)


def _is_file(value: str) -> bool:
    try:
        return bool(_PATH.fullmatch(value)) or os.path.exists(os.path.expanduser(value))
    except (OSError, ValueError):
        return False


def _password(value: str) -> str | None:
    """Of an address with a password in it: ``DATABASE_URL``."""
    if "://" not in value or "@" not in value:
        return None
    try:
        password = unquote(urlsplit(value.strip()).password or "")
    except ValueError:
        return None
    is_one = len(password) >= _SHORTEST_OF_ENVIRONMENT and not _WORD.fullmatch(password)
    return password if is_one and not _NO_SECRET.fullmatch(password) else None
