"""Makes text and JSON values well formed: `well_formed` and `well_formed_json`.

A stream that is cut between the two halves of a surrogate pair contains two lone surrogates. Python's `str` allows
them, but no encoder does, so they can be neither stored nor sent. Halves that belong together are joined; a half
without the other becomes U+FFFD.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"

MAX_LEVELS = 64
"""The deepest nesting of a JSON value in a transcript."""


def join_surrogates(text: str) -> str:
    """Joins the two halves of each surrogate pair; lone halves stay."""
    if text.isascii() or not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def well_formed(text: str) -> str:
    """Joins the two halves of each surrogate pair and replaces lone halves by U+FFFD."""
    joined = join_surrogates(text)
    return joined if joined.isascii() else SURROGATE.sub(_REPLACEMENT, joined)


def well_formed_json(value: Any, levels: int = MAX_LEVELS) -> Any:
    """Returns a JSON value whose strings and keys are well formed and which is at most ``levels`` deep.

    A deeper value is replaced by its JSON text, so that no reader, renderer or writer recurses too deep. Keys become
    strings, as in JSON, and arrays become lists. NaN is always the same object, `math.nan`, so that values with NaN can
    be equal: Python compares the items of a container, and the fields of a Struct, by identity first.
    """
    if not isinstance(value, (dict, list, tuple)):
        if isinstance(value, str):
            return well_formed(value)
        return math.nan if isinstance(value, float) and value != value else value
    if levels == 0 and value:
        return _json_text(value)
    # Most items are plain strings or numbers, and a call for each would take most of the time.
    if isinstance(value, dict):
        return {
            key if type(key) is str and key.isascii() else _key(key): item
            if ((kind := type(item)) is str and item.isascii()) or kind is int or (kind is float and item == item)
            else well_formed_json(item, levels - 1)
            for key, item in value.items()
        }
    return [
        item
        if ((kind := type(item)) is str and item.isascii()) or kind is int or (kind is float and item == item)
        else well_formed_json(item, levels - 1)
        for item in value
    ]


def _key(key: Any) -> str:
    """Returns a key as a string; a number, a boolean or None as JSON writes it."""
    if isinstance(key, str):
        return well_formed(key)
    return json.dumps(key) if key is None or isinstance(key, int | float) else well_formed(str(key))


def _json_text(value: Any) -> str:
    try:
        return well_formed(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "(a value that is nested too deep to show)"
