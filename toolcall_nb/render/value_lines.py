"""JSON values as lines that look like YAML: `draw_value` makes bounded entries, in pieces with a kind.

HTML, plain text and the terminal make their output of the same pieces. A value is stored whole; only the drawing is
cut, and each cut says how much it hides, since a `<pre>` of megabytes costs a second for each layout.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from toolcall_nb.core.escaping import line_ends, without_ansi
from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.invisible_characters import escape_invisible
from toolcall_nb.core.result_text import count_characters, count_items
from toolcall_nb.core.text import join_surrogates

MAX_CHARACTERS = 20_000
"""The most characters of a value that are drawn, about."""
MAX_ROWS = 200
"""The most items of a list, keys of an object, or rows of a table that are drawn."""
_FLOW_ITEMS = 12
_FLOW_WIDTH = 60
_WIDTH = 80
_MANY = 10**15


class Bounds(NamedTuple):
    """The limits of a drawing: characters in all, members of one list or object, levels, characters of a key."""

    characters: int = MAX_CHARACTERS
    rows: int = MAX_ROWS
    depth: int = 24
    key: int = 200


_BOUNDS = Bounds()

Token: TypeAlias = tuple[str, str]
"""A kind and text: ``k`` key, ``n`` number or other constant, ``c`` a remark of ours; ``""`` strings and marks."""
_kind_of, _text_of = itemgetter(0), itemgetter(1)

_NOT_PLAIN = re.compile(
    r"""[\s\-?:,\[\]{}#&*!|>'"%@`] | (?:null|true|false|~)$ | [-+.]?\d[\w.:+-]*$""", re.IGNORECASE | re.VERBOSE
)
"""The start, or all, of a string that has to be quoted in YAML."""
_MARK = re.compile(r"[:#\x00-\x1f\x7f]")
_NOT_PLAIN_INSIDE = re.compile(r":[ ]|:$|[ ]#|[\x00-\x1f\x7f]")
_NOT_FLOW = re.compile(r"[,\[\]{}]")


class Entry:
    """One or more lines, without a newline at the end. Characters that cannot be seen are written out.

    ``is_written_out`` says that the given text is so already. ``text`` is the text of all tokens, and ``height`` is
    about how many lines it has on a screen. ``html`` is where the HTML card keeps the HTML that it makes of the entry.
    """

    __slots__ = ("height", "html", "text", "tokens")

    def __init__(self, tokens: Sequence[Token], *, is_written_out: bool = False) -> None:
        text = "".join(map(_text_of, tokens))
        if not is_written_out and (not text.isascii() or escape_invisible(text) is not text):
            tokens = [(kind, escape_invisible(join_surrogates(piece))) for kind, piece in tokens]
            text = "".join(map(_text_of, tokens))
        self.text = text
        self.tokens = tokens
        self.height = 1 + text.count("\n") + len(text) // _WIDTH
        self.html: str | None = None


def is_cut(entries: Sequence[Entry]) -> bool:
    """Whether a remark of ours stands for something that is not drawn."""
    return "c" in map(_kind_of, chain.from_iterable([entry.tokens for entry in entries]))


def draw_text(text: str, limit: int = MAX_CHARACTERS) -> Entry:
    """Returns a text as one entry, without the colour sequences of terminals."""
    head = ("", line_ends(without_ansi(text[:limit])))
    if len(text) <= limit:
        return Entry([head])
    return Entry([head, ("c", "\n" + format_hidden(count_characters(text, limit), "characters"))])


class _Pen:
    """Collects the tokens of an entry, and counts the characters that may still be drawn."""

    __slots__ = ("bounds", "left", "tokens")

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.left = bounds.characters
        self.tokens: list[Token] = []

    def write(self, mark: str, kind: str, text: str) -> None:
        """Adds a text, behind a mark that does not count."""
        self.left -= len(text)
        if mark and kind:
            self.tokens.append(("", mark))
            mark = ""
        self.tokens.append((kind, mark + text))


def draw_value(value: Json, bounds: Bounds = _BOUNDS) -> list[Entry]:
    """Returns the value as entries: one for each key or item at the top, and for each one in those that are blocks.

    Keys and strings look as in YAML. A string that could be read as something else is quoted.
    """
    pen = _Pen(bounds)
    return [_draw(piece, pen) for piece in _pieces(value, pen)]


