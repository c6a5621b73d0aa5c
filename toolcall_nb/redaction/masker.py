"""Masks the secrets in a text: `Masker`. A mask is ``[masked]``, or has the secret's name: ``[masked: NAME]``.

`SecretForms` finds a known secret in the forms in which it may be written.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

from msgspec import Struct, field

from toolcall_nb.redaction.assignments import in_assignments, in_manifests
from toolcall_nb.redaction.headers_and_commands import in_addresses, in_commands, in_cookies, in_headers
from toolcall_nb.redaction.key_formats import find_keys

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
        """Yields where the secret starts and ends."""
        if any(hint in text for hint in self._hints) or any(core in text for core, _ in self._cores):
            for match in self._pattern.finditer(text):
                yield match.span()


def _forms(value: str) -> set[str]:
    has_surrogate = any("\ud800" <= character <= "\udfff" for character in value)
    urls = set() if has_surrogate else {quote(value, safe=""), quote(value), quote_plus(value)}
    lower = {re.sub(r"%[0-9A-F]{2}", lambda escape: escape[0].lower(), url) for url in urls}
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


MASK = "[masked]"
_MASKS = re.compile(r"\[masked(?:: [A-Za-z0-9_.\-]{1,60})?\]")
"""Every mask. Text that overlaps one is not a secret any more."""
_LONGEST_NAME = 60

_SEARCHES = (find_keys, in_assignments, in_headers, in_cookies, in_addresses, in_commands, in_manifests)


class Tally(Struct, frozen=True):
    """The number of different ``secrets`` that were masked, of their ``places``, and of the places by mask."""

    secrets: int = 0
    places: int = 0
    masks: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Returns ``2 secrets masked``; empty if there were none."""
        return f"{self.secrets:,} secret{'' if self.secrets == 1 else 's'} masked" if self.secrets else ""


def named_mask(name: str | None) -> str:
    """Returns ``[masked: OPENAI_API_KEY]``: the name helps a reader and reveals nothing. `MASK` without a name."""
    harmless = re.sub(r"[^A-Za-z0-9_.\-]+", "_", name or "").strip("_")[:_LONGEST_NAME]
    return f"[masked: {harmless}]" if harmless else MASK


class _Span(Struct, frozen=True):
    """The place of a secret in a text, and its mask. ``value`` tells secrets apart; None stands for the text there."""

    start: int
    end: int
    mask: str = MASK
    value: str | None = None


class Masker:
    """Masks known secrets (values with their names, or None) and text that looks like a secret, and counts them.

    ``eager`` is for error texts of providers and programs: it also masks text that only may be a key.
    """

    def __init__(self, secrets: Mapping[str, str | None], *, eager: bool = False) -> None:
        values = sorted((value for value in secrets if len(value) >= MIN_LENGTH), key=len, reverse=True)
        self._secrets = [(value, named_mask(secrets[value]), SecretForms(value)) for value in values]
        self._eager = eager
        self._seen: set[str] = set()
        self._masks: dict[str, int] = {}

    @property
    def tally(self) -> Tally:
        """The secrets masked so far."""
        return Tally(len(self._seen), sum(self._masks.values()), dict(self._masks))

    def may_find(self, text: str) -> bool:
        """Whether there is anything to mask. It costs little if there is nothing."""
        return bool(_apart(self._spans(text), text))

    def text(self, text: str) -> str:
        """Returns the text with its secrets masked; the same object if it has none.

        The search is repeated until it finds nothing, since a key may stand directly after another one.
        """
        while spans := _apart(self._spans(text), text):
            text = self._replaced(text, spans)
        return text

    def value(self, name: str, text: str) -> str:
        """Returns the value of a field, header or variable of this name with its secrets masked."""
        masked = self.text(text)
        before = f'"{name}":"'
        if masked is text and any(start == len(before) for start, _ in in_assignments(f'{before}{text}"', self._eager)):
            return self._replaced(text, [_Span(0, len(text))])
        return masked

    def _spans(self, text: str) -> Iterator[_Span]:
        for value, mask, forms in self._secrets:
            yield from (_Span(start, end, mask, value) for start, end in forms.find(text))
        for find in _SEARCHES:
            yield from (_Span(start, end) for start, end in find(text, self._eager))

    def _replaced(self, text: str, spans: Iterable[_Span]) -> str:
        pieces, end = [], 0
        for span in spans:
            self._seen.add(span.value or text[span.start : span.end])
            self._masks[span.mask] = self._masks.get(span.mask, 0) + 1
            pieces += [text[end : span.start], span.mask]
            end = span.end
        return "".join([*pieces, text[end:]])


def _apart(spans: Iterable[_Span], text: str) -> list[_Span]:
    """Returns the spans in order, with those that overlap as one, and without those that overlap a mask."""
    ordered = sorted(spans, key=lambda span: (span.start, span.value is None, -span.end))
    if not ordered:
        return []
    masks = [_Span(*match.span(), "") for match in _MASKS.finditer(text)]
    joined: list[_Span] = []
    for span in sorted([*ordered, *masks], key=lambda span: (span.start, span.mask != "")):
        last = joined[-1] if joined else None
        if last is None or span.start >= last.end:
            joined.append(span)
            continue
        # One span for both: with the mask of a known secret, or with none if one of them is a mask already.
        named = last if last.value is not None else span
        mask, value = (named.mask, named.value) if last.mask and span.mask else ("", None)
        joined[-1] = _Span(last.start, max(last.end, span.end), mask, value)
    return [span for span in joined if span.mask]
