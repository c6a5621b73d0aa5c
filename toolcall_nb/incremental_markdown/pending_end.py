"""The end of a text that is being written, as far as its looks may still change: `pending_length`.

``**bo`` is shown with two asterisks, and without them once it is closed. So a page withholds an opened mark and what
follows it until the mark is closed, its line ends, or too much follows it. This is about looks alone: a wrong guess
shows a mark for a moment, or some words a moment later. When the text ends, all of it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["ENOUGH", "pending_length"]

ENOUGH = 500
"""Of any text, `pending_length` looks at so many characters of its end."""

_LONGEST = 120
"""The most characters that are withheld of what a mark may enclose."""
_LONGEST_ADDRESS = 400
"""The most characters that are withheld of a link, or of the first rows of a table."""
_MARK = re.compile(r"[\\`*_~\[$<&]|!(?=\[|\Z)")
_MARKS = re.compile(rf"{_MARK.pattern}|^[ \t>]*[-+=\d]")
_RUN = re.compile(r"`+|\*+|_+|~+|\$+")
_ADDRESS = re.compile(r"\((?:[^()\n]|\([^()\n]*\))*\)")
_REFERENCE = re.compile(r"\[[^\[\]]*\]")
_AUTOLINK = re.compile(r"<[A-Za-z][^\s<>]*>")
_AUTOLINK_BEGUN = re.compile(r"<(?:[A-Za-z][^\s<>]*)?\Z")
_ENTITY_BEGUN = re.compile(r"&(?:#?\w{0,8})\Z", re.ASCII)
# A line of marks may become an item, a rule, or make a heading of the line before it.
_MARKER_BEGUN = re.compile(r"[ \t>]*(?:[-+*=_]+|\d{1,3}[.)]?|`{1,2}|~{1,2})[ \t]*")
_FENCE_BEGUN = re.compile(r"[ \t>]*(?:`+|~+)[ \t]*")
# A row behind a blank line is text until the row of dashes below it is whole.
_TABLE_BEGUN = re.compile(r"(?:\A|\n[ \t]*\n)( {0,3}\|[^\n]*(?:\n[ \t|:-]*)?)\Z")


def pending_length(text: str, is_code: Callable[[], bool] = bool) -> int:
    """Returns how many characters at the end of ``text`` are not to be shown yet.

    ``is_code`` says whether what is shown of it ends in code; it is asked if there are marks.
    """
    text = text[-ENOUGH:]
    line = text[text.rfind("\n") + 1 :]
    if not _MARKS.search(line) and "|" not in text:
        return 0
    if is_code():
        return len(line) if _FENCE_BEGUN.fullmatch(line) else 0
    table = _TABLE_BEGUN.search(text)
    if table is not None and len(text) - table.start(1) <= _LONGEST_ADDRESS:
        return len(text) - table.start(1)
    if _MARKER_BEGUN.fullmatch(line):
        return len(line)
    at = 0
    while (mark := _MARK.search(line, at)) is not None:
        at = _end_of_construct(line, mark.start())
        if at > len(line):
            return len(line) - mark.start()
    return 0


def _end_of_construct(line: str, start: int) -> int:
    """Returns where the construct ends that the mark at ``start`` begins; beyond the line if that is not certain."""
    pending, length = len(line) + 1, len(line) - start
    if length == 1:
        return pending
    match line[start]:
        case "\\" if line[start + 1] not in "([":
            return start + 2
        case "\\":
            end = line.find(")" if line[start + 1] == "(" else "]", start + 2)
            return end + 1 if end >= 0 else pending if length <= _LONGEST else start + 2
        case "[" | "!":
            return _end_of_link(line, start, pending)
        case "<":
            link = _AUTOLINK.match(line, start)
            is_begun = length <= _LONGEST_ADDRESS and _AUTOLINK_BEGUN.match(line, start)
            return link.end() if link else pending if is_begun else start + 1
        case "&":
            return pending if _ENTITY_BEGUN.match(line, start) else start + 1
    return _end_of_run(line, start, pending)


def _end_of_link(line: str, start: int, pending: int) -> int:
    closing = line.find("]", start)
    if closing < 0:
        return pending if len(line) - start <= _LONGEST else start + 1
    if closing + 1 == len(line):
        return pending
    target = {"(": _ADDRESS, "[": _REFERENCE}.get(line[closing + 1])
    if target is None:
        return start + 1
    whole = target.match(line, closing + 1)
    return whole.end() if whole else pending if len(line) - start <= _LONGEST_ADDRESS else start + 1


def _end_of_run(line: str, start: int, pending: int) -> int:
    """Returns the end of code, of a formula, or of emphasised or struck text."""
    run = _RUN.match(line, start)
    assert run is not None
    marks, behind = run[0], run.end()
    if behind == len(line):
        return pending
    if marks[0] != "`":
        is_number = marks[0] == "$" and line[behind].isdigit()
        is_in_word = marks[0] == "_" and start > 0 and line[start - 1].isalnum()
        if line[behind].isspace() or is_number or is_in_word or marks == "~":
            return behind
    at = behind
    while (closing := line.find(marks, at, behind + _LONGEST)) >= 0:
        end = closing + len(marks)
        is_longer = line[closing - 1] == marks[0] or line[end : end + 1] == marks[0]
        if (not is_longer or marks[0] == "*") and (marks[0] == "`" or not line[closing - 1].isspace()):
            return end
        at = end
    return pending if len(line) - start <= _LONGEST else behind
