"""A table of tool calls: name, arguments, state, result or error, and id, one row for each, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.render.content import Written, arguments, shown_state
from toolcall_nb.render.escaping import element
from toolcall_nb.render.html_output.card import table_html
from toolcall_nb.render.html_output.nodes import leaf
from toolcall_nb.render.html_output.page import fragment
from toolcall_nb.render.text import table_text
from toolcall_nb.render.values import Table, one_line, table_of
from toolcall_nb.render.yaml_like import more

__all__ = ["calls_html", "calls_markdown", "calls_text"]

NO_CALLS = "No tool calls."


def calls_html(calls: Iterable[ToolCall]) -> str:
    """The table as HTML, with its style."""
    table = _table(calls)
    body = element("p", "tc-empty", NO_CALLS) if table is None else f'<div class="tc-wide">{table_html(table)}</div>'
    return fragment([leaf("calls", body)])


def calls_markdown(calls: Iterable[ToolCall]) -> str:
    """The table as Markdown, with its cells as code: what a model wrote means nothing in it."""
    table = _table(calls)
    if table is None:
        return NO_CALLS
    head = [f"| {' | '.join(table.columns)} |", f"|{' --- |' * len(table.columns)}"]
    rows = [f"| {' | '.join(map(_code, row))} |" for row in table.rows]
    return "\n".join([*head, *rows, *(["", more(table.hidden, "rows")] if table.hidden else [])])


def calls_text(calls: Iterable[ToolCall]) -> str:
    """The table as plain text."""
    table = _table(calls)
    return NO_CALLS if table is None else table_text(table)


def _table(calls: Iterable[ToolCall]) -> Table | None:
    return table_of([dict(_record(call)) for call in calls])


def _record(call: ToolCall) -> Iterator[tuple[str, Json]]:
    yield "name", call.name
    yield "arguments", arguments(call, Written().plus(call.input_text))
    yield "state", shown_state(call).word
    yield "result", _result(call)
    yield "id", call.id


def _result(call: ToolCall) -> str:
    if call.error:
        return one_line(call.error)
    return "" if call.output is MISSING else one_line(call.output)


def _code(cell: str) -> str:
    text = " ".join(cell.split()).replace("`", "'").replace("|", "\\|")
    return f"`{text}`" if text else ""
