"""Highlighted code: pygments' tokens as a few classes, no colour in the text.

The classes are pygments' own short names behind ``tc-h-`` (``tc-h-k`` is a keyword), so that a style sheet made
for pygments maps onto them; ``CLASSES`` is the whole list that a style sheet has to know. What has none of these
is plain text.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from markdown_it.common.utils import escapeHtml

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

__all__ = ["CLASSES", "highlight"]

LONGEST = 50_000  # characters; longer code is shown plain

#: Short names of the kinds of token that are told apart: comment, keyword, string, number, function, class,
#: builtin, decorator, tag, attribute, operator word, and of a diff or a session: deleted, inserted, heading, prompt.
CLASSES = ("c", "k", "s", "m", "nf", "nc", "nb", "nd", "nt", "na", "ow", "gd", "gi", "gh", "gp")

_NAME = re.compile(r"[\w+#.-]{1,40}")


def highlight(code: str, language: str) -> str | None:
    """``code`` as escaped HTML with ``span`` elements, or None where it is to be shown plain. Never raises."""
    return None if len(code) > LONGEST else _highlighted(code, language)


@lru_cache(maxsize=128)
def _highlighted(code: str, language: str) -> str | None:
    """The HTML. Kept, since a block of code comes again while what follows it is still open."""
    try:
        lexer = _lexer(language)
        pieces = list(lexer.get_tokens(code)) if lexer else []
    # A lexer is some five hundred people's code run over hostile text: if one fails, the code is shown plain.
    except Exception:
        return None
    if "".join(text for _, text in pieces) != code:  # a lexer may normalise; the reader sees what was written
        return None
    runs = groupby(pieces, key=lambda piece: _class(piece[0]))
    return "".join(_span(name, "".join(text for _, text in run)) for name, run in runs)


@cache
def _aliases() -> frozenset[str]:
    """Names of pygments' own lexers. Those of installed plugins would be searched for at every unknown name."""
    from pygments.lexers import get_all_lexers

    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)


def _lexer(language: str) -> Lexer | None:
    name = language.lower()
    if not _NAME.fullmatch(name) or name not in _aliases():
        return None
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


@cache
def _kinds() -> dict[_TokenType, str]:
    from pygments.token import STANDARD_TYPES

    return {kind: name for kind, name in STANDARD_TYPES.items() if name in CLASSES}


@cache
def _class(kind: _TokenType) -> str:
    """The class of the nearest kind that has one: a docstring is a string."""
    kinds = _kinds()
    return next((kinds[part] for part in reversed(kind.split()) if part in kinds), "")


def _span(name: str, text: str) -> str:
    return f'<span class="tc-h-{name}">{escapeHtml(text)}</span>' if name else escapeHtml(text)
