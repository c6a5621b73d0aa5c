"""The forms in which a known secret may be written: `SecretForms` finds them in a text."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

MIN_LENGTH = 6
"""The least characters of a secret. A shorter one would be found in the middle of words."""

_CORE = 10
"""The least characters of base64 that are searched for. Fewer would be found by chance."""


class SecretForms:
    """The forms of one secret: as it is, as JSON, URLs, HTML and Python write it, and inside base64 (RFC 4648).

    Inside base64, its first and last character may be encoded together with the text beside it, which is then masked
    too.
    """

    def __init__(self, value: str) -> None:
        plain = max(re.findall(r"[A-Za-z0-9]+", value) or [""], key=len)
        self._cores = list(_base64_cores(value))
        forms = sorted(_forms(value), key=len, reverse=True)
        self._hints = [plain] if len(plain) >= MIN_LENGTH // 2 else forms  # the same in each form
        self._pattern = re.compile("|".join([*map(re.escape, forms), *(pattern for _, pattern in self._cores)]))

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yields the places of the secret."""
        if any(hint in text for hint in self._hints) or any(core in text for core, _ in self._cores):
            for found in self._pattern.finditer(text):
                yield found.span()


def _forms(value: str) -> set[str]:
    urls = {quote(value, safe=""), quote(value), quote_plus(value)} if _is_well_formed(value) else set()
    lower = {re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), url) for url in urls}
    written = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    twice = {json.dumps(form)[1:-1] for form in written}  # JSON as a string of JSON
    return {value, *written, *twice, *urls, *lower, html.escape(value), html.escape(value, quote=False)}


def _base64_cores(value: str) -> Iterator[tuple[str, str]]:
    """Yields, for each of the three offsets in base64, the part that is the same beside any text, and a pattern."""
    data = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        encoded = b64encode(b"\0" * before + data).decode().rstrip("=")
        shared = (before + len(data)) % 3 != 0
        core = encoded[(0, 2, 3)[before] : len(encoded) - shared]
        for written in {core, core.replace("+", "-").replace("/", "_")}:
            if len(written) >= _CORE:
                edge = r"[A-Za-z0-9+/_\-]?"
                pattern = f"{edge if before else ''}{re.escape(written)}{edge if shared else ''}={{0,2}}"
                yield written, pattern


def _is_well_formed(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)
