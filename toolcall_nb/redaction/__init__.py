"""Keys and passwords in a text or a value, replaced before a person, a file or a log gets it.

`masked` is for what is said of a failure: eager, where a word too many is better than a part of a key.
`masked_transcript` and `masked_text` are for what is saved, where words are not to be lost: what is no secret stays.
Both find known secrets in whichever form they are written, and what looks like one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from toolcall_nb.redaction.marks import MASK, mark
from toolcall_nb.redaction.masked_values import masked_value
from toolcall_nb.redaction.masker import Masker, Tally
from toolcall_nb.redaction.secret_names import Naming, naming

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import Transcript

__all__ = [
    "MASK",
    "Masker",
    "Naming",
    "Tally",
    "mark",
    "masked",
    "masked_text",
    "masked_transcript",
    "masked_value",
    "naming",
]


def masked(text: str, secrets: Iterable[str | None] | Mapping[str, str | None] = ()) -> str:
    """The text with a mark for each of ``secrets``, in whichever form, and for whatever may be a key.

    ``secrets`` are values, or values with their names, which the marks have. Of ``name=value`` and of
    ``https://user:password@host`` only the value is masked.
    """
    named = secrets if isinstance(secrets, Mapping) else dict.fromkeys(filter(None, secrets))
    return Masker(named, eager=True).text(text)


def masked_text(text: str, secrets: Mapping[str, str | None]) -> tuple[str, Tally]:
    """A text that is saved with its secrets masked, and what was masked; the same object where there is none."""
    masker = Masker(secrets)
    return masker.text(text), masker.tally


def masked_transcript(transcript: Transcript, secrets: Mapping[str, str | None]) -> tuple[Transcript, Tally]:
    """A transcript that is saved with its secrets masked, and what was masked; see `masked_value`.

    The same object where there is none. It reads back from Markdown, and masking it again changes nothing.
    """
    return masked_value(transcript, secrets)
