"""The card of a tool call as nodes.

    <div class="tc-call tc-STATE">           m0.p3
      <details open>                         m0.p3.d
        <summary>…</summary>                 m0.p3.s    name, arguments in one line, state in words, time
        <div class="tc-io">… <pre></pre>     m0.p3.i    INPUT, one child for each entry
        <div class="tc-io">… <pre></pre>     m0.p3.l    PRINTED, one child for each group of lines
        <div class="tc-io">…                 m0.p3.w    DISPLAYED, one view below the other
        <div class="tc-io">… <pre></pre>     m0.p3.o    OUTPUT; a table is m0.p3.t, its own display m0.p3.v
        <details>… <pre></pre></details>     m0.p3.fold-NAME    more of one of these, closed
      </details>
      <pre class="tc-err">…</pre>            m0.p3.e    the error, visible when the card is closed

The summary ends with an empty ``<span class="tc-time">``: only the live front end fills it, or ``timings``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from toolcall_nb.core.events import MISSING
from toolcall_nb.core.transcript import State, ToolCall
from toolcall_nb.render.content import Written, arguments, seconds, shown_name, shown_state
from toolcall_nb.render.escaping import element, escape, escape_marked
from toolcall_nb.render.html_output.log import LogLines
from toolcall_nb.render.html_output.nodes import Node, leaf
from toolcall_nb.render.html_output.pictures import NO_HOSTS
from toolcall_nb.render.sections import FOLD, RICH, Section, progress, reason, sections
from toolcall_nb.render.values import Table
from toolcall_nb.render.yaml_like import Drawing, Entry, more

__all__ = ["Look", "call_node", "entry_leaves", "fold_name", "is_open", "recounted", "section_nodes", "table_html"]

_FITS = 12
_CLOSED = (State.OUTPUT_AVAILABLE, State.OUTPUT_DENIED, State.INTERRUPTED)


class Look(NamedTuple):
    """What is shown beside the transcript: which cards the user opened or closed, and seconds, by call id.

    ``hosts`` may serve pictures. ``activities`` is what is going on with calls
    (`toolcall_nb.render.html_output.activity`): empty
    in a static form, which says of a call without a result that it was called.
    """

    opened: Mapping[str, bool] = {}
    timings: Mapping[str, float] = {}
    hosts: frozenset[str] = NO_HOSTS
    activities: Mapping[str, str] = {}


def is_open(call: ToolCall, opened: Mapping[str, bool], is_rich: bool = False) -> bool:
    """The user decides; then, of a finished call, the writer; else open while it runs, asks, has failed, or is rich.

    ``is_rich``: it has a picture, a table, or another view of its own.
    """
    wish = opened.get(call.id)
    if wish is None and call.is_final:
        wish = call.open
    return call.state not in _CLOSED or is_rich if wish is None else wish


def fold_name(name: str, call_id: str) -> str:
    """The name under which ``opened`` knows a fold within a card."""
    return f"{name} of {call_id}"


def call_node(
    id: str,
    call: ToolCall,
    written: Written,
    look: Look,
    drawing: Drawing | None = None,
    log: LogLines | None = None,
) -> Node:
    """The card, whole. ``written`` is the call's ``input_text``; for ``drawing`` and ``log`` see `sections`."""
    summary = leaf(f"{id}.s", _summary(call, written, look))
    found = sections(call, written, drawing, log)
    body = section_nodes(id, found, call.id, look)
    is_rich = any(section.key in RICH for section in found)
    details = "<details open>" if is_open(call, look.opened, is_rich) else "<details>"
    children = [
        Node(f"{id}.d", details, "</details>", [summary, *body]),
        *section_nodes(id, reason(call), call.id, look),
    ]
    return Node(id, _head(shown_state(call, look.activities.get(call.id)).key), "</div>", children)


@cache
def _head(state: str) -> str:
    """One text for all cards of a state: there may be a hundred thousand of them."""
    return f'<div class="tc-call tc-{state}">'


def section_nodes(id: str, found: Iterable[Section], call_id: str, look: Look) -> list[Node]:
    """The sections of the card ``id``, one node for each."""
    return [_section(f"{id}.{section.key}", section, call_id, look) for section in found]


