"""The display of a tool's result: `display_form` makes the richest form of a MIME bundle that can stand in a card.

A picture is an ``<img>`` with its data in the address. So is a drawing in SVG, which neither runs nor loads anything
there. HTML is sanitised; Markdown and LaTeX are rendered as in messages. A form that is not of the type that it
claims, or has nothing to show, is passed over for the next one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from html import unescape
from typing import NamedTuple

from toolcall_nb.core.contents import PICTURE_TYPES, picture_type
from toolcall_nb.core.escaping import element, escape
from toolcall_nb.core.events import Json, Missing
from toolcall_nb.core.invisible_characters import escape_invisible_markup
from toolcall_nb.render.html_output.sanitising import MAX_HTML, sanitise
from toolcall_nb.render.value_lines import format_count, format_hidden

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


class DisplayForm(NamedTuple):
    """One form of a display: its HTML and MIME type, a note about it, and the text in the bundle that it was made of.

    ``words`` is its text alone, empty for a picture. ``plain`` is the bundle's plain text.
    """

    html: str
    kind: str
    note: str = ""
    source: str = ""
    words: str = ""
    plain: str = ""


def display_form(bundle: Mapping[str, Json], output: Json | Missing) -> DisplayForm | None:
    """Returns the richest form in the bundle, only a note on what is left out, or None. Never raises."""
    words = _words(bundle, output)
    left_out = ""
    for kind, draw in _FORMS:
        text = _text(bundle.get(kind))
        form = draw(kind, text, words) if text else None
        if form is not None and form.html:
            return form._replace(
                source=text,
                plain=_text(bundle.get("text/plain")),
                note=", ".join(note for note in (form.note, left_out) if note),
            )
        left_out = left_out or (form.note if form is not None else "")
    return DisplayForm("", "", left_out) if left_out else None


def adds_to_display(output: Json, form: DisplayForm) -> bool:
    """Whether the output adds to its display: not if it is empty, an object's ``repr``, or its source."""
    if not isinstance(output, str):
        return output is not None
    return bool(output.strip()) and not _REPR.fullmatch(output) and output.strip() != form.source.strip()


def _text(value: Json) -> str:
    """Returns a form's text, which notebooks also store as a list of lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return value if isinstance(value, str) else ""


def _words(bundle: Mapping[str, Json], output: Json | Missing) -> str:
    text = _text(bundle.get("text/plain")) or (output if isinstance(output, str) else "")
    flat = " ".join(text[: 2 * _ALT].split())
    return flat if len(flat) <= _ALT else flat[: _ALT - 1] + "…"


# The forms ------------------------------------------------------------------------------------------------------


def _raster(kind: str, text: str, words: str) -> DisplayForm | None:
    data = "".join(text.split())
    if len(data) > _PICTURE:
        return DisplayForm("", kind, f"a picture of {format_count(len(data), 'characters')} is too large to be shown")
    if not _BASE64.fullmatch(data) or len(data) % 4:
        return None
    if picture_type(base64.b64decode(data[:16])) != kind:
        return None
    return _picture(kind, data, "" if data.startswith(words.removesuffix("…")) else words)  # bytes have no words


def _drawing(kind: str, text: str, words: str) -> DisplayForm | None:
    start = _SVG.search(text)
    if start is None:
        return None
    if len(text) > _PICTURE:
        return DisplayForm("", kind, f"a drawing of {format_count(len(text), 'characters')} is too large to be shown")
    if "xmlns=" not in start[1]:  # without it, no picture: in a page it goes without saying
        text = f"{text[: start.start(1)]}{_NAMESPACE}{text[start.start(1) :]}"
    return _picture(kind, base64.b64encode(text.encode("utf-8", "replace")).decode(), words)


def _picture(kind: str, data: str, words: str) -> DisplayForm:
    alt = escape(f"Picture, {kind}: {words}" if words else f"Picture, {kind}")
    return DisplayForm(f'<div class="tc-picture"><img src="data:{kind};base64,{data}" alt="{alt}"></div>', kind)


def _html(kind: str, text: str, _: str) -> DisplayForm:
    clean = sanitise(text)
    notes = [f"left out: {', '.join(clean.left_out)}"] if clean.left_out else []
    if len(text) > MAX_HTML and clean.html:
        notes.append(format_hidden(len(text) - MAX_HTML, "characters").removeprefix("… ") + " are not shown")
    html = f'<div class="tc-wide tc-html" tabindex="0">{clean.html}</div>' if clean.html else ""
    return DisplayForm(html, kind, "; ".join(notes), words=_plain(clean.html))


def _plain(clean: str) -> str:
    """Returns the words of sanitised HTML, line by line."""
    lines = unescape(_TAG.sub(" ", _LINE_END.sub("\n", _BLANK.sub(" ", clean)))).split("\n")
    return "\n".join(line for line in (" ".join(line.split()) for line in lines) if line)


def _markdown(kind: str, text: str, _: str) -> DisplayForm:
    from toolcall_nb.incremental_markdown.flavor import render_markdown

    note = element("p", "tc-note", format_hidden(len(text) - _TEXT, "characters")) if len(text) > _TEXT else ""
    return DisplayForm(
        f'<div class="tc-text">{render_markdown(escape_invisible_markup(text[:_TEXT]))}{note}</div>', kind, words=text
    )


def _latex(kind: str, text: str, words: str) -> DisplayForm:
    tex = _formula(text.strip()) if len(text) <= _TEXT else None
    return _markdown(kind, text if tex is None else f"$$\n{tex}\n$$", words)._replace(words=text)


def _formula(text: str) -> str | None:
    """Returns the formula without delimiters and blank lines; None if the text is not one formula."""
    for opening, closing in _DELIMITERS:
        inner = text.removeprefix(opening).removesuffix(closing)
        if len(inner) == len(text) - len(opening) - len(closing):
            is_one = not any(mark in inner for mark in ("$", "\\(", "\\["))
            return "\n".join(line for line in inner.split("\n") if line.strip()) if is_one and inner.strip() else None
    return None


_FORMS: tuple[tuple[str, Callable[[str, str, str], DisplayForm | None]], ...] = (
    ("image/svg+xml", _drawing),
    *((kind, _raster) for kind in PICTURE_TYPES),
    ("text/html", _html),
    ("text/markdown", _markdown),
    ("text/latex", _latex),
)
"""From the richest form to the plainest."""
