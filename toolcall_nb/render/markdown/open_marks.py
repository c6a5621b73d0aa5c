"""The marks that are open in a paragraph that grows: `live_marks` finds them, `may_close` what may close them.

The inline parser leaves a mark as text if nothing closes it. Later text may: an asterisk may begin emphasis, a backtick
code, a bracket a link. These functions may name a mark too many, which costs a parse, but none too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["closes", "live_marks", "may_close"]

# Characters that the inline parser left as text and that later text may give a meaning. A delimiter run before a
# blank, or an underscore behind a word, opens nothing; an entity or autolink holds no blank (CommonMark, section 6).
_LIVE = re.compile(r"[\[`]|\*(?![* \n])|~(?![~ \n])|(?<![^\W_])_(?![_ \n])|\$\$")
_MARK = re.compile(r"[\[`$*~_]")
_DOLLAR = re.compile(r"(\$)|\\.", re.DOTALL)
_OPENING_DOLLAR = re.compile(r"(?<![^\W_])\$(?!\s)")
# An address that may go on: not one with a blank behind it, and then what begins no title.
_OPEN_ADDRESS = re.compile(r"""\]\((?![ \n]*+[^\s\0"'<(]++[ \n]++[^ \n"'(\0])""")
# By mark, what may close it: in text that the parser left behind it, or anywhere behind it.
_CLOSES_IN_TEXT = {
    "*": re.compile(r"(?<![ \n*])\*"),
    "_": re.compile(r"(?<![ \n_])_(?:_|(?![^\W_]))"),
    "~": re.compile(r"(?<![ \n~])~"),
}
_CLOSES = {"`": re.compile("`"), "$": re.compile(r"\$"), "\\": re.compile(r"\\[)\]]"), "(": re.compile(r"\)")}
_BRACKET = re.compile(r"[\[\]]")
_OPENS_A_FORMULA = re.compile(r"\\[(\[]")
# Brackets that a link can no longer have: no address or label follows them, or a whole label without a definition.
_PLAIN_BRACKETS = re.compile(r"\[([^\[\]]*)\](?=[^(\[]|\[[^\[\]]*\])")
# Written as what is not in them: `re` compiles a range up to the last code point a hundred times as slowly.
_WORD = r"[^\x00-/:-@\[-`{-\x7f]"
_PUNCTUATION = r"[^\x00- 0-9A-Za-z\x7f{but}]"


def _both_ways(mark: str) -> re.Pattern[str]:
    """Finds a run of marks that may close as well as open: letters or digits, or else punctuation, on both sides."""
    before, after = _PUNCTUATION.format(but=mark), _PUNCTUATION.format(but="")
    run = rf"\{mark}++"
    return re.compile(f"(?<={_WORD}){run}(?={_WORD})|(?<={before}){run}(?={after})")


_OPENS_AND_CLOSES = {mark: _both_ways(mark) for mark in "*_~"}


def live_marks(texts: Sequence[str], content: str, behind: str = "") -> set[str]:
    """Returns the marks in ``content`` that text after what is ``behind`` it may close.

    ``texts`` are what the parser left as text in the content.
    """
    shown = "\0".join(texts)
    live = set(_LIVE.findall(_PLAIN_BRACKETS.sub(r"(\1)", shown))) if _MARK.search(shown) else set()
    if "$$" in live:
        live = {*live, "$"} - {"$$"}
    elif "$" in shown and -1 < _live_dollar(content + behind) < len(content):
        live.add("$")
    if "\\" in content and _OPENS_A_FORMULA.search(content):  # what is an escape now
        live.add("\\")
    if "[" in live and _OPEN_ADDRESS.search(shown):
        live.add("(")
    return live


def _live_dollar(content: str) -> int:
    """Returns where the first dollar is that a later one may close; -1 if there is none.

    A formula ends at the next dollar or nowhere; only the character behind that is still to be seen.
    """
    dollars = [found.start(1) for found in _DOLLAR.finditer(content) if found[1]]
    last = dollars[-2:] if content.endswith("$") else dollars[-1:]
    return next((at for at in last if _OPENING_DOLLAR.match(content, at)), -1)


def closes(content: str, marks: Iterable[str]) -> bool:
    """Whether ``content`` may close one of the marks before it, whatever the parser leaves as text in it."""
    return any(mark in _CLOSES and _CLOSES[mark].search(content) for mark in marks)


def may_close(texts: Sequence[str], content: str, marks: Iterable[str]) -> bool:
    """Whether ``content``, which was parsed by itself and follows a blank, may close a mark that `closes` leaves open.

    ``texts`` are what the parser left as text in it. An asterisk that begins emphasis in it may end another one, if it
    can do both.
    """
    for mark in marks:
        if mark == "[" and _has_closing_bracket("".join(texts)):
            return True
        if mark in _CLOSES_IN_TEXT and any(map(_CLOSES_IN_TEXT[mark].search, texts)):
            return True
        if mark in _OPENS_AND_CLOSES and _OPENS_AND_CLOSES[mark].search(content):
            return True
    return False


def _has_closing_bracket(text: str) -> bool:
    """Whether a bracket closes one that is not in ``text``."""
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket == "[" else -1
        if depth < 0:
            return True
    return False
