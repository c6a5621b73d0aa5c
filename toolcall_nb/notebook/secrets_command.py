"""``%toolchat secrets``: sets and lists what is masked in saved outputs. It prints names and counts, never a value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.redaction import MASK, masked_value
from toolcall_nb.redaction.registered_secrets import is_masking, known_secrets, mask
from toolcall_nb.redaction.registration import register_secret
from toolcall_nb.render.value_lines import format_count

_USAGE = "%toolchat secrets takes on, off, or add NAME, where NAME is a variable: a value stays in the notebook."


def run_secrets_command(words: str, transcript: Transcript, namespace: Mapping[str, Any]) -> str:
    """Does ``on``, ``off``, ``add NAME`` or nothing, and returns what to print. Raises `UsageError`."""
    match words.split():
        case []:
            pass
        case ["on" | "off" as wish]:
            mask(wish == "on")
        case ["add", name]:
            register_secret(_value(name, namespace), name)
        case _:
            raise UsageError(_USAGE)
    secrets = known_secrets()
    names = sorted({name for name in secrets.values() if name is not None})
    unnamed = sum(name is None for name in secrets.values())
    tally = masked_value(transcript, secrets)[1]
    lines = [
        f"secrets: {'masked' if is_masking() else 'not masked, they are saved as they are'}",
        f"known:   {', '.join([*names, *([f'{unnamed:,} without a name'] if unnamed else [])]) or 'none'}",
    ]
    for mark, number in sorted(tally.masks.items()):
        kind = "what looks like one" if mark == MASK else mark.removeprefix("[masked: ").removesuffix("]")
        lines.append(f"in this thread: {kind}, {format_count(number, 'times')}")
    return "\n".join(lines)


def _value(name: str, namespace: Mapping[str, Any]) -> str:
    """Returns the value of a variable. The error does not repeat the name, which may be a secret itself."""
    value = os.environ.get(name) or namespace.get(name)
    if not isinstance(value, str) or not name.isidentifier():
        raise UsageError(f"There is no variable of that name that holds a text. {_USAGE}")
    return value
