"""Finds the requests to models in a trace: `requests_in_tree`."""

from __future__ import annotations

from toolcall_nb.runs.formats.spans.conventions import SpanKind
from toolcall_nb.runs.formats.spans.history import HistoryReader
from toolcall_nb.runs.formats.spans.readings import ModelCall, read_model_call
from toolcall_nb.runs.formats.spans.tree import SpanTree


def requests_in_tree(tree: SpanTree, kinds: list[SpanKind]) -> dict[int, ModelCall]:
    """Returns the requests to models, by the position of their spans.

    Several libraries may record the same request, each with a span inside the other's. The innermost one counts, and
    the others complete it. A span with several requests inside is no request of its own, but a loop around them.
    """
    outer: list[int | None] = []
    inner: dict[int, list[int]] = {}
    for i, parent in enumerate(tree.parents):
        around = None if parent is None or kinds[parent] in ("tool", "agent") else outer[parent]
        around = parent if parent is not None and kinds[parent] == "model" else around
        outer.append(around)
        if kinds[i] == "model" and around is not None:
            inner.setdefault(around, []).append(i)
    history = HistoryReader()
    found: dict[int, ModelCall] = {}
    base: dict[int, int] = {}
    for i in range(len(kinds) - 1, -1, -1):
        if kinds[i] != "model":
            continue
        request, within = read_model_call(tree.spans[i], history), inner.get(i, [])
        base[i] = base[within[-1]] if within else i
        if not within:
            found[i] = request
        elif len(within) == 1 or not found[base[i]].output:
            found[base[i]].complete(request)
        if len(within) > 1:
            kinds[i] = "agent"
    return found
