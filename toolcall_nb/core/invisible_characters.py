"""Escapes characters that cannot be seen: `escape_invisible`.

It is applied to every name, argument and result, in HTML, plain text and the terminal. A character that cannot be seen
is shown as its code point, ``<U+200B>``; a run of the same one as ``<U+200B x40>``. In text that looks like such an
escape, the ``<`` is escaped (``<U+003C>U+200B>``), so two different texts never look the same.

These are escaped:

- the categories Cc, Cf, Cs, Co, Cn, Zl, Zp and Zs but for space, tab and line feed: what `str.isprintable` refuses.
  Unassigned code points of the emoji and Han blocks are shown: newer systems know them, and others draw a box.
- Default_Ignorable_Code_Point (DerivedCoreProperties.txt, Unicode 17.0), reserved code points included
- letters, marks and symbols that are blank, or that only change how others are drawn
- a combining mark without a base, and the fifth and later ones of a stack: they are drawn over their neighbours

The exception is an emoji sequence (UTS #51): U+FE0F after one emoji, U+200D between two, and a keycap. These
characters change how a visible emoji is drawn; a second one in the same place is escaped. Tags are always escaped,
because a flag made of tags can contain any text. Prose is not escaped by this module.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby

_IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_BLANK = (
    "\u2800"  # Braille pattern blank
    "\ufffc"  # object replacement character
    "\u2d7f"  # Tifinagh consonant joiner
    "\U0001107f"  # Brahmi number joiner
    "\U00013440-\U00013446\U00013455"  # Egyptian hieroglyph format marks and a blank modifier
    "\U00016fe4"  # Khitan small script filler
    "\U0001d159"  # musical symbol null notehead
)
_EMOJI = (  # Emoji=Yes beyond ASCII (emoji-data.txt, Unicode 17.0); of the emoji blocks all
    "\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u24c2"
    "\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2604\u260e\u2611\u2614\u2615\u2618\u261d\u2620\u2622\u2623\u2626"
    "\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u2648-\u2653\u265f\u2660\u2663\u2665\u2666\u2668\u267b\u267e\u267f"
    "\u2692-\u2697\u2699\u269b\u269c\u26a0\u26a1\u26a7\u26aa\u26ab\u26b0\u26b1\u26bd\u26be\u26c4\u26c5\u26c8\u26ce"
    "\u26cf\u26d1\u26d3\u26d4\u26e9\u26ea\u26f0-\u26f5\u26f7-\u26fa\u26fd\u2702\u2705\u2708-\u270d\u270f\u2712\u2714"
    "\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797\u27a1"
    "\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_SCANNED = 0x20000
"""Beyond this are Han characters, and from U+E0000 on tags, variation selectors and private use."""
_STACK = 4
"""The number of marks on one base that are shown: Hebrew with its accents and Vietnamese need no more."""

_EMOJI_STYLE, _JOINER, _KEYCAP = "\ufe0f", "\u200d", "\u20e3"
_IGNORABLE_RUN = re.compile(f"[{_IGNORABLE}{_BLANK}]+")
_IS_IGNORABLE = _IGNORABLE_RUN.match
_MARKS = frozenset({"Mn", "Me"})
_IS_EMOJI = re.compile(f"[{_EMOJI}]").match
_IS_NO_BASE = re.compile(r"[\s!-/:-@\[-`{-~]").match
_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LOOKS_WRITTEN_OUT = re.compile(r"<(?=U\+[0-9A-F]{4,6}(?: x[\d,]+)?>)")


def escape_invisible(text: str) -> str:
    """Escapes invisible characters, lone surrogates too: the halves of a pair must be joined before."""
    if text.isascii() and "<U+" not in text and (text.isprintable() or not _ASCII_CONTROL.search(text)):  # most texts
        return text
    if "<U+" in text:
        text = _LOOKS_WRITTEN_OUT.sub(_named("<"), text)
    return _replaced(text, _named)


def escape_invisible_markup(markup: str, write: Callable[[str], str] = str) -> str:
    """Escapes invisible characters of HTML or Markdown, except spaces. ``write`` makes markup of an escape."""
    return _replaced(markup, lambda run: run if run[0] in _spaces() else write(_named(run)))


def escape_invisible_json(text: str) -> str:
    """Writes invisible characters of JSON text as JSON's own escapes, ``\\u200b``, so that its value stays the same."""

    def write(run: str) -> str:
        units = run.encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))

    return _replaced(text, write)


