"""Text on its way into HTML or a terminal: the one place where it is made harmless.

Model text, tool names, arguments, results, errors and addresses are hostile. `escape` is the only way for them
into HTML (Markdown apart, which `toolcall_nb.markdown.flavor` renders with HTML off), `visible` the only way
into a terminal.
"""

from __future__ import annotations

import re

from toolcall_nb.unicode import well_formed

__all__ = ["element", "escape", "image_source", "link_target", "visible", "visible_html", "without_ansi"]

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_LINK = re.compile(r"(?:https?|mailto):[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif|bmp);base64,[A-Za-z0-9+/=\s]+", re.IGNORECASE)


def visible(text: str) -> str:
    """The text with line ends as LF and each control character but tab and LF as its picture (ESC as ␛).

    HTML drops NUL and reads CR as LF, and a terminal obeys ESC, so none of them may pass. Characters that turn the
    order of a line around, or that have no width, stand as ``<U+202E>``: a file name must read as what it is.
    """
    return _CONTROL.sub(_picture, _lines(text))


def visible_html(html: str) -> str:
    """`visible`, of HTML: what stands for a character is text in it, and no tag."""
    return _CONTROL.sub(lambda match: escape(match[0]), _lines(html))


def _lines(text: str) -> str:
    text = well_formed(text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code > 0xFF:
        return f"<U+{code:04X}>"
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def without_ansi(text: str) -> str:
    """The text without the colour and cursor sequences that programs write for terminals."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def escape(text: str) -> str:
    """The text as HTML text or as the value of a quoted attribute."""
    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def element(tag: str, classes: str, text: str) -> str:
    """One element with nothing in it but text."""
    return f'<{tag} class="{classes}">{escape(text)}</{tag}>'


def link_target(url: str) -> str | None:
    """The address, escaped, if a link may lead there: the web and mail, nothing that runs."""
    return escape(url) if _LINK.fullmatch(url) else None


def image_source(url: str) -> str | None:
    """The address, escaped, if it is a picture that asks nobody: raster data, never SVG and never a server."""
    return escape(url) if _IMAGE.fullmatch(url) else None
