"""Derives variants of a hostile text: spellings that a filter may miss, and contexts in which it may be hidden."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from html import escape
from urllib.parse import quote

__all__ = ["variants"]


def _swapped(text: str) -> str:
    return "".join(c.upper() if at % 2 else c.lower() for at, c in enumerate(text))


def _fenced(text: str) -> str:
    return f"```html\n{text}\n```"


def _quoted(text: str, mark: str = "> ") -> str:
    return mark + text.replace("\n", f"\n{' ' * len(mark) if mark != '> ' else mark}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


_SPELLINGS: tuple[Callable[[str], str], ...] = (
    str.upper,
    _swapped,
    lambda text: escape(text),
    lambda text: "".join(f"&#{ord(c)};" for c in text),
    lambda text: "".join(f"&#x{ord(c):07x}" for c in text),
    lambda text: quote(text, safe="", errors="replace"),
    lambda text: text.replace(":", "&colon;").replace("(", "&lpar;"),
    lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),  # full width
    lambda text: text.replace(" ", "/"),
    lambda text: text.replace(" ", "\x0c"),
    lambda text: text.replace("s", "s\0").replace("S", "S\0"),
    lambda text: text.replace("a", "a\n").replace("o", "o\t"),
    lambda text: text.replace("<", "<\u200b").replace(":", "\u00ad:"),
    lambda text: text.replace("'", "`").replace('"', "'"),
    lambda text: json.dumps(text),
    lambda text: text.replace("<", "\\<").replace("[", "\\["),
)
_BEGINNINGS = (
    '">',
    "'>",
    "-->",
    "]]>",
    "</textarea>",
    "</style></script>",
    "\\",
    "<",
    "<a href='",
    "`",
    "$",
    "\r\n\r\n",
)
_ROOMS: tuple[Callable[[str], str], ...] = (
    _fenced,
    _quoted,
    lambda text: _quoted(text, "- "),
    lambda text: _quoted(text, "1. "),
    lambda text: f"[{text}](https://example.org/)",
    lambda text: f"[x]({text})",
    lambda text: f"[x](<{_one_line(text)}>)",
    lambda text: f'[x](https://example.org/ "{text}")',
    lambda text: f"![{text}](data:image/gif;base64,AAAA)",
    lambda text: f"![x]({text})",
    lambda text: f"[x]\n\n[x]: {_one_line(text)} '{_one_line(text)}'",
    lambda text: f"<{_one_line(text)}>",
    lambda text: f"| {_one_line(text)} |\n| --- |\n| {_one_line(text)} |",
    lambda text: f"# {_one_line(text)}",
    lambda text: f"`{text}`",
    lambda text: f"${text}$",
    lambda text: f"$$\n\\text{{{text}}}\n$$",
    lambda text: f"> [!NOTE]{_one_line(text)}\n{_quoted(text)}",
    lambda text: f"<div>\n\n{text}\n\n</div>",
    lambda text: f"<table><tr><td title='{text}'>{text}</td></tr></table>",
    lambda text: f"<svg><style>{text}</style></svg>",
    lambda text: f"<math><mtext><table><mglyph><style>{text}",
    lambda text: json.dumps({"a": [text], text: 1}),
    lambda text: f"---\ntitle: {json.dumps(text)}\n---\n{text}",
    lambda text: f"\x1b[31m{text}\x1b[0m",
    lambda text: f"\x1b]8;;{text}\x07{text}\x1b]8;;\x07",
)


def variants(payload: str) -> Iterator[str]:
    """Yields the payload in other spellings, after closing markup, in Markdown and HTML, doubled and cut."""
    for change in (*_SPELLINGS, *_ROOMS):
        yield change(payload)
    for beginning in _BEGINNINGS:
        yield beginning + payload
    yield payload + payload
    yield payload[: len(payload) // 2]
    yield payload[len(payload) // 2 :]
    yield payload[:-1]
