"""What a run took, folded below it: its requests, and what each call's result added to the next prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from toolcall_nb.core.usage import Account, Request, account
from toolcall_nb.render.escaping import element, escape

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import ToolCall, Transcript

__all__ = ["FOLD", "foot_info", "money"]

FOLD = "fold usage"
"""The fold's key, in the form of `toolcall_nb.render.html_output.message_nodes.fold_key`."""

_MOST_ROWS = 100
_MOST_NAME = 60
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}

_COLUMNS: Mapping[str, str] = {
    "inputTokens": "In",
    "cachedInputTokens": "cached",
    "cacheWriteTokens": "to cache",
    "outputTokens": "Out",
    "reasoningTokens": "reasoning",
}


def foot_info(line: str, transcript: Transcript, is_open: bool = False) -> str:
    """The line as HTML; where usage is reported, it opens to tables of it. Closed, both are of one height.

    The tables may have to be scrolled, which keys can do too: not every browser sees to that by itself.
    """
    taken = account(transcript.messages)
    if not taken.usage:
        return element("span", "tc-foot-info", line)
    added = _added(taken, transcript.calls)
    return (
        f'<details class="tc-foot-info"{" open" if is_open else ""}><summary>{escape(line)}</summary>'
        f'<div class="tc-usage" tabindex="0">{_requests(taken)}{added}</div></details>'
    )


def money(cost: Mapping[str, Decimal] | None) -> str:
    """``$0.0012``: cents, and below a cent two digits that count; empty where the cost is not known."""
    return " + ".join(f"{_SIGNS.get(currency, f'{currency} ')}{_amount(amount)}" for currency, amount in _items(cost))


def _items(cost: Mapping[str, Decimal] | None) -> Iterable[tuple[str, Decimal]]:
    return sorted((cost or {}).items())


def _amount(amount: Decimal) -> str:
    if amount >= 1 or amount == 0:
        return f"{amount:,.2f}"
    return f"{amount:.{max(2, 1 - amount.adjusted())}f}"


def _requests(taken: Account) -> str:
    """One row for each request, and below several what they come to."""
    columns = [name for name in _COLUMNS if taken.usage.get(name)]
    models = {request.model for request in taken.requests}
    row = _row_of(columns, has_models=len(models) > 1, has_cost=any(request.cost for request in taken.requests))
    rows = [row(f"{number:,}", request) for number, request in enumerate(taken.requests, 1)]
    if len(rows) > 1:
        rows = [*_bounded(rows), row("All", Request(taken.usage, taken.cost))]
    head = ["Request", *(["model"] if len(models) > 1 else []), *(_COLUMNS[name] for name in columns)]
    return _table([*head, *(["Cost"] if any(request.cost for request in taken.requests) else [])], rows)


def _row_of(columns: Sequence[str], *, has_models: bool, has_cost: bool) -> Callable[[str, Request], list[str]]:
    def row(name: str, request: Request) -> list[str]:
        model = [(request.model or "")[:_MOST_NAME]] if has_models else []
        numbers = [f"{request.usage[column]:,.0f}" if column in request.usage else "" for column in columns]
        return [name, *model, *numbers, *([money(request.cost)] if has_cost else [])]

    return row


def _added(taken: Account, calls: Mapping[str, ToolCall]) -> str:
    """One row for each call of which it is known."""
    rows = [[_name(call, calls), f"{tokens:,}"] for call, tokens in taken.added.items()]
    return _table(["Call", "added to the next prompt, about"], _bounded(rows)) if rows else ""


def _name(call_id: str, calls: Mapping[str, ToolCall]) -> str:
    call = calls.get(call_id)
    return f"{call.name[:_MOST_NAME]} · {call_id[:_MOST_NAME]}" if call is not None else call_id[:_MOST_NAME]


def _bounded(rows: list[list[str]]) -> list[list[str]]:
    hidden = len(rows) - _MOST_ROWS
    return rows if hidden <= 0 else [*rows[:_MOST_ROWS], [f"… {hidden:,} more"]]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = (f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
