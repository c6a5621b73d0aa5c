r"""Formulas in model text: ``$…$``, ``$$…$$``, ``\(…\)`` and ``\[…\]``, as MathML with the TeX beside it.

    <span class="tc-math"><math>…</math><code class="tc-tex">x^2</code></span>

The style sheet hides a ``tc-tex`` that follows a ``math``. Where a host drops ``math`` with its contents (the
sanitizer of JupyterLab does) or the style sheet, the TeX stays readable.

The rules are our own, since those of mdit-py-plugins 0.7 do not fit. Its dollar rule looks at the last character of
the text when it is at the first, so later text changes the meaning of earlier text. Its bracket rules (texmath) run
over blank lines, drop what follows the closing bracket, and are quadratic. Here a formula has no blank line, and each
rule looks no further than the next delimiter of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markdown_it.common.utils import escapeHtml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_LONGEST = 4_000  # characters of a formula; a longer one is shown as TeX
_DEEPEST = 60  # elements within elements; a formula that is nested deeper is shown as TeX

_DOLLARS = re.compile(r"\$\$((?:[^$\\]|\\.|\$(?!\$))++)\$\$", re.DOTALL)
_DOLLAR = re.compile(r"\$(?![\s$])((?:[^$\\]|\\.)++)(?<!\s)\$", re.DOTALL)
_PARENTHESES = re.compile(r"\\\(((?:[^\\]|\\[^()])++)\\\)", re.DOTALL)
_BRACKETS = re.compile(r"\\\[((?:[^\\]|\\[^\[\]])++)\\\]", re.DOTALL)

_WORD = re.compile(r"[A-Za-z]{2}")
# `\[` also escapes a bracket: without one of these, `\[x\]` is a bracketed word.
_TEX = re.compile(r"[\\^_={}]|\A\s")

# Macros can double themselves at every step.
_MACRO = re.compile(r"\\(?:def|(?:re)?newcommand|(?:re)?newenvironment|DeclareMathOperator)(?![a-zA-Z])")
# Environments that the converter does not know, and known ones that look the same without equation numbers.
_ENVIRONMENT = re.compile(r"(\\(?:begin|end)\s*\{)(aligned|align|split|gathered|gather\*?|dcases)\}")
_SAME_AS = {
    "aligned": "align*", "align": "align*", "split": "align*",
    "gathered": "matrix", "gather": "matrix", "gather*": "matrix", "dcases": "cases",
}  # fmt: skip
_EQUATION = re.compile(r"\\(?:begin|end)\s*\{equation\*?\}")
_ELEMENTS = re.compile(
    "math|menclose|mfrac|mi|mmultiscripts|mn|mo|mover|mpadded|mphantom|mprescripts|mroot|mrow|ms|mspace|msqrt|mstyle|"
    "msub|msubsup|msup|mtable|mtd|mtext|mtr|munder|munderover|none"
)
# How many children these have. With another number a browser shows an error.
_CHILDREN = {
    **dict.fromkeys(("mfrac", "mroot", "msub", "msup", "munder", "mover"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
_ATTRIBUTES = re.compile(
    "accent|accentunder|columnalign|columnlines|columnspacing|depth|display|displaystyle|fence|form|height|largeop|"
    "linebreak|linethickness|lspace|mathbackground|mathcolor|mathvariant|maxsize|minsize|movablelimits|notation|"
    "rowlines|rowspacing|rspace|scriptlevel|separator|stretchy|symmetric|voffset|width"
)
# Words, colours and small lengths. A long one would push the formula over the text beside it.
_VALUE = re.compile(
    r"[a-zA-Z][a-zA-Z -]{0,60} | \#[0-9a-fA-F]{3,8} | (?:-\d?|\+?\d{0,2})(?:\.\d+)?[a-z]{0,5} | (?:\d{1,2}em[ ]?)+",
    re.VERBOSE,
)
_REFERENCE = re.compile(r"&#x([0-9a-fA-F]{1,6});")


class _Unfit(Exception):
    """Raised for a formula that is shown as TeX: it is too deep, incomplete, or has elements that are not allowed."""


def formula_plugin(md: MarkdownIt) -> None:
    """Adds the rules for formulas to a parser and its renderer."""
    md.inline.ruler.before("escape", "tc_math", _inline_rule)
    md.block.ruler.before("fence", "tc_math_block", _block_rule, {"alt": ["paragraph", "reference"]})
    md.add_render_rule("tc_math", _render_inline)
    md.add_render_rule("tc_math_block", _render_block)


def _inline_rule(state: StateInline, silent: bool) -> bool:
    match = _at(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        token = state.push("tc_math", "math", 0)
        token.content = match[1].strip()
        token.markup = match[0][: match.start(1) - match.start()]
    state.pos = match.end()
    return True


def _at(text: str, at: int, end: int) -> re.Match[str] | None:
    """Returns the formula that starts at ``at``."""
    if text[at] == "$":
        return _dollars(text, at, end)
    if text[at] != "\\":
        return None
    match = _PARENTHESES.match(text, at, end)
    if match is None:
        match = _BRACKETS.match(text, at, end)
        if match is not None and not _TEX.search(match[1]):
            return None
    return match if match is not None and match[1].strip() else None


def _dollars(text: str, at: int, end: int) -> re.Match[str] | None:
    if text.startswith("$$", at):
        match = _DOLLARS.match(text, at, end)
        return match if match is not None and match[1].strip() else None
    if at and (text[at - 1] == "$" or text[at - 1].isalnum()):
        return None
    match = _DOLLAR.match(text, at, end)
    if match is None or _is_price(match[1]):
        return None
    after = text[match.end() : match.end() + 1]
    return None if after == "$" or after.isalnum() else match


def _is_price(content: str) -> bool:
    """Whether it is an amount and then words, without TeX: "$5, or 6$ each"."""
    return content[0].isdigit() and not _TEX.search(content) and _WORD.search(content) is not None


def _block_rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parses a formula on lines of its own: a delimiter begins the first and ends the last, without a blank line."""
    if state.is_code_block(start):
        return False
    first = _line(state, start)
    closer = {"$$": "$$", "\\[": "\\]"}.get(first[:2])
    if closer is None:
        return False
    formula = _until(state, start, end, first, closer)
    if formula is None:
        return False
    content, last = formula
    if not content.strip() or (closer == "\\]" and not _TEX.search(content)):
        return False
    if not silent:
        state.line = last + 1
        token = state.push("tc_math_block", "math", 0)
        token.content = content.strip()
        token.markup = first[:2]
        token.map = [start, state.line]
    return True


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _until(state: StateBlock, start: int, end: int, first: str, closer: str) -> tuple[str, int] | None:
    """Returns the content up to the closer, and the closer's line; None if it does not end a line of this block."""
    lines, line, text = [], start, first[2:]
    while closer not in text:
        lines.append(text)
        line += 1
        if line >= end or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return None
        text = _line(state, line)
        # Code is not a formula. Over lines that each open a formula, the search would be quadratic.
        if text.startswith(("\\[", "```", "~~~")):
            return None
    text, _, after = text.partition(closer)
    return None if after.strip() else ("\n".join([*lines, text]), line)


