"""The ids under which a request names its calls: their own, where the provider takes them.

A chat may hold ids that another provider gave, that a model made up, or that a file says twice. A request with one that
the provider does not take is refused as a whole.
"""

from __future__ import annotations

import re
from hashlib import sha256

__all__ = ["CallIds"]

_TAKEN = re.compile(r"[A-Za-z0-9_.:-]{1,40}")
"""OpenAI: "Expected a string with maximum length 40". Kimi's own ids are like ``functions.search:0``."""

_STRICT = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Anthropic: "String should match pattern '^[a-zA-Z0-9_-]+$'"; AWS demands the same of ``toolUseId``."""

_MISTRAL = re.compile(r"[A-Za-z0-9]{9}")
"""Mistral: "must be a-z, A-Z, 0-9, with a length of 9"."""

_FORMS = {"mistral": _MISTRAL, "anthropic": _STRICT, "bedrock": _STRICT, "openrouter": _STRICT}
_NO_STRICT = re.compile(r"[^A-Za-z0-9_-]")


class CallIds:
    """The ids of one request to ``provider``, as pydantic-ai names it. The same calls get the same ones each time."""

    def __init__(self, provider: str | None = None) -> None:
        self._form = _FORMS.get(provider or "", _TAKEN)
        self._used: set[str] = set()

    def sent(self, own: str) -> str:
        """The id of the next call, whose own id this is: an id that no other call of the request has."""
        found, tries = own, 0
        while found in self._used or not self._form.fullmatch(found):
            found = self._made(own, tries)
            tries += 1
        self._used.add(found)
        return found

    def _made(self, own: str, tries: int) -> str:
        """Not the number of the call, which is another one when what came before is left out."""
        digest = sha256(f"{tries} {own}".encode("utf-8", "surrogatepass")).hexdigest()
        return digest[:9] if self._form is _MISTRAL else f"{_NO_STRICT.sub('_', own)[:27]}_{digest[:12]}"
