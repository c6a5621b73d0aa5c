"""The HTML of a tool's result, reduced by `sanitise` to what can only be read.

nh3 parses and balances it (ammonia and html5ever, a browser's parser). This module has the lists of what may stay,
and the words for what was left out. Nothing that runs, loads, styles or names anything stays, so that the result can
stand in the middle of a page that is not its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from toolcall_nb.core.escaping import image_source, link_target, visible_html

MAX_HTML = 200_000
"""The most characters of one piece of HTML that are read."""
_GROWN = 4 * MAX_HTML

_TAGS = frozenset(
    (
        *("h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "blockquote", "pre", "hr", "br", "wbr"),
        *("ul", "ol", "li", "dl", "dt", "dd", "figure", "figcaption", "img"),
        *("table", "caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "th", "td"),
        *("a", "abbr", "b", "cite", "code", "del", "dfn", "em", "i", "ins", "kbd", "mark", "q", "s", "samp", "small"),
        *("span", "strong", "sub", "sup", "tt", "u", "var"),
    )
)
_ATTRIBUTES = {
    "a": {"href"},
    "img": {"src", "alt"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
}
_GONE = frozenset(
    (
        *("script", "noscript", "style", "template", "title", "math", "svg", "canvas", "map"),
        *("iframe", "noframes", "object", "applet", "embed", "noembed", "audio", "video"),
        *("select", "datalist", "textarea", "xmp"),
    )
)
"""Tags that are removed with their content. The content of other tags stays."""

_LEFT_OUT: Mapping[str, re.Pattern[str]] = {
    "scripts": re.compile(r"<script\b", re.IGNORECASE),
    "styles": re.compile(
        r"<style\b(?![^>]{0,100}\bscoped)", re.IGNORECASE
    ),  # pandas puts a scoped one before each table
    "embedded pages": re.compile(r"<(?:i?frame|object|embed|applet)\b", re.IGNORECASE),
    "controls": re.compile(r"<(?:form|input|button|select|textarea)\b", re.IGNORECASE),
    "drawings": re.compile(r"<(?:svg|canvas|math)\b", re.IGNORECASE),
    "sound or video": re.compile(r"<(?:audio|video)\b", re.IGNORECASE),
}
# A formatting element that is not closed is repeated in each block that follows, up to three times if the attributes
# are the same. With attributes that differ, a few thousand characters become millions of elements.
_FORMATTING = re.compile(
    r"<(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/])[^>]*(?:>|\Z)", re.IGNORECASE
)
_NUMBER = re.compile(r"\d{1,3}")
_SCOPE = re.compile(r"col|row|colgroup|rowgroup")
_OUTWARD = 'target="_blank" rel="noopener noreferrer nofollow"'
_NO_PICTURE = re.compile(r'<img(?: alt="([^"]*)")?>')
_NAMELESS = re.compile(r"<img (?![^>]*\balt=)")
_MARKUP = re.compile(r"<(?!img)[^>]*>")


class _Sanitised(NamedTuple):
    """``html`` is balanced, and empty if it has nothing to read; ``left_out`` names what was removed."""

    html: str
    left_out: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def sanitise(html: str) -> _Sanitised:
    """Returns the HTML without what is not on the lists; of more than `MAX_HTML` characters only the beginning."""
    import nh3

    left_out = [words for words, pattern in _LEFT_OUT.items() if pattern.search(html)]
    clean = nh3.clean(
        _FORMATTING.sub(r"<\1>", visible_html(_beginning(html))),
        tags=set(_TAGS),
        clean_content_tags=set(_GONE),
        attributes=_ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel=None,
    )
    if len(clean) > _GROWN:
        return _Sanitised("", ("HTML that grows without end",))
    clean = visible_html(clean)  # again, since ``&#x202e;`` has become the character
    clean, pictures = _NO_PICTURE.subn(lambda match: f"<span>{match[1] or ''}</span>", clean)
    if pictures:
        left_out.append("pictures from elsewhere")
    clean = _NAMELESS.sub('<img alt="Picture" ', clean).replace("<a href=", f"<a {_OUTWARD} href=")
    return _Sanitised(clean if _MARKUP.sub("", clean).strip() else "", tuple(left_out))


def _beginning(html: str) -> str:
    """Returns as much as is read, cut before a tag."""
    if len(html) <= MAX_HTML:
        return html
    return html[: html.rfind("<", 0, MAX_HTML)]


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Returns the value if it is harmless; nh3 escapes it."""
    if name == "href":
        return value if link_target(value) is not None else None
    if name == "src":
        return value if image_source(value) is not None else None
    if name == "alt":
        return value
    return value if (_SCOPE if name == "scope" else _NUMBER).fullmatch(value) else None
