"""The open text at the end of a growing text: a paragraph or heading, at any depth."""

from __future__ import annotations

import re

from markdown_it.common.utils import MD_TRIM_CHARS, escapeHtml, mdTrim
from markdown_it.token import Token

from toolcall_nb.incremental_markdown.blocks import FORMULA, OpenEnd, is_blank, may_define
from toolcall_nb.incremental_markdown.flavor import marks_in, parser
from toolcall_nb.incremental_markdown.link_definitions import Definitions, parse_inline, render_tokens
from toolcall_nb.incremental_markdown.open_inline import OpenInline

TEXT_LINE = re.compile(
    r"""[^\W\d_]|[^\x00-\x7f\s]                 # a letter, an emoji, a line of a box
    |\d+[^\d.)]|\d+[.)][^ \t]|\d{10}          # a date, a decimal number: no marker of an item
    |\*{1,3}[^\W_]|_{1,3}[^\W_]|`{1,2}[^`\s]|~~?[^~\W_]
    |["'(),;./%@!?^&{}<\]]
    |\[[^\[\]\\]*(?:\][^:]|\[                # a link or a linked picture, not the label of a definition
        |\]:[ \t]*[^\s<]\S*[ \t]+[^\s"'(])     # a footnote, whose text is no title
    |-[^-\s|:]|-{2,}[ \t]*[^-\s|:]|\+[^\s]|\#{1,6}[^\#\s]|=+[ ]*[^=\s]|:[^-:|\s]""",
    re.VERBOSE,
)
"""A line that starts like this is text, whatever follows on it. It begins no list, fence, rule or definition."""

# A last line that makes a heading of the paragraph before it, unless more follows on it.
_UNDERLINE = re.compile(r"\n {0,3}(?:-+|=+)[ \t]*\Z")
_JSON_START = re.compile(r" {0,3}(?:[A-Za-z][A-Za-z ]{0,40}:[ \t]*+)?[{\[]")
# A heading that a later character may lengthen, and nothing else: hashes at its end would be dropped.
_HEADING = re.compile(r"(#{1,6})[ \t]+([^\s#][^#]*)")


def line_html(line: str) -> str:
    """Returns the HTML of a paragraph of one line, which begins with `TEXT_LINE`."""
    content = mdTrim(line)
    if not marks_in(content):
        return f"<p>{escapeHtml(content)}</p>\n"
    inline = Token("inline", "", 0, map=[0, 1], level=1, content=content, block=True)
    parse_inline([inline], Definitions({}), notes_texts=False)
    return f"<p>{render_tokens([inline])}</p>\n"


def parse_line(line: str, definitions: Definitions) -> list[Token]:
    """Returns the tokens of a paragraph of one line, which begins with `TEXT_LINE`: only its content needs a parse."""
    opening = Token("paragraph_open", "p", 1, map=[0, 1], block=True)
    inline = Token("inline", "", 0, map=[0, 1], level=1, content=mdTrim(line), block=True)
    parse_inline([inline], definitions)
    return [opening, inline, Token("paragraph_close", "p", -1, block=True)]


def parse_one_line(line: str, definitions: Definitions) -> list[Token] | None:
    """Returns the tokens of one line that is certainly a paragraph or a heading; None if only a parse can tell."""
    if TEXT_LINE.match(line):
        return parse_line(line, definitions)
    match = _HEADING.fullmatch(line)
    if match is None:
        return None
    tokens = parse_line(match[2], definitions)
    for token in (tokens[0], tokens[2]):
        token.type = token.type.replace("paragraph", "heading")
        token.tag, token.markup = f"h{len(match[1])}", match[1]
    return tokens


