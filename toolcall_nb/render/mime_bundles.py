"""The MIME bundles that a notebook saves: `mime_bundle` of a transcript, and `calls_bundle` of a table of calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.text import well_formed
from toolcall_nb.core.transcript import ToolCall, Transcript
from toolcall_nb.render.escaping import element
from toolcall_nb.render.html_output.card import table_html
from toolcall_nb.render.html_output.nodes import Node
from toolcall_nb.render.html_output.page import fragment, to_html
from toolcall_nb.render.shown_states import shown_state
from toolcall_nb.render.text import table_text, to_text
from toolcall_nb.render.value_lines import format_hidden
from toolcall_nb.render.value_summary import Table, one_line, table_of
from toolcall_nb.render.wording import summarise_input

__all__ = ["calls_bundle", "mime_bundle"]

_NO_CALLS = "No tool calls."


def mime_bundle(
    transcript: Transcript,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
    opened: Mapping[str, bool] | None = None,
    images: Collection[str] = (),
) -> dict[str, str]:
    """Returns the transcript by MIME type; ``include`` and ``exclude`` are those of IPython's display protocol.

    ``opened`` and ``images`` are those of `to_html`. The Markdown reads back as the transcript.
    """
    makers = {
        "text/html": lambda: to_html(transcript, opened=opened, images=images),
        "text/markdown": transcript.to_markdown,
        "text/plain": lambda: to_text(transcript),
    }
    return _bundle(makers, include, exclude)


def calls_bundle(
    calls: Iterable[ToolCall], *, include: Collection[str] | None = None, exclude: Collection[str] | None = None
) -> dict[str, str]:
    """Returns a table of the calls by MIME type: name, arguments, state, result or error, and id of each, bounded."""
    table = table_of([dict(_record(call)) for call in calls])
    makers = {
        "text/html": lambda: _table_html(table),
        "text/markdown": lambda: _table_markdown(table),
        "text/plain": lambda: _NO_CALLS if table is None else table_text(table),
    }
    return _bundle(makers, include, exclude)


def _bundle(
    makers: Mapping[str, Callable[[], str]], include: Collection[str] | None, exclude: Collection[str] | None
) -> dict[str, str]:
    return {
        kind: well_formed(make())  # a notebook cannot hold a lone surrogate
        for kind, make in makers.items()
        if (not include or kind in include) and (not exclude or kind not in exclude)
    }


def _record(call: ToolCall) -> Iterator[tuple[str, Json]]:
    yield "name", call.name
    yield "arguments", summarise_input(call)
    yield "state", shown_state(call).word
    yield "result", one_line(call.error) if call.error else "" if call.output is MISSING else one_line(call.output)
    yield "id", call.id


def _table_html(table: Table | None) -> str:
    body = element("p", "tc-empty", _NO_CALLS) if table is None else f'<div class="tc-wide">{table_html(table)}</div>'
    return fragment([Node("calls", body)])


def _table_markdown(table: Table | None) -> str:
    """Returns the table with its cells as code, so that nothing that a model wrote is read as Markdown."""
    if table is None:
        return _NO_CALLS
    head = [f"| {' | '.join(table.columns)} |", f"|{' --- |' * len(table.columns)}"]
    rows = [f"| {' | '.join(map(_code, row))} |" for row in table.rows]
    return "\n".join([*head, *rows, *(["", format_hidden(table.hidden, "rows")] if table.hidden else [])])


def _code(cell: str) -> str:
    text = " ".join(cell.split()).replace("`", "'").replace("|", "\\|")
    return f"`{text}`" if text else ""
