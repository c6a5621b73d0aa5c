"""What a name says about its value: the name of a variable, a field, a header or a parameter."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

__all__ = ["Naming", "naming"]


class Naming(Enum):
    """How likely the name makes it that the value is a secret."""

    SECRET = "secret"
    """``OPENAI_API_KEY``, ``password``, ``clientSecret``: the value is a secret, unless it does not look like one."""
    LIKELY = "likely"
    """``bot_token``, ``CI_TOKEN``, ``?token=``: the value is a secret if it looks random; a digest counts as random."""
    PERHAPS = "perhaps"
    """``key``, ``token``: also names of public things. The value has to look random, and not like a digest or an id."""
    NOTHING = "nothing"


_SECRETS = (
    *("accesskey", "accesstoken", "accountkey", "apikey", "apitoken", "appkey", "authkey", "authorization"),
    *("authtoken", "bearertoken", "clientkey", "consumerkey", "credential", "credentials", "encryptionkey"),
    *("licencekey", "licensekey", "masterkey", "passcode", "passphrase", "passwd", "password", "presharedkey"),
    *("privatekey", "pwd", "refreshtoken", "secret", "secretkey", "secrettoken", "servicekey", "sessiontoken"),
    *("sharedkey", "signingkey", "subscriptionkey"),
)
_PERHAPS = frozenset({"auth", "cookie", "key", "pass", "token"})
_LIKELY = frozenset({"auth", "pass", "token"})
"""The words that say more when another word stands before them."""
_LISTS = "next previous prev page paging pagination continuation continue sync delta cursor resume cancel cancellation"
_MODELS = (
    "pad eos bos mask sep cls unk special start end stop first last max min num new total input output prompt "
    "completion predicted decoded generated"
)
_TABLES = (
    "primary foreign cache partition sort row group unique composite index hash map dict object translation query "
    "routing shard bucket item column field entity surrogate sitekey site idempotency"
)
_PUBLIC = frozenset(f"{_LISTS} {_MODELS} {_TABLES} public publishable".split())
"""Words before ``key`` or ``token`` that tell that it opens nothing."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST = 80


@lru_cache(maxsize=1024)
def naming(name: str) -> Naming:
    """What the last words of the name say; digits at the end (``KEY_2``) are ignored.

    ``KEYBOARD``, ``monkey``, ``TOKENIZERS_PARALLELISM``, ``max_tokens``, ``nextPageToken``, ``key_file`` say nothing.
    """
    words = [word.lower() for word in _WORD.findall(name[-_LONGEST:])]
    if "".join(words).endswith(_SECRETS):
        return Naming.SECRET
    if not words or words[-1] not in _PERHAPS or _PUBLIC.intersection(words[-3:-1]):
        return Naming.NOTHING
    is_variable = name.isupper() and words[-1] != "key"
    return Naming.LIKELY if words[-1] in _LIKELY and (len(words) > 1 or is_variable) else Naming.PERHAPS
