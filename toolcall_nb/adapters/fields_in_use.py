"""`FieldsInUse` says which fields of an item a reader uses; `unread` finds the others, so that none of them vanishes.

An adapter keeps the unread fields of each item with the step (`toolcall_nb.adapters.assembler.Assembler.keep`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

TRANSPORT: Mapping[str, str] = {
    "numbers, of items and of their parts": (
        "index output_index content_index summary_index annotation_index contentBlockIndex sequence_number "
        "partial_image_index command_index"
    ),
    "names of what an item is": "type object role event_type kind event part_kind",
    "times of day and durations, which the record of a run holds": (
        "created created_at completed_at createTime timestamp updated total_duration load_duration "
        "prompt_eval_duration eval_duration metrics"
    ),
    "padding, and the numbers and probabilities of tokens": (
        "obfuscation logprobs top_logprobs avgLogprobs logprobsResult token_id p"
    ),
    "the head of the HTTP reply": "sdkHttpResponse ResponseMetadata",
}
"""The names of fields that are never kept, by the reason."""


class FieldsInUse(Struct, frozen=True, eq=False):
    """The fields of an object that its reader uses, and those of the objects within it (``inner``).

    ``kinds`` has the fields by the object's ``type``, or by the end of a type (``*_call``). An object of another type,
    and one that has none of the names in ``needs``, is not looked at, since the reader keeps it whole. The path of a
    field within an envelope does not name the envelope. A snapshot comes again and again; its latest state counts.
    """

    names: frozenset[str]
    inner: Mapping[str, FieldsInUse]
    kinds: Mapping[str, FieldsInUse] = {}
    needs: frozenset[str] = frozenset()
    is_envelope: bool = False
    is_snapshot: bool = False

    def unread(self, item: Mapping[str, Any], path: str = "") -> list[tuple[str, Any, bool]]:
        """Returns the path and the value of each other field that says anything, and whether its latest value counts.

        Null, false, zero and empty say nothing.
        """
        unread_fields: list[tuple[str, Any, bool]] = []
        self._look(item, path, False, unread_fields)
        return unread_fields

    def _look(
        self, item: Mapping[str, Any], path: str, latest: bool, unread_fields: list[tuple[str, Any, bool]]
    ) -> None:
        fields = self._of_kind(item.get("type")) if self.kinds else self
        if fields is None or (fields.needs and not fields.needs & item.keys()):
            return
        names, latest = fields.names, latest or fields.is_snapshot
        for name, value in item.items():
            if not value or name in names:
                continue
            inner = fields.inner.get(name)
            if inner is None:
                unread_fields.append((f"{path}{name}", value, latest))
                continue
            head = path if inner.is_envelope else f"{path}{name}."
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if type(each) is dict or isinstance(each, Mapping):
                    inner._look(each, head, latest or inner.is_snapshot, unread_fields)

    def _of_kind(self, kind: Any) -> FieldsInUse | None:
        exact = self.kinds.get(kind) if isinstance(kind, str) else None
        if exact is not None or not isinstance(kind, str):
            return exact
        by_end = (each for name, each in self.kinds.items() if name[0] == "*" and kind.endswith(name[1:]))
        return next(by_end, None)


_NEVER_KEPT = frozenset(" ".join(TRANSPORT.values()).split())


def in_use(
    names: str = "",
    *,
    kinds: Mapping[str, FieldsInUse] = {},
    needs: str = "",
    envelope: bool = False,
    snapshot: bool = False,
    **inner: FieldsInUse,
) -> FieldsInUse:
    """Returns the fields with these ``names``, and the objects in the fields ``inner``. Names may be in camelCase.

    A name in camelCase is also that in snake_case.
    """
    return FieldsInUse(
        frozenset(_spelled(names)) | _NEVER_KEPT,
        {spelled: each for name, each in inner.items() for spelled in _spelled(name)},
        kinds,
        frozenset(_spelled(needs)),
        envelope,
        snapshot,
    )


def _spelled(names: str) -> Iterator[str]:
    for name in names.split():
        yield from (name, re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name))
