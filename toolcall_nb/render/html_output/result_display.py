"""The output as its own display shows it: of a MIME bundle the richest form that can stand in a card.

A picture is an ``<img>`` with its data in the address, also a drawing in SVG: there it neither runs nor loads
anything. HTML is sanitised, Markdown and LaTeX are rendered as in messages. What is not as its type says, or has
nothing to show, gives way to the next form.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from html import unescape
from typing import NamedTuple

from toolcall_nb.core.events import Json, Missing
from toolcall_nb.core.invisible_characters import written_out_markup
from toolcall_nb.render.escaping import element, escape
from toolcall_nb.render.html_output.sanitising import LONGEST, sanitised
from toolcall_nb.render.yaml_like import counted, more

__all__ = ["Shown", "says_more", "shown"]

_BEGINNINGS: Mapping[str, bytes] = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_PICTURE = 10_000_000  # characters of base64
_TEXT = 50_000  # characters of Markdown or LaTeX
_ALT = 200

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SVG = re.compile(r"<svg(?=[\s/>])([^>]*)")
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)"), ("", ""))
_LINE_END = re.compile(r"<br>|</(?:p|div|tr|li|h\d|pre|dt|dd|caption|blockquote|figcaption)>")
_TAG = re.compile(r"<[^>]*>")
_BLANK = re.compile(r"\s+")
_REPR = re.compile(r"\s*(?:<[^\n]*>|\w[\w.]*\([^\n]*\))\s*")


class Shown(NamedTuple):
    """One form of the output: its HTML, what there is to say of it, and the text of the bundle that it was made of.

    ``words`` is what it says where there are only words; empty for a picture. ``plain`` is the plain text beside it.
    """

    html: str
    kind: str
    note: str = ""
    source: str = ""
    words: str = ""
    plain: str = ""


def shown(bundle: Mapping[str, Json], output: Json | Missing) -> Shown | None:
    """The richest form in the bundle; without HTML where it has none but says why; else None. Never raises."""
    words = _words(bundle, output)
    left_out = ""
    for kind, draw in _FORMS:
        text = _text(bundle.get(kind))
        found = draw(kind, text, words) if text else None
        if found is not None and found.html:
            return found._replace(
                source=text,
                plain=_text(bundle.get("text/plain")),
                note=", ".join(note for note in (found.note, left_out) if note),
            )
        left_out = left_out or (found.note if found is not None else "")
    return Shown("", "", left_out) if left_out else None


def says_more(output: Json, form: Shown) -> bool:
    """Whether the output tells more than what is shown of it: not if it is empty, a mere name of it, or its source."""
    if not isinstance(output, str):
        return output is not None
    return bool(output.strip()) and not _REPR.fullmatch(output) and output.strip() != form.source.strip()


def _text(value: Json) -> str:
    """The form's text; notebooks also hold it as a list of lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return value if isinstance(value, str) else ""


def _words(bundle: Mapping[str, Json], output: Json | Missing) -> str:
    text = _text(bundle.get("text/plain")) or (output if isinstance(output, str) else "")
    flat = " ".join(text[: 2 * _ALT].split())
    return flat if len(flat) <= _ALT else flat[: _ALT - 1] + "…"


# The forms ------------------------------------------------------------------------------------------------------


def _raster(kind: str, text: str, words: str) -> Shown | None:
    data = "".join(text.split())
    if len(data) > _PICTURE:
        return Shown("", kind, f"a picture of {counted(len(data), 'characters')} is too large to be shown")
    if not _BASE64.fullmatch(data) or len(data) % 4:
        return None
    return _picture(kind, data, words) if base64.b64decode(data[:16]).startswith(_BEGINNINGS[kind]) else None


def _drawing(kind: str, text: str, words: str) -> Shown | None:
    start = _SVG.search(text)
    if start is None:
        return None
    if len(text) > _PICTURE:
        return Shown("", kind, f"a drawing of {counted(len(text), 'characters')} is too large to be shown")
    if "xmlns=" not in start[1]:  # without it, no picture: in a page it goes without saying
        text = f"{text[: start.start(1)]}{_NAMESPACE}{text[start.start(1) :]}"
    return _picture(kind, base64.b64encode(text.encode("utf-8", "replace")).decode(), words)


def _picture(kind: str, data: str, words: str) -> Shown:
    alt = escape(f"Picture, {kind}: {words}" if words else f"Picture, {kind}")
    return Shown(f'<div class="tc-picture"><img src="data:{kind};base64,{data}" alt="{alt}"></div>', kind)


def _html(kind: str, text: str, _: str) -> Shown:
    clean = sanitised(text)
    notes = [f"left out: {', '.join(clean.left_out)}"] if clean.left_out else []
    if len(text) > LONGEST and clean.html:
        notes.append(more(len(text) - LONGEST, "characters").removeprefix("… ") + " are not shown")
    html = f'<div class="tc-wide tc-html" tabindex="0">{clean.html}</div>' if clean.html else ""
    return Shown(html, kind, "; ".join(notes), words=_plain(clean.html))


def _plain(clean: str) -> str:
    """The words of HTML that was sanitised, line by line."""
    lines = unescape(_TAG.sub(" ", _LINE_END.sub("\n", _BLANK.sub(" ", clean)))).split("\n")
    return "\n".join(line for line in (" ".join(line.split()) for line in lines) if line)


def _markdown(kind: str, text: str, _: str) -> Shown:
    from toolcall_nb.render.markdown.flavor import render_markdown

    rest = element("p", "tc-note", more(len(text) - _TEXT, "characters")) if len(text) > _TEXT else ""
    return Shown(
        f'<div class="tc-text">{render_markdown(written_out_markup(text[:_TEXT]))}{rest}</div>', kind, words=text
    )


def _latex(kind: str, text: str, words: str) -> Shown:
    tex = _formula(text.strip()) if len(text) <= _TEXT else None
    return _markdown(kind, text if tex is None else f"$$\n{tex}\n$$", words)._replace(words=text)


def _formula(text: str) -> str | None:
    """The one formula that the text is, without delimiters and blank lines; None if it is text with formulas in it."""
    for opening, closing in _DELIMITERS:
        inner = text.removeprefix(opening).removesuffix(closing)
        if len(inner) == len(text) - len(opening) - len(closing):
            is_one = not any(mark in inner for mark in ("$", "\\(", "\\["))
            return "\n".join(line for line in inner.split("\n") if line.strip()) if is_one and inner.strip() else None
    return None


_FORMS: tuple[tuple[str, Callable[[str, str, str], Shown | None]], ...] = (
    ("image/svg+xml", _drawing),
    *((kind, _raster) for kind in _BEGINNINGS),
    ("text/html", _html),
    ("text/markdown", _markdown),
    ("text/latex", _latex),
)
"""From the richest form to the plainest."""