def _summary(call: ToolCall, written: Written, look: Look) -> str:
    """One line; the spaces keep its words apart where there is no style."""
    title, name = shown_name(call)
    took = look.timings.get(call.id)
    pieces = [
        element("b", "tc-name", title),
        *([element("span", "tc-tool", name)] if name else []),
        element("span", "tc-args", arguments(call, written)),
        *([element("span", "tc-mark", "edited")] if call.original_input is not MISSING else []),
        element("span", "tc-state", shown_state(call, look.activities.get(call.id)).word),
        element("span", "tc-time", "" if took is None else seconds(took)),
    ]
    return f"<summary>{' '.join(pieces)}</summary>"


def _section(id: str, section: Section, call_id: str, look: Look) -> Node:
    if section.key.startswith(FOLD):
        is_opened = look.opened.get(fold_name(section.key.removeprefix(FOLD), call_id))
        head = f'<details class="tc-more"{" open" if is_opened else ""}><summary>{escape(section.label)}'
        return Node(
            id, f"{head}{_note(section)}</summary><pre{_high(section)}>", "</pre></details>", _leaves(id, section)
        )
    label = _label(section)
    match section.key:
        case "a":
            return leaf(id, element("p", "tc-note", section.label))
        case "e":
            return leaf(id, _error(section))
        case "v" | "w":
            return leaf(id, f"{label}{section.html}</div>")
        case "l":
            head = f'{label}<div class="tc-log"{_high(section)}><pre>'
            return Node(id, head, "</pre></div></div>", _leaves(id, section))
        case "t":
            assert section.table is not None
            head = f'{label}<div class="tc-wide"{_focus(len(section.table.rows) + len(section.table.columns))}>'
            return Node(id, head, "</div></div>", [leaf(f"{id}.0", table_html(section.table))])
        case _:
            return Node(id, f"{label}<pre{_high(section)}>", "</pre></div>", _leaves(id, section))


def recounted(node: Node, call: ToolCall, written: Written) -> Node:
    """``node``, the section of an input, where more was written and no more of it is drawn: its note is another."""
    label = _label(Section("i", "Input", progress(call, written)))
    return Node(node.id, label + node.head[node.head.rindex("<pre") :], node.tail, node.children)


def _label(section: Section) -> str:
    return f'<div class="tc-io"><div class="tc-label"><b>{section.label}</b>{_note(section)}</div>'


def _note(section: Section) -> str:
    return f" <span>{escape(section.note)}</span>" if section.note else ""


def _high(section: Section) -> str:
    return _focus(sum(entry.height for entry in section.entries))


def _focus(height: int) -> str:
    """What may have to be scrolled can be reached by keyboard: not every browser sees to that by itself."""
    return ' tabindex="0"' if height > _FITS else ""


def _leaves(id: str, section: Section) -> list[Node]:
    if not section.has_ends:
        return entry_leaves(id, section.entries)
    numbered = enumerate(section.entries, section.first)
    return [leaf(f"{id}.{number}", f"<span>{_entry(entry)}</span>") for number, entry in numbered]


def entry_leaves(id: str, entries: Sequence[Entry]) -> list[Node]:
    """One leaf for each entry; the newline stands before, so that an entry stays as it is when another follows."""
    return [
        leaf(f"{id}.{number}", f"<span>{chr(10) if number else ''}{_entry(entry)}</span>")
        for number, entry in enumerate(entries)
    ]


def _entry(entry: Entry) -> str:
    if entry.html is None:
        marked = ((kind, escape_marked(text)) for kind, text in entry.tokens)
        entry.html = "".join(f'<span class="{kind}">{html}</span>' if kind else html for kind, html in marked)
    return entry.html


def table_html(table: Table) -> str:
    """The table, escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    hidden = f"<caption>{escape(more(table.hidden, 'rows'))}</caption>" if table.hidden else ""
    return f"<table>{hidden}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _error(why: Section) -> str:
    entry = why.entries[0]
    return f'<pre class="tc-err"{_focus(entry.height)}><b class="tc-word">{why.label}: </b>{_entry(entry)}</pre>'
