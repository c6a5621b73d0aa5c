"""What a name says of its value: of a variable, a field, a header, a parameter."""

from __future__ import annotations

import re
from enum import Enum

__all__ = ["Naming", "naming"]


class Naming(Enum):
    """How much a name says."""

    SECRET = "secret"
    """``OPENAI_API_KEY``, ``password``, ``clientSecret``: the value is one, unless it does not look like it."""
    PERHAPS = "perhaps"
    """``key``, ``token``: also the names of things that anybody may see. The value has to look random."""
    NOTHING = "nothing"


_SECRETS = (
    *("apikey", "apitoken", "accesskey", "accesstoken", "authkey", "authtoken", "bearertoken", "clientkey"),
    *("clientsecret", "credential", "credentials", "passphrase", "passwd", "password", "privatekey", "refreshtoken"),
    *("secret", "secretkey", "secrettoken", "sessiontoken", "signingkey", "encryptionkey", "authorization"),
)
_PERHAPS = frozenset({"auth", "cookie", "key", "pass", "pwd", "sig", "signature", "token"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST = 80


def naming(name: str) -> Naming:
    """What the name's last words say; digits at the end (``KEY_2``) say nothing.

    ``KEYBOARD``, ``monkey``, ``TOKENIZERS_PARALLELISM``, ``max_tokens`` and ``key_file`` are none.
    """
    words = [word.lower() for word in _WORD.findall(name[-_LONGEST:])]
    if "".join(words).endswith(_SECRETS):
        return Naming.SECRET
    return Naming.PERHAPS if words and words[-1] in _PERHAPS else Naming.NOTHING