class OpenText(OpenEnd):
    """A paragraph or heading that the text ends in. `OpenInline` holds what is in it.

    The last line starts as text, so the rest of the line does not change the structure, with two exceptions: the
    closing mark of a formula at its end may end a block of lines; a quote or bracket may end a definition of several
    lines, which was text until then. The end of the line changes
    nothing either, and blank lines behind it change no more. A paragraph that is in no other block goes on with the
    next line if that starts as text, or if a parse of this line alone, with the line before it, says so.
    """

    def __init__(
        self,
        group: list[Token],
        leaf: int,
        html: str,
        lines: list[str],
        definitions: Definitions,
        *,
        ends_with_line: bool = False,
    ) -> None:
        super().__init__(group, ends_with_line=ends_with_line)
        token = group[leaf]
        self._inline_html, self._closers = render_tokens([group[leaf]]), render_tokens(group[leaf + 1 :])
        self._head = html[: len(html) - len(self._inline_html) - len(self._closers)]  # the HTML before it
        blanks = lines[-1][len(lines[-1].rstrip(MD_TRIM_CHARS)) :]
        self._inline = OpenInline(token, self._inline_html, blanks, definitions)
        self._is_heading = group[leaf - 1].type == "heading_open"
        self._has_next_lines = group[0].type == "paragraph_open"
        above, is_first_whole, _ = token.content.partition("\n")
        self._may_be_json = group[0].type == "paragraph_open" and _JSON_START.fullmatch(above) is not None
        self._is_first_line = not is_first_whole
        self._has_formula = any(map(FORMULA.match, _behind_blank(lines)))
        self._is_paragraph = group[leaf - 1].type == "paragraph_open"
        # The line before the last one, if the last one may turn out to be no text.
        self._before = lines[-2] if self._has_next_lines and "\n" in token.content else ""
        self._line = lines[-1]
        # The blanks at the end of the text, from the end of a line on, are not in the content yet. Nor is an underline.
        self._gap = ""
        self._underline = ""  # the tag of the heading that the last line makes of the paragraph

    @classmethod
    def of(
        cls, group: list[Token], html: str, lines: list[str], definitions: Definitions, *, ends_with_line: bool
    ) -> OpenText | None:
        """Returns the open text if the group's last inline token continues where the last line ends."""
        leaf = _last_text(group, lines)
        return None if leaf is None else cls(group, leaf, html, lines, definitions, ends_with_line=ends_with_line)

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None if only a parse can tell."""
        if not self._gap and "\n" not in text:
            if not self._is_same_line(text):
                return None
            self._inline_html = self._inline.add(text)
            self._line += text
        elif not self._extend_lines(text):
            return None
        if self._underline:
            return f"<{self._underline}>{self._inline_html}</{self._underline}>\n"
        return f"{self._head}{self._inline_html}{self._closers}"

    @property
    def is_in_paragraph(self) -> bool:
        """Whether the last line, which has not ended, is text of a paragraph."""
        return self._is_paragraph and not self._gap

    def _is_same_line(self, text: str) -> bool:
        """Whether the last line stays text of this block with ``text`` added."""
        line = self._line + text
        return not self._may_restructure(text, line) and (not self._before or _continues(self._before, line))

    def _extend_lines(self, text: str) -> bool:
        """Adds ``text``, which begins behind the end of a line or holds one."""
        added = self._gap + text
        underline = _UNDERLINE.search(added) if self._head == "<p>" and not self._has_formula else None
        bare = added.rstrip(" \t\n")
        if underline is not None:
            start = underline.start() - len(self._gap)
            above = self._before if start < 0 else (self._line + text[:start]).rpartition("\n")[2]
            # A line with a pipe may be the head of a table, and behind an underline another block begins.
            if not above.strip(" \t") or "|" in above or _UNDERLINE.match(f"\n{above}"):
                return False
            if start > 0 and self.extend(text[:start]) is None:
                return False
            text = text[max(0, start) :]
            self._gap += text
        elif bare:
            if self._gap.count("\n") > 1 or not self._are_lines(text):
                return False
            ends = "\n" in added[len(bare) :]
            self._inline_html = self._inline.add(bare if ends else added)
            self._gap = added[len(bare) :] if ends else ""
        else:
            self._gap = added
        self._underline = "" if underline is None else "h1" if "=" in underline[0] else "h2"
        lines = (self._line + text).split("\n")
        if len(lines) > 1:
            self._before = lines[-2]
        self._line = lines[-1]
        return True

    def _are_lines(self, text: str) -> bool:
        """Whether ``text`` adds lines of text to this block, perhaps with blank lines behind them."""
        lines = (self._line + text).rstrip(" \t\n").split("\n")
        if not self._has_next_lines and (self._gap or len(lines) > 1):
            return False
        if not self._gap and not self._is_same_line(lines[0][len(self._line) :]):
            return False
        before = self._before if self._gap else lines[0]
        for line in lines if self._gap else lines[1:]:
            if not before.strip(" \t") or is_blank(line) or not _continues(before, line):
                return False
            if self._is_first_line:
                self._may_be_json, self._is_first_line = _JSON_START.fullmatch(before) is not None, False
            if self._may_restructure(line, line):
                return False
            before = line
        return True

    def _may_restructure(self, text: str, line: str) -> bool:
        """Whether ``text``, which makes the last line ``line``, may change the structure of blocks."""
        if self._may_be_json and line.strip() in ("}", "]"):
            return True
        # A heading drops the hashes at its end; a formula's end may make a block of this line and those before it.
        if self._is_heading and "#" in text:
            return True
        if "|" in text:  # the next line may make a heading the head of a table
            self.ends_with_line = False
        self._has_formula = self._has_formula or FORMULA.match(line) is not None
        return self._has_formula and line.rstrip().endswith(("$$", "\\]"))


def _behind_blank(lines: list[str]) -> list[str]:
    """Returns the lines behind the last blank one."""
    start = next((at + 1 for at in range(len(lines) - 1, -1, -1) if is_blank(lines[at])), 0)
    return lines[start:]


def _continues(before: str, line: str) -> bool:
    """Whether ``line`` goes on with a paragraph that is in no other block and whose last line is ``before``."""
    bare = line.lstrip(" \t")
    if not bare or bare[0] == "[" or TEXT_LINE.match(bare):
        return True
    tokens: list[Token] = []
    md = parser()
    md.block.parse(f"x\n{before}\n{line}", md, {"references": {}, "level": 1}, tokens)
    return len(tokens) == 3 and tokens[1].map == [0, 3] and tokens[0].type == "paragraph_open"


def _last_text(group: list[Token], lines: list[str]) -> int | None:
    """Returns the inline token of a paragraph or heading that continues where the last line ends."""
    leaf = len(group) - 1
    while leaf and group[leaf].nesting < 0:
        leaf -= 1
    token = group[leaf]
    if token.type != "inline" or group[leaf - 1].type not in ("paragraph_open", "heading_open"):
        return None
    above, _, line = token.content.rpartition("\n")
    start, end = token.map or [0, 0]
    if end != len(lines) or not lines[-1].rstrip(MD_TRIM_CHARS).endswith(line) or may_define(lines[: start + 1]):
        return None
    is_text = TEXT_LINE.match(line) or (above and group[0].type == "paragraph_open")
    return leaf if is_text else None
