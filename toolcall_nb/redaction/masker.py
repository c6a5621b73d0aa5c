"""Where secrets stand in a text, and the text with marks in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from toolcall_nb.redaction.assignments import in_assignments
from toolcall_nb.redaction.commands import in_commands
from toolcall_nb.redaction.headers import in_addresses, in_cookies, in_headers
from toolcall_nb.redaction.key_formats import find_keys
from toolcall_nb.redaction.manifests import in_manifests
from toolcall_nb.redaction.marks import MARK, MASK
from toolcall_nb.redaction.secret_forms import SHORTEST, KnownSecret

__all__ = ["Masker", "Tally"]


_SEARCHES = (find_keys, in_assignments, in_headers, in_cookies, in_addresses, in_commands, in_manifests)


class Tally(Struct, frozen=True):
    """What was masked: how many different ``secrets``, in how many ``places``, and the places of each by its mark."""

    secrets: int = 0
    places: int = 0
    marks: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """``2 secrets masked``; empty where there was none."""
        return f"{self.secrets:,} secret{'' if self.secrets == 1 else 's'} masked" if self.secrets else ""


class _Span(Struct, frozen=True):
    """A secret in a text, and what is to stand there. ``value`` tells secrets apart; None: what stands there."""

    start: int
    end: int
    mark: str = MASK
    value: str | None = None


class Masker:
    """Masks known secrets (value to name, or None) and what looks like one, and counts them.

    ``eager``: for what a provider or a program said of a failure. There also what only may be a key is masked.
    """

    def __init__(self, secrets: Mapping[str, str | None], *, eager: bool = False) -> None:
        known = sorted((value for value in secrets if len(value) >= SHORTEST), key=len, reverse=True)
        self._known = [KnownSecret(value, secrets[value]) for value in known]
        self._eager = eager
        self._seen: set[str] = set()
        self._marks: dict[str, int] = {}

    @property
    def tally(self) -> Tally:
        """What was masked so far."""
        return Tally(len(self._seen), sum(self._marks.values()), dict(self._marks))

    def may_find(self, text: str) -> bool:
        """Whether there is anything to mask. Costs little where there is nothing."""
        return bool(_apart(self._found(text), text))

    def text(self, text: str) -> str:
        """The text with its secrets masked; the same object where it has none.

        It is looked at again until nothing is found: a key may stand directly after another one.
        """
        while spans := _apart(self._found(text), text):
            text = self._replaced(text, spans)
        return text

    def value(self, name: str, text: str) -> str:
        """The value of a field, a header, a variable of this name."""
        masked = self.text(text)
        before = f'"{name}":"'
        if masked is text and any(start == len(before) for start, _ in in_assignments(f'{before}{text}"', self._eager)):
            return self._replaced(text, [_Span(0, len(text))])
        return masked

    def _found(self, text: str) -> Iterator[_Span]:
        for secret in self._known:
            yield from (_Span(*place, secret.mark, secret.value) for place in secret.find(text))
        for find in _SEARCHES:
            yield from (_Span(*place) for place in find(text, self._eager))

    def _replaced(self, text: str, spans: Iterable[_Span]) -> str:
        pieces, place = [], 0
        for span in spans:
            self._seen.add(span.value or text[span.start : span.end])
            self._marks[span.mark] = self._marks.get(span.mark, 0) + 1
            pieces += [text[place : span.start], span.mark]
            place = span.end
        return "".join([*pieces, text[place:]])


def _apart(found: Iterable[_Span], text: str) -> list[_Span]:
    """The spans in order; of those that overlap one, a known secret's before others. None that touches a mark."""
    ordered = sorted(found, key=lambda span: (span.start, span.value is None, -span.end))
    if not ordered:
        return []
    marks = [_Span(*mark.span(), "") for mark in MARK.finditer(text)]
    spans: list[_Span] = []
    for span in sorted([*ordered, *marks], key=lambda span: (span.start, span.mark != "")):
        if spans and span.start < spans[-1].end:
            spans[-1] = _union(spans[-1], span)
        else:
            spans.append(span)
    return [span for span in spans if span.mark]


def _union(one: _Span, other: _Span) -> _Span:
    """One mark for both. What a mark is part of stays as it is."""
    end = max(one.end, other.end)
    if not one.mark or not other.mark:
        return _Span(one.start, end, "")
    named = one if one.value is not None else other
    return _Span(one.start, end, named.mark, named.value)
