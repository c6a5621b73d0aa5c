"""Secrets in a manifest of Kubernetes: all that stands in its data is secret, under any name."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["in_manifests"]

_MANIFEST = 2_000
"""Characters of a manifest before its data, and of its data."""
_KIND = re.compile(r"kind[\"'\\]{0,4}:[ \t]{0,4}[\"'\\]{0,4}Secret[\"'\\]{0,4}(?=[ \t\r]{0,4}(?:\n|\\n|[,}]|$))")
_DATA = re.compile(r"(?<![A-Za-z])(?:data|stringData)[\"'\\]{0,4}:[ \t]{0,4}(?=\\n|\n|\{)")
_ENTRY = re.compile(
    r"(?:\{|,|\n[ ]|\\n[ ])(?:[ \t\n]|\\n)*+[\"'\\]{0,4}[\w.\-]{1,80}[\"'\\]{0,4}:[ \t]{0,4}"
    r"(?:[|>][+\-]?(?:[ \t\n]|\\n)*+)?+[\"'\\]{0,4}(?P<value>[^\s\"'\\{}<>,]*+)[\"'\\]{0,4}"
)
"""One entry of the data, as YAML and as JSON."""


def in_manifests(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """The values in ``data`` and ``stringData`` of a manifest of the kind ``Secret``."""
    for data in _DATA.finditer(text) if "Secret" in text and _KIND.search(text) else ():
        begin = text.rfind("---", max(data.start() - _MANIFEST, 0), data.start())
        end = text.find("---", data.end(), data.end() + _MANIFEST)
        begin, end = max(begin, data.start() - _MANIFEST, 0), end if end >= 0 else data.end() + _MANIFEST
        if not _KIND.search(text, begin, end):
            continue
        entry = _ENTRY.match(text, data.end())
        while entry is not None:
            if len(entry["value"]) >= 8:
                yield entry.span("value")
            entry = _ENTRY.match(text, entry.end())
