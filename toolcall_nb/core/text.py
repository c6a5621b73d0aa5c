"""Well-formed text: what Python's `str` allows and Unicode does not is mended at the door.

A stream that was cut between the two halves of a surrogate pair hands over two lone surrogates. No encoder
takes them, so neither a file, nor a socket, nor a notebook. Halves that belong together are joined; a half
without its other becomes U+FFFD.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

__all__ = ["MAX_LEVELS", "SURROGATE", "join_surrogates", "well_formed", "well_formed_json"]

SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"

MAX_LEVELS = 64
"""How deep a JSON value of a transcript may be nested."""


def join_surrogates(text: str) -> str:
    """``text`` with the two halves of each pair joined; lone halves stay."""
    if text.isascii() or not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def well_formed(text: str) -> str:
    """``text`` with surrogate halves joined, and lone ones replaced by U+FFFD."""
    joined = join_surrogates(text)
    return joined if joined.isascii() else SURROGATE.sub(_REPLACEMENT, joined)


def well_formed_json(value: Any, levels: int = MAX_LEVELS) -> Any:
    """A JSON value that every face can hold: strings well formed, keys too, and at most ``levels`` deep.

    What lies deeper becomes its own JSON text: no reader, renderer or writer here meets a depth that it can't take.
    Keys are strings, as JSON has them, and arrays lists. NaN is always the same object, `math.nan`: so values that
    hold it are equal, since Python compares what is in a container, or in a Struct, by identity first.
    """
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return math.nan if value != value else value
    if not isinstance(value, (dict, list, tuple)):
        return value
    if levels == 0 and value:
        return _json_text(value)
    if isinstance(value, dict):
        return {_key(key): well_formed_json(item, levels - 1) for key, item in value.items()}
    return [well_formed_json(item, levels - 1) for item in value]


def _key(key: Any) -> str:
    """A name; other keys as JSON writes them."""
    if isinstance(key, str):
        return well_formed(key)
    return json.dumps(key) if key is None or isinstance(key, int | float) else well_formed(str(key))


def _json_text(value: Any) -> str:
    try:
        return well_formed(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "(a value that is nested too deep to show)"