def _render_inline(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    display = token.markup in ("$$", "\\[")
    return f'<span class="{_classes(display)}">{_formula(token.content, display)}</span>'


def _render_block(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    return f'<div class="{_classes(True)}">{_formula(tokens[at].content, True)}</div>\n'


def _classes(display: bool) -> str:
    return "tc-math tc-math-block" if display else "tc-math"


def _formula(tex: str, display: bool) -> str:
    """Returns the formula twice: as MathML, which shows only with our style, and as TeX, which shows without it.

    JupyterLab's sanitizer drops ``math`` but keeps its characters. ``hidden`` hides them (with a value, or it would be
    dropped too), and our style shows them again.
    """
    mathml = to_mathml(tex, display=display)
    hidden_mathml = f'<span class="tc-mathml" hidden="hidden">{mathml}</span>' if mathml else ""
    return f'{hidden_mathml}<code class="tc-tex">{escapeHtml(tex)}</code>'


def to_mathml(tex: str, *, display: bool = False) -> str:
    """Returns ``tex`` as a ``math`` element, or the empty string if it cannot be shown as one. Never raises.

    Only elements and attributes of MathML that lay out a formula are taken from the converter, and all text is escaped
    here, since latex2mathml 3.81 writes ``\\text{<script>}`` as it stands.
    """
    return "" if len(tex) > _LONGEST or _MACRO.search(tex) else _converted(tex, display)


@lru_cache(maxsize=512)
def _converted(tex: str, display: bool) -> str:
    """Returns the element. It is cached, since each new character of a paragraph renders its formulas again."""
    try:
        from latex2mathml.converter import Converter

        tree = Converter(display="block" if display else "inline").convert_to_element(_known(tex))
        return _element(tree, 0)
    # Whatever error the converter raises (its own, StopIteration, KeyError, RecursionError, …), the reader gets the
    # TeX.
    except Exception:
        return ""


def _known(tex: str) -> str:
    return _ENVIRONMENT.sub(lambda match: f"{match[1]}{_SAME_AS[match[2]]}}}", _EQUATION.sub("", tex))


def _element(node: Element, depth: int) -> str:
    if depth > _DEEPEST or not _ELEMENTS.fullmatch(node.tag) or len(node) != _CHILDREN.get(node.tag, len(node)):
        raise _Unfit(node.tag)
    if node.text == "&":  # of a table in an environment that the converter does not know; `\\&` is a reference
        raise _Unfit(node.text)
    attributes = "".join(f' {key}="{escapeHtml(value)}"' for key, value in node.items() if _shown(key, value))
    children = "".join(_element(child, depth + 1) for child in node)
    return f"<{node.tag}{attributes}>{_text(node.text)}{children}</{node.tag}>"


def _shown(name: str, value: str) -> bool:
    return bool(_ATTRIBUTES.fullmatch(name) and _VALUE.fullmatch(value))


def _text(text: str | None) -> str:
    """Returns the text of an element. The converter writes its own symbols as references, and other text as it is."""
    return escapeHtml(_REFERENCE.sub(_symbol, text or ""))


def _symbol(reference: re.Match[str]) -> str:
    code = int(reference[1], 16)
    printable = 0x20 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF
    return chr(code) if printable else "\ufffd"
