"""Escaping: the one place where text is made harmless for HTML and terminals.

Model text, tool names, arguments, results, errors and addresses are hostile. They get into HTML only through `escape`,
except Markdown, which goes through `visible_controls`, and which `toolcall_nb.incremental_markdown.flavor` renders
with HTML off. For plain text and terminals, prose goes through `visible`, what stands in one line through
`visible_line`, and arguments and results through `toolcall_nb.core.invisible_characters`, as in HTML.
"""

from __future__ import annotations

import re

from toolcall_nb.core.invisible_characters import escape_invisible, escape_invisible_markup
from toolcall_nb.core.text import join_surrogates, well_formed

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_CONTROL_BUT_LINE_ENDS = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_PLAIN = re.compile(r"[A-Za-z0-9_ ,.:;()/-]*")
"""Text that is the same as HTML."""
_SPECIAL = re.compile("[&<>\"']")
_WRITTEN_OUT = re.compile(r"&lt;U\+[0-9A-F]{4,6}(?: x[\d,]+)?&gt;")
_LINK = re.compile(r"(?:https?|mailto):[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif|bmp);base64,[A-Za-z0-9+/=\s]+", re.IGNORECASE)


def visible(text: str) -> str:
    """Returns prose with LF as line ends, and each control character but tab and LF as its picture (ESC as ␛).

    HTML drops NUL and reads CR as LF, and a terminal obeys ESC, so none of them may pass. Characters that reverse the
    order of a line, or that have no width, are written as ``<U+202E>``. Those that shape emoji and letters stay.
    """
    text = well_formed(text)
    return _CONTROL.sub(_picture, text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text)


def visible_controls(markdown: str) -> str:
    """Returns Markdown with each control character but tab, line ends and NUL, which its parser reads, as its picture.

    Each character stays one, so text may be passed in pieces, cut anywhere but within a surrogate pair.
    """
    return _CONTROL_BUT_LINE_ENDS.sub(_picture, well_formed(markdown))


def visible_line(text: str) -> str:
    """Returns a name, a path or a message in one line, with the characters that cannot be seen written out."""
    return " ".join(escape_invisible(line_ends(join_surrogates(text))).split())


def visible_html(html: str) -> str:
    """Returns HTML of a result with the characters that cannot be seen written out as text."""
    html = well_formed(html)
    return escape_invisible_markup(html.replace("\r\n", "\n").replace("\r", "\n") if "\r" in html else html, _entities)


def line_ends(text: str) -> str:
    """Returns the text with LF as the end of each line. A lone CR stays before its LF, to be written out."""
    return text.replace("\r\n", "\n").replace("\r", "\r\n") if "\r" in text else text


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code > 0xFF:
        return f"<U+{code:04X}>"
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def without_ansi(text: str) -> str:
    """Returns the text without the colour and cursor sequences that programs write for terminals."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def escape(text: str) -> str:
    """Returns a name, argument or result as HTML text, or as the value of a quoted attribute that a person reads."""
    return _entities(escape_invisible(join_surrogates(text).replace("\r\n", "\n")))


def escape_marked(escaped: str) -> str:
    """Returns text of `escape_invisible` as HTML, with the characters that it has written out in the class ``u``."""
    html = _entities(escaped)
    return _WRITTEN_OUT.sub(r'<span class="u">\g<0></span>', html) if "&lt;U+" in html else html


def element(tag: str, classes: str, text: str) -> str:
    """Returns an element that holds only a name, argument or result."""
    if _PLAIN.fullmatch(text):
        return f'<{tag} class="{classes}">{text}</{tag}>'
    return f'<{tag} class="{classes}">{escape_marked(escape_invisible(join_surrogates(text)))}</{tag}>'


def attribute(value: str) -> str:
    """Returns an address as the value of a quoted attribute, unchanged, since a program reads it."""
    return _entities(visible(value))


def is_html(text: str) -> bool:
    """Whether the text is HTML as it is, since nothing in it has to be escaped."""
    return not _SPECIAL.search(text)


def _entities(text: str) -> str:
    if is_html(text):  # most texts
        return text
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def link_target(url: str) -> str | None:
    """Returns the address, escaped, if a link may lead there: to the web or mail, not to anything that runs."""
    return attribute(url) if _LINK.fullmatch(url) else None


def image_source(url: str) -> str | None:
    """Returns the address, escaped, if it is raster data: no server is asked, and SVG is refused."""
    return attribute(url) if _IMAGE.fullmatch(url) else None