class Drawing:
    """Draws a value repeatedly while it grows. An entry that has not changed is the same object."""

    __slots__ = ("_drawn", "_value")

    def __init__(self) -> None:
        self._drawn: list[tuple[bytes | None, Entry, int]] = []
        self._value: Json = MISSING

    def draw(self, value: Json) -> list[Entry]:
        """Returns the entries of `draw_value`, at the cost of those that changed. ``value`` must not change later."""
        if value is not self._value:
            self._draw(value)
            self._value = value
        return [entry for _, entry, _ in self._drawn]

    def _draw(self, value: Json) -> None:
        pen = _Pen(_BOUNDS)
        former = iter(self._drawn)
        drawn: list[tuple[bytes | None, Entry, int]] = []
        for piece in _pieces(value, pen):
            mark = _bytes_of(piece)  # compared as bytes, since 1, 1.0 and True are equal in Python
            last = next(former, None)
            if last is not None and last[0] == mark is not None:
                pen.left = last[2]
                drawn.append(last)
            else:
                former = iter(())  # the later ones were drawn with another number of characters left
                drawn.append((mark, _draw(piece, pen), pen.left))
        self._drawn = drawn


# Pieces: each becomes one entry ---------------------------------------------------------------------------------


_Kind: TypeAlias = Literal["pair", "head", "item", "more", "whole"]
_Piece: TypeAlias = tuple[_Kind, str, str, Json, bool]
"""The kind, the indentation, the key, the value, and whether that is a block.

Of ``more``, the key and the value are the name and the number of what is hidden.
"""


def _pieces(value: Json, pen: _Pen) -> Iterator[_Piece]:
    whole: _Piece = ("whole", "", "", value, False)
    return _level(value, "", pen, split=True) if is_block(value) else iter([whole])


def _bytes_of(piece: _Piece) -> bytes | None:
    """Returns the piece as bytes; None if it holds something that JSON has not, and so has to be drawn again."""
    try:
        return marshal.dumps(piece, 2)
    except ValueError:
        return None


def _level(value: Json, indent: str, pen: _Pen, *, split: bool = False) -> Iterator[_Piece]:
    """Yields the pieces of an object or a list, until there are too many or no characters are left."""
    members = value.items() if isinstance(value, dict) else [("", item) for item in value]
    kind: _Kind = "pair" if isinstance(value, dict) else "item"
    rows, split = pen.bounds.rows, split and kind == "pair"
    for number, (key, item) in enumerate(members):
        if number == rows or pen.left <= 0:
            yield "more", indent, "keys" if kind == "pair" else "items", count_items(value, number), False
            return
        has_lines = isinstance(item, (dict, list)) and is_block(item)
        if has_lines and split:
            yield "head", indent, str(key), None, False
            yield from _level(item, indent + "  ", pen)
        else:
            yield kind, indent, str(key), item, has_lines


def is_block(value: Json) -> bool:
    """Whether the value takes lines of its own: an object or a list, unless it is empty or short."""
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and not _is_flow(value)))


def _is_flow(value: list[Json]) -> bool:
    """Whether the list is short enough for one line: constants and short strings."""
    if len(value) > _FLOW_ITEMS:
        return False
    width = 0
    for item in value:
        if isinstance(item, (dict, list)) or (isinstance(item, str) and "\n" in item):
            return False
        width += len(item) + 4 if isinstance(item, str) else 8
    return width <= _FLOW_WIDTH


# Tokens: an entry is made of them -------------------------------------------------------------------------------


def _draw(piece: _Piece, pen: _Pen) -> Entry:
    pen.tokens = [("", piece[1])] if piece[1] else []
    _line(piece, 0, pen)
    return Entry(pen.tokens)


def _line(piece: _Piece, depth: int, pen: _Pen) -> None:
    """Draws a piece from where its line begins, behind the indentation."""
    kind, indent, key, value, has_lines = piece
    match kind:
        case "pair" | "head":
            limit = pen.bounds.key
            quoted = _quoted_key(key[:limit])
            pen.tokens.append(("k", quoted))
            if len(key) > limit:
                pen.tokens.append(("c", "…"))
            pen.left -= len(quoted) + len(indent) + 1  # the indentation of a line is drawn too
            if kind == "head":
                pen.tokens.append(("", ":"))
            elif has_lines and depth < pen.bounds.depth:
                inner = indent + "  "
                pen.tokens.append(("", f":\n{inner}"))
                _block(value, inner, depth + 1, pen)
            else:
                _after(": ", value, indent, has_lines, pen)
        case "item":
            pen.left -= len(indent) + 1
            if has_lines and depth < pen.bounds.depth:
                pen.tokens.append(("", "- "))
                _block(value, indent + "  ", depth + 1, pen)
            else:
                _after("- ", value, indent, has_lines, pen)
        case "more":
            pen.tokens.append(("c", format_hidden(value, key)))
        case "whole" if isinstance(value, str) and "\n" in value:
            _lines(value, "", pen)
        case "whole":
            _after("", value, "", has_lines, pen)


