r"""The marks that are open in a paragraph that grows: `live_marks` finds them, `may_close` what may close them.

The inline parser leaves a mark as text if nothing closes it. Later text may: an asterisk may begin emphasis, a backtick
code, a bracket a link. A mark is a string: ``*``, ``_``, ``~~``, ``[``, ``(`` before the address of a link, ``$``,
``\(`` and ``\[`` before a formula, and a run of backticks, which only a run of the same length closes. These functions
may name a mark too many, which costs a parse, but none too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# The characters beside a run of `*`, `_` or `~` decide whether it opens or closes (CommonMark, section 6.2). Both sets
# are sure, and leave out what is not ASCII.
_WORD = "[0-9A-Za-z]"
_SIGN = r"[!-/:-@\[-`{-~]"

# What may open something, of what the parser left as text. A run before a blank opens nothing, nor does one between a
# word and a sign, nor underscores behind a word. Each alternative begins with its mark, and looks behind it then, so
# that `re` skips all other characters.
_LIVE = re.compile(
    rf"``*+|\[|\$\$|\*(?<!{_WORD}\*)(?<!\*\*)\**+(?![ \n])|\*(?<={_WORD}\*)\**+(?![ \n]|{_SIGN})"
    rf"|~~(?<!{_WORD}~~)(?<!~~~)~*+(?![ \n])|~~(?<={_WORD}~~)~*+(?![ \n]|{_SIGN})|_(?<!\w_)_*+(?![ \n])"
)
_MARK = re.compile(r"[\[`$*~_]")
# A formula ends at the next of its delimiters or nowhere (see `formulas.py`), so only the last one may be open.
_DOLLAR = re.compile(r"(\$)|\\.", re.DOTALL)
_OPENING_DOLLAR = re.compile(r"(?<![^\W_])\$(?!\s)|\$\Z")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# An address that may go on, behind a label that may be a link already: not one with a blank behind it, and then what
# begins no title.
_OPEN_ADDRESS = re.compile(r"""[\]\0]\((?![ \n]*+[^\s\0"'<(]++[ \n]++[^ \n"'(\0])""")
# Brackets that a link can no longer have: no address or label follows them, or a whole label without a definition.
_PLAIN_BRACKETS = re.compile(r"\[([^\[\]]*)\](?=[^(\[]|\[[^\[\]]*\])")

_BACKTICKS = re.compile("`++")
_BRACKET = re.compile(r"[\[\]]")
_CLOSING = {"$": "$", "(": ")"}
_PAIRS = {"\\(": "()", "\\[": "[]"}
# Written as what is not in them: `re` compiles a range up to the last code point a hundred times as slowly.
_ANY_WORD = r"[^\x00-/:-@\[-`{-\x7f]"
_ANY_SIGN = r"[^\x00- 0-9A-Za-z\x7f]"


def _closing(mark: str) -> re.Pattern[str]:
    """Finds a run that may close: not behind a blank, nor between a sign and a word."""
    run, start = f"{re.escape(mark)}++", rf"(?<!\{mark[0]})"
    return re.compile(rf"(?<![ \n])(?<!{_SIGN}){run}|(?<={_SIGN}){start}{run}(?!{_WORD})")


def _both_ways(mark: str) -> re.Pattern[str]:
    """Finds a run that may close as well as open: signs on both sides, or else letters or digits."""
    run, start = f"{re.escape(mark)}++", rf"(?<!\{mark[0]})"
    between_signs = f"(?<={_ANY_SIGN}){start}{run}(?={_ANY_SIGN})"
    return re.compile(between_signs if mark == "_" else f"{between_signs}|(?<={_ANY_WORD}){run}(?={_ANY_WORD})")


# By mark, what may close it in text that the parser left behind it.
_CLOSES_IN_TEXT = {"*": _closing("*"), "_": re.compile(r"(?<![ \n_])_++(?![^\W_])"), "~~": _closing("~~")}
_OPENS_AND_CLOSES = {mark: _both_ways(mark) for mark in ("*", "_", "~~")}


def live_marks(texts: Sequence[str], content: str, behind: str = "") -> set[str]:
    """Returns the marks in ``content`` that text after what is ``behind`` it may close.

    ``texts`` are what the parser left as text in the content.
    """
    plain_text = "\0".join(texts)
    live: set[str] = set()
    if _MARK.search(plain_text):
        for run in _LIVE.findall(_PLAIN_BRACKETS.sub(r"(\1)", plain_text)):
            live.add(run if run[0] == "`" else "~~" if run[0] == "~" else run[0])
    if "$" in plain_text and "$" not in live and -1 < _live_dollar(content + behind) < len(content):
        live.add("$")
    if "\\" in content:
        live.update(mark for mark in _PAIRS if -1 < _live_escape(mark, content + behind) < len(content))
    if ("[" in live or "\0(" in plain_text) and _OPEN_ADDRESS.search(plain_text):
        live.add("(")
    return live


def _live_dollar(content: str) -> int:
    """Returns where a dollar is that a later one may close; -1 if there is none."""
    dollars = [match.start(1) for match in _DOLLAR.finditer(content) if match[1]]
    # What follows the closing dollar counts too.
    last = dollars[-2:] if content.endswith("$") else dollars[-1:]
    return next((at for at in last if _OPENING_DOLLAR.match(content, at)), -1)


def _live_escape(mark: str, content: str) -> int:
    """Returns where an opening delimiter is that a later one may close; -1 if there is none."""
    delimiters = _delimiters(mark, content)
    return delimiters[-1].start() if delimiters and delimiters[-1][0] == mark else -1


def _delimiters(mark: str, content: str) -> list[re.Match[str]]:
    """Returns the delimiters of that kind of formula in their order."""
    return [match for match in _ESCAPE.finditer(content) if match[1] in _PAIRS[mark]]


def closes(content: str, marks: Iterable[str]) -> set[str]:
    """Returns which of the marks before it ``content`` may close, whatever the parser leaves as text in it."""
    runs = _BACKTICKS.findall(content)
    closed: set[str] = set()
    for mark in marks:
        if mark in _PAIRS:
            delimiters = _delimiters(mark, content)
            is_closed = bool(delimiters) and delimiters[0][0] != mark
        else:
            is_closed = mark in runs or (mark in _CLOSING and _CLOSING[mark] in content)
        if is_closed:
            closed.add(mark)
    return closed


def may_close(texts: Sequence[str], content: str, marks: Iterable[str]) -> set[str]:
    """Returns which marks ``content``, which was parsed by itself and follows a blank, may close besides `closes`.

    ``texts`` are what the parser left as text in it. An asterisk that begins emphasis in it may end another one, if it
    can do both.
    """
    return {mark for mark in marks if _closes_as_text(mark, texts, content)}


def _closes_as_text(mark: str, texts: Sequence[str], content: str) -> bool:
    if mark == "[":
        return _has_closing_bracket("".join(texts))
    return mark in _CLOSES_IN_TEXT and (
        any(map(_CLOSES_IN_TEXT[mark].search, texts)) or _OPENS_AND_CLOSES[mark].search(content) is not None
    )


def _has_closing_bracket(text: str) -> bool:
    """Whether a bracket closes one that is not in ``text``."""
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket == "[" else -1
        if depth < 0:
            return True
    return False