def has_invisible(text: str) -> bool:
    """Whether the text contains a character that is escaped because it cannot be seen."""
    return _replaced(text, _named) != text


def _replaced(text: str, write: Callable[[str], str]) -> str:
    """Replaces each run of one invisible character by what ``write`` returns for it."""
    if text.isascii() and not _ASCII_CONTROL.search(text):
        return text
    return _runs().sub(lambda match: "".join(_written(match, write)), text)


def _written(match: re.Match[str], write: Callable[[str], str]) -> Iterator[str]:
    """Yields the characters of a match: as they are if they only change how a visible one is drawn, else escaped."""
    start, end = match.span()
    text = match.string
    has_base = start > 0 and not _IS_NO_BASE(text, start - 1)
    marks = 0
    kept: list[bool] = []
    for index in range(start, end):
        if _is_of_emoji(text, index):
            has_base = True
            kept.append(True)
        elif unicodedata.category(text[index]) in _MARKS and not _IS_IGNORABLE(text[index]):
            marks += 1
            kept.append(has_base and marks <= _STACK)
        else:
            has_base = False
            kept.append(False)
    for (is_kept, _), run in groupby(zip(kept, match[0], strict=True)):
        characters = "".join(character for _, character in run)
        yield characters if is_kept else write(characters)


def _is_of_emoji(text: str, index: int) -> bool:
    """Whether the character is the style, joiner or keycap of a well-formed emoji sequence."""
    before = text[index - 1 : index]
    match text[index]:
        case "\ufe0f":
            is_key = before in "0123456789#*" and text[index + 1 : index + 2] == _KEYCAP
            return bool(before) and (is_key or bool(_IS_EMOJI(before)))
        case "\u200d":
            base = text[index - 2 : index - 1] if before == _EMOJI_STYLE else before
            return bool(_IS_EMOJI(base) and _IS_EMOJI(text, index + 1))
        case _:
            return False


@cache
def _runs() -> re.Pattern[str]:
    """Returns a pattern for runs of invisible characters and combining marks."""
    # The first run with a character beyond ASCII waits for this, so no call is made for each character.
    scanned = array("I", range(_SCANNED)).tobytes().decode("utf-32", "surrogatepass")
    kinds = zip(map(str.isprintable, scanned), map(unicodedata.category, scanned), strict=True)
    flags = "".join([" " if is_seen and kind not in _MARKS else "x" for is_seen, kind in kinds])
    for run in _IGNORABLE_RUN.finditer(scanned):
        flags = flags[: run.start()] + "x" * len(run[0]) + flags[run.end() :]
    for start, end in (ord("\t"), ord("\n") + 1), (0x1F000, 0x1FB00):  # and the emoji blocks
        flags = flags[:start] + " " * (end - start) + flags[end:]
    ranges = [(run.start(), run.end() - 1) for run in re.finditer("x+", flags)]
    near = "".join([f"\\u{start:04x}-\\u{end:04x}" for start, end in ranges if end < 0x10000])
    far = "".join([f"\\U{start:08x}-\\U{end:08x}" for start, end in ranges if end >= 0x10000])
    # Python looks up characters of the first plane in a map, and goes through the hundreds of ranges of the others.
    return re.compile(rf"(?:[{near}]++|(?=[\U00010000-\U0010ffff])[{far}\U000e0000-\U0010ffff]++)++")


@cache
def _spaces() -> frozenset[str]:
    return frozenset("\xa0\u1680\u202f\u205f\u3000").union(map(chr, range(0x2000, 0x200B)))


def _named(run: str) -> str:
    code = f"U+{ord(run[0]):04X}"
    return f"<{code}>" if len(run) == 1 else f"<{code} x{len(run):,}>"
