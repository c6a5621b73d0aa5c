"""What a value looks like: random as keys are, or a word that somebody wrote."""

from __future__ import annotations

import re
from base64 import b64decode

__all__ = ["is_basic", "is_literal", "is_mixed", "is_random"]

_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
"""Also a UUID: the digest or the id of anything."""
_PLACEHOLDER = re.compile(r"your|example|placeholder|change-?me|redacted|masked|dummy|xxx|\.\.\.|…|\*\*", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_OF_SECRETS = re.compile(r"key|token|secret|passw|passphrase|credential|auth", re.IGNORECASE)


def is_mixed(text: str) -> bool:
    """Letters and digits both, and no placeholder as documentation has them."""
    return _has_both(text) and not _PLACEHOLDER.search(text)


def is_random(text: str, *, digests: bool = True) -> bool:
    """Whether 16 letters and digits stand together in it, both kinds. Without ``digests`` what is hexadecimal is none.

    Words with hyphens between them, as CSS classes and names of files are, have no such run.
    """
    if not digests and _HEXADECIMAL.fullmatch(text):
        return False
    return any(map(_has_both, _RUN.findall(text)))


def is_literal(text: str) -> bool:
    """Whether what stands without quotes is a value, and no expression of a program: ``config.password2``."""
    return not _IDENTIFIER.fullmatch(text) or not ("." in text or _OF_SECRETS.search(text))


def is_basic(text: str) -> bool:
    """Whether it is ``user:password`` as HTTP's basic authentication writes it (RFC 7617): base64 of a text."""
    if len(text) % 4 or len(text) > 1_000:
        return False
    try:
        return b":" in b64decode(text, validate=True)
    except ValueError:
        return False


def _has_both(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))
