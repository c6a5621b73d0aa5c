"""Well-formed text: what Python's `str` allows and Unicode does not is mended at the door.

A stream that was cut between the two halves of a surrogate pair hands over two lone surrogates. No encoder
takes them, so neither a file, nor a socket, nor a notebook. Halves that belong together are joined; a half
without its other becomes U+FFFD.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["SURROGATE", "well_formed", "well_formed_json"]

SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def well_formed(text: str) -> str:
    """``text`` with surrogate halves joined, and lone ones replaced by U+FFFD."""
    if text.isascii() or not SURROGATE.search(text):
        return text
    return SURROGATE.sub(_REPLACEMENT, text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))


def well_formed_json(value: Any) -> Any:
    """A JSON value with every string in it, keys too, well formed."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(key): well_formed_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [well_formed_json(item) for item in value]
    return value
