"""Registers a secret that nothing else would recognise: `register_secret`.

The registered secrets themselves are in `toolcall_nb.redaction.registered_secrets`, which imports no errors: an error
is shown in a cell without them.
"""

from __future__ import annotations

from toolcall_nb.errors import UsageError
from toolcall_nb.redaction.masker import MIN_LENGTH
from toolcall_nb.redaction.registered_secrets import REGISTERED


def register_secret(value: str, name: str | None = None) -> None:
    """Has a value masked in everything that is saved. ``name`` stands in the mask, and must not be secret.

    Read the value from where it is stored (``register_secret(os.environ["MY_KEY"])``): the text of a cell stays in the
    notebook. Raises `UsageError` for a value that is not a text, or too short to be told from other text.
    """
    if not isinstance(value, str) or len(value.strip()) < MIN_LENGTH:
        raise UsageError(f"A secret is a text of {MIN_LENGTH} characters or more: shorter ones are parts of words.")
    REGISTERED[value.strip()] = name
