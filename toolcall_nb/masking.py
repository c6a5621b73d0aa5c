"""Keys and passwords in a text, replaced before a person, a file or a log gets it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

__all__ = ["MASK", "masked"]

MASK = "[masked]"

_SHORTEST = 6
"""Characters of a secret; a shorter one would be found in the middle of words."""

_FORMATS = (
    r"sk-[A-Za-z0-9_*.\-]{8,}",  # OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-), DeepSeek
    r"AIza[A-Za-z0-9_\-]{16,}",  # Google
    r"ya29\.[A-Za-z0-9_\-.]{16,}",  # Google, OAuth
    r"(?:gsk|hf|xai|pplx|r8|nvapi|csk|fw|co|tgp|pylf|glpat|npm)[_\-][A-Za-z0-9_\-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}",
    r"xox[abeprs]-[A-Za-z0-9\-]{10,}",  # Slack
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS
    r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*",  # a JSON web token
)
_KEY = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_FORMATS)})")
_NAMED = re.compile(
    r"""(\b(?:[A-Za-z0-9_\-]*(?:api[_\-]?key|secret|password|access[_\-]?token|auth[_\-]?token)|authorization|key|token)
         ["']?\s*[=:]\s*["']?(?:(?:bearer|basic|token)\s+)?)
        (?!(?:null|none|true|false|bearer|basic)\b)([A-Za-z0-9_\-.~+/*%]{8,}=*)""",
    re.IGNORECASE | re.VERBOSE,
)
"""``name=value``, in a URL, a header, an environment or JSON. What has blanks in it is prose, and no key."""
_BEARER = re.compile(r"(\b(?:bearer|basic)\s+)([A-Za-z0-9_\-.~+/]*[0-9_.~+/][A-Za-z0-9_\-.~+/]{7,}=*)", re.IGNORECASE)
_USERINFO = re.compile(r"(://[^\s/@:]*:)[^\s/@]+(?=@)")


def masked(text: str, secrets: Iterable[str | None] = ()) -> str:
    """The text with `MASK` for each of ``secrets``, also as JSON or a URL writes it, and for what looks like a key.

    Of ``name=value`` and of ``https://user:password@host`` only the value is masked.
    """
    for secret in sorted({*filter(None, secrets)}, key=len, reverse=True):
        for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe="")):
            text = text.replace(form, MASK) if len(secret) >= _SHORTEST else text
    text = _KEY.sub(MASK, text)
    for pattern in (_NAMED, _BEARER):
        text = pattern.sub(lambda found: found[1] + MASK, text)
    return _USERINFO.sub(lambda found: found[1] + MASK, text)
