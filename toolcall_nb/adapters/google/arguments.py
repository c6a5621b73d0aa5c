"""Arguments that Google streams as values at paths (``functionCall.partialArgs``): as a value, and as JSON text.

Source: googleapis/python-genai 2.34, ``types.PartialArg``: ``jsonPath`` is an RFC 9535 path of names and indices, a
string whose piece says ``willContinue`` grows by the next piece of the same path.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.plain import get, mapping
from toolcall_nb.core.events import Json

__all__ = ["PartialArguments"]

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL)
_MOST_LEVELS = 60
_MOST_MISSING = 1000

_Path = list[str | int]


class PartialArguments:
    """Takes pieces; `value` is what they amount to.

    The text that `take` gives grows to the JSON of that value, less what would close it, for as long as the pieces
    come in the order of the text. A piece that names no place stands in the text, which then is no JSON:
    ``is_broken``.
    """

    def __init__(self) -> None:
        self.value: Json = {}
        self.is_broken = False
        self._grows: _Path | None = None
        self._text = _Text()

    def take(self, piece: Any) -> str:
        """The JSON text that this piece adds."""
        path, value = _path(get(piece, "jsonPath", str) or get(piece, "json_path", str)), _value(mapping(piece))
        if path is None or not self._put(path, value):
            self.is_broken = True
            return f"{{ {json.dumps(str(piece))}"
        text = self._text.add(path, value, path == self._grows)
        continues = get(piece, "willContinue") or get(piece, "will_continue")
        self._grows = path if continues is True and isinstance(value, str) else None
        return text

    def _put(self, path: _Path, value: Json) -> bool:
        holder = self.value
        for step, following in itertools.pairwise(path):
            old = _at(holder, step)
            inner = old if isinstance(old, list if isinstance(following, int) else dict) else None
            if inner is None:
                inner = [] if isinstance(following, int) else {}
                if not _set(holder, step, inner):
                    return False
            holder = inner
        old = _at(holder, path[-1])
        return _set(holder, path[-1], old + value if path == self._grows and isinstance(old, str) else value)


class _Text:
    """Writes values at paths as JSON text, as far as they come in order."""

    def __init__(self) -> None:
        self._open: _Path | None = None
        self._in_string = False
        self._is_lost = False

    def add(self, path: _Path, value: Json, continues: bool) -> str:
        if self._is_lost:
            return ""
        if continues:
            return json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else ""
        old, self._open = self._open, path
        same = _shared(old, path)
        if old is not None and (same == len(path) or same == len(old) or not _follows(old[same], path[same])):
            self._is_lost = True
            return ""
        closing = ('"' if self._in_string else "") + (_closed(old[same + 1 :]) + "," if old is not None else "")
        written = json.dumps(value, ensure_ascii=False)
        self._in_string = isinstance(value, str)
        return closing + _opened(path, same, old is None) + (written[:-1] if self._in_string else written)


def _shared(old: _Path | None, path: _Path) -> int:
    """How many steps two paths have in common."""
    pairs = enumerate(zip(old or [], path, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(old or []), len(path)))


def _follows(old: str | int, new: str | int) -> bool:
    return new == old + 1 if isinstance(old, int) and isinstance(new, int) else type(old) is type(new)


def _closed(path: _Path) -> str:
    return "".join("]" if isinstance(step, int) else "}" for step in reversed(path))


def _opened(path: _Path, same: int, is_first: bool) -> str:
    steps = []
    for place, step in enumerate(path[same:], same):
        bracket = "" if place == same and not is_first else "[" if isinstance(step, int) else "{"
        steps.append(bracket + ("" if isinstance(step, int) else f"{json.dumps(step, ensure_ascii=False)}:"))
    return "".join(steps)


def _path(text: str | None) -> _Path | None:
    """The steps of a path such as ``$.a[0]['b c']``; None for what is none, and for one that is far too long."""
    if text is None or not text.startswith("$"):
        return None
    place, steps = 1, _Path()
    while found := _STEP.match(text, place):
        name, index, *quoted = found.groups()
        steps.append(int(index) if index is not None else name or re.sub(r"\\(.)", r"\1", quoted[0] or quoted[1] or ""))
        place = found.end()
    is_whole = place == len(text) and 0 < len(steps) <= _MOST_LEVELS and isinstance(steps[0], str)
    return steps if is_whole else None


def _value(piece: Mapping[str, Any]) -> Json:
    for name, snake in (("stringValue", "string_value"), ("numberValue", "number_value"), ("boolValue", "bool_value")):
        found = piece.get(name, piece.get(snake))
        if found is not None:
            return int(found) if isinstance(found, float) and found.is_integer() and abs(found) < 2**53 else found
    return None


def _at(holder: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return holder[step] if isinstance(holder, list) and step < len(holder) else None
    return holder.get(step) if isinstance(holder, dict) else None


def _set(holder: Any, step: str | int, value: Json) -> bool:
    if isinstance(step, str) and isinstance(holder, dict):
        holder[step] = value
        return True
    if not isinstance(step, int) or not isinstance(holder, list) or step > len(holder) + _MOST_MISSING:
        return False
    holder.extend([None] * (step + 1 - len(holder)))
    holder[step] = value
    return True
