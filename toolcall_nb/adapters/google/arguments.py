"""`PartialArguments` collects arguments that Google streams as values at paths (``functionCall.partialArgs``).

Source: googleapis/python-genai 2.34, ``types.PartialArg``: ``jsonPath`` is an RFC 9535 path of names and indices, a
string whose piece says ``willContinue`` is continued by the next piece of the same path.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.events import Json
from toolcall_nb.core.sdk_objects import as_mapping, get

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL)
_MOST_LEVELS = 60
_MOST_MISSING = 1000

_Path = list[str | int]


class PartialArguments:
    """Collects the pieces in `value`, and writes them as JSON text.

    The text from `take` adds up to the JSON of `value` without its closing brackets, as long as the pieces come in
    the order of the text. A piece without a valid path is written into the text as it is, which then is not JSON:
    ``is_broken`` becomes true.
    """

    def __init__(self) -> None:
        self.value: Json = {}
        self.is_broken = False
        self._grows: _Path | None = None
        self._text: str | None = ""  # the JSON text so far; None after a piece that was out of order

    def take(self, piece: Any) -> str:
        """Returns the JSON text that this piece adds."""
        path, value = _path(get(piece, "jsonPath", str) or get(piece, "json_path", str)), _value(as_mapping(piece))
        if path is None or not self._put(path, value):
            self.is_broken = True
            return f"{{ {json.dumps(str(piece))}"
        text = self._added_text(value, path == self._grows)
        continues = get(piece, "willContinue") or get(piece, "will_continue")
        self._grows = path if continues is True and isinstance(value, str) else None
        return text

    def _added_text(self, value: Json, continues: bool) -> str:
        if self._text is None:
            return ""
        if continues:
            added = json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else ""
        else:
            whole = json.dumps(self.value, ensure_ascii=False, separators=(",", ":")).rstrip("]}")
            whole = whole[:-1] if isinstance(value, str) else whole  # the string may continue
            if not whole.startswith(self._text):
                self._text = None
                return ""
            added = whole[len(self._text) :]
        self._text += added
        return added

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


def _path(text: str | None) -> _Path | None:
    """Returns the steps of a path such as ``$.a[0]['b c']``; None if it is invalid or far too long."""
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