def _after(mark: str, value: Json, indent: str, is_too_deep: bool, pen: _Pen) -> None:
    """Draws a colon, a dash or nothing, and the value behind it; of a block that is too deep, only its size."""
    if isinstance(value, str):
        if "\n" in value:
            _lines(value, indent + "  ", pen, f"{mark.rstrip()} |\n{indent}  ")
        elif len(value) > pen.left:
            _lines(value, indent + "  ", pen, mark)
        else:
            pen.write(mark, "", _quoted(value))
    elif is_too_deep:
        pen.write(mark, "c", format_constant(value))
    elif not isinstance(value, (dict, list)):
        pen.write(mark, "n", format_constant(value))
    elif value and isinstance(value, list):
        _inline(mark, value, pen)
    else:
        pen.write(mark, "", format_constant(value))


def _block(value: Json, indent: str, depth: int, pen: _Pen) -> None:
    """Draws the members of an object or a list, each on lines of its own."""
    for number, piece in enumerate(_level(value, indent, pen)):
        if number:
            pen.tokens.append(("", "\n" + indent))
        _line(piece, depth, pen)


def _inline(mark: str, value: list[Json], pen: _Pen) -> None:
    """Draws a short list of constants on the same line."""
    mark += "["
    for item in value:
        if isinstance(item, str):
            drawn = json.dumps(item, ensure_ascii=False) if _NOT_FLOW.search(item) else _quoted(item)
            pen.left -= len(drawn)
            mark += drawn
        else:
            pen.write(mark, "n", format_constant(item))
            mark = ""
        mark += ", "
    pen.tokens.append(("", mark.removesuffix(", ") + "]"))


def _lines(text: str, indent: str, pen: _Pen, before: str = "") -> None:
    """Draws the lines of a text, as far as characters are left. Indentation counts, since it is drawn too."""
    text = line_ends(text)
    limit = max(pen.left, 0)
    head = text[:limit]
    while indent and head and len(head) + head.count("\n") * len(indent) > limit:
        head = head[: min(len(head) - 1, limit * len(head) // (len(head) + head.count("\n") * len(indent)))]
    drawn = head.replace("\n", "\n" + indent)
    pen.left -= len(drawn)
    pen.tokens.append(("", before + drawn))
    if len(head) < len(text):
        pen.tokens.append(("c", f"\n{indent}{format_hidden(count_characters(text, len(head)), 'characters')}"))


def _quoted(text: str) -> str:
    is_plain = text and not _NOT_PLAIN.match(text) and not text[-1].isspace()
    if is_plain and _MARK.search(text):  # most strings have none, and the search for single characters is the quickest
        is_plain = not _NOT_PLAIN_INSIDE.search(text)
    return text if is_plain else json.dumps(text, ensure_ascii=False)


_quoted_key = lru_cache(maxsize=512)(_quoted)  # the same keys come again and again


def format_constant(value: Json) -> str:
    """Returns a value that is no string, on one line; of an object or a list only its size."""
    if type(value) is int and -_MANY < value < _MANY:
        return str(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict):
        return f"{{{format_count(len(value), 'keys')}}}" if value else "{}"
    if isinstance(value, list):
        return f"[{format_count(len(value), 'items')}]" if value else "[]"
    if isinstance(value, int) and value.bit_length() > 14_000:  # Python refuses to write these as decimals
        return f"(an integer of {value.bit_length():,} bits)"
    return str(value) if isinstance(value, (int, float)) else f"({type(value).__name__})"


def format_hidden(count: int, what: str) -> str:
    """Returns the remark that stands in the place of hidden things: ``… 3 more keys``."""
    return f"… {count:,} more {what.removesuffix('s') if count == 1 else what}"


def format_count(count: int, what: str) -> str:
    """Returns a number of things: ``3 keys``, ``1 key``."""
    return f"{count:,} {what.removesuffix('s') if count == 1 else what}"
