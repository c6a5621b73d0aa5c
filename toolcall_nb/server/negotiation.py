"""Which of the forms that there are a client would rather have (RFC 9110, section 12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["preferred"]


def preferred(accept: str | None, forms: Sequence[str]) -> str | None:
    """The form that ``accept`` likes best, the first of them among equals; None where it takes none of them."""
    ranges = [*map(_range, (accept or "*/*").split(","))]
    best = max(forms, key=lambda form: _quality(ranges, form))
    return best if _quality(ranges, best) > 0 else None


def _quality(ranges: Sequence[tuple[str, float]], form: str) -> float:
    """How much a form is liked: what the range says that names it most exactly."""
    fitting = [found for found in ranges if _fits(found[0], form)]
    return max(fitting, key=_rank)[1] if fitting else 0.0


def _range(text: str) -> tuple[str, float]:
    kind, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    try:
        return kind, min(max(float(quality), 0.0), 1.0)
    except ValueError:
        return kind, 0.0


def _fits(wanted: str, form: str) -> bool:
    return wanted in (form, f"{form.partition('/')[0]}/*", "*/*")


def _rank(found: tuple[str, float]) -> int:
    """A type that is named says more than one with stars."""
    return -found[0].count("*")
