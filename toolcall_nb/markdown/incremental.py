"""Markdown as it streams: after each piece of text the HTML of all of it, at the cost of what is still open.

The law: after every ``feed``, at any cut, ``html`` is ``render_markdown`` of the text so far. It rests on these:

**The boundary.** The parser reads lines forward and keeps nothing between two top-level blocks. So a block that
starts behind a blank line and whose first line is whole starts there for good, and what lies before it is
settled: nothing of its blocks' structure changes any more. Only the text behind the last such start, the tail, is
parsed again. The boundary never moves back, and each block settles once. (A blank line alone settles nothing: a
list goes on behind it. Nor does a first line that still grows: ``2`` becomes ``2.``, and the list before it too.)

**Definitions.** What a settled block still takes from elsewhere are link definitions, and ``[x]: /url`` may follow
any time later. Every label that a settled block asked for is remembered, and when what the tail defines changes,
the inline content of just these blocks is parsed again. The first definition of a label counts; once settled, it
stays.

**Open ends.** Most pieces go on with a line of text or with a line of code. Where the characters cannot change the
structure, the open paragraph or fence takes them up alone; the conditions stand with `_OpenText` and `_OpenFence`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markdown_it.common.utils import escapeHtml, mdTrim
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from toolcall_nb.markdown.flavor import is_closed, parser, plain_block
from toolcall_nb.unicode import well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["IncrementalMarkdown"]

_FENCE_END = "</code></pre>\n"

# A line that starts like this is text whatever follows on it: no marker of a list, a fence, a rule, a definition.
_TEXT_LINE = re.compile(r"[^\W\d_]|\d+[^\W\d_]|\*{1,3}[^\W_]|_{1,3}[^\W_]|`{1,2}[^`\s]|~~[^\W_]")
_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]")
_CONTAINERS = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t>]+)*")
# Brackets that are no label of a definition: of a task, an alert, a link.
_BRACKETS = re.compile(r"\[[^\[\]\\]*\](?!:)")
# Characters that mean nothing to the inline parser, unless in a link or a definition that is open: the second set.
_INERT = re.compile(r"(?:[^\W_]|[ ,.:?/%@+=-])+")
_INERT_WITHOUT_BRACKETS = re.compile(r"(?:[^\W_]|[ ,.:?/%@+=\"'()-])+")
_WORD_END = re.compile(r"[^\W_]\Z")


class IncrementalMarkdown:
    """Feed it text, take the HTML. Nothing that is fed raises.

    ``blocks`` holds the HTML of each top-level block; it is live, and not to be changed. ``feed`` and ``close``
    return the indexes of the blocks that are new or differ, ascending; ``blocks`` may get shorter.
    """

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._settled = 0  # so many of the blocks
        self._tail: list[str] = []  # the text of the others, in pieces
        self._half = ""  # the first half of a surrogate pair
        self._after_return = False
        self._open: _OpenText | _OpenFence | _OpenGap | None = None
        self._definitions = _Definitions({})
        self._awaiting = _Awaiting()

    @property
    def blocks(self) -> Sequence[str]:
        """The HTML of each top-level block. Joined, they are ``html``."""
        return self._blocks

    @property
    def html(self) -> str:
        """What `render_markdown` makes of the text so far."""
        return "".join(self._blocks)

    def feed(self, text: str) -> tuple[int, ...]:
        """Takes up more text; returns which blocks are new or differ."""
        had_half = self._half != ""
        text = self._normalized(text)
        if not text and had_half == (self._half != ""):
            return ()
        self._tail.append(text)
        html = None if self._half or had_half else self._extended(text)
        return self._parse() if html is None else self._show_last(html)

    def close(self) -> tuple[int, ...]:
        """The text is whole. All that was fed is shown already, so nothing differs."""
        return ()

    def _normalized(self, text: str) -> str:
        """``text`` as the parser's first rule leaves it, with what a cut has parted put together again."""
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        text = well_formed(text[: len(text) - len(self._half)])
        if not text:
            return ""
        after_return, self._after_return = self._after_return, text.endswith("\r") and not self._half
        if after_return and text.startswith("\n"):
            text = text[1:]
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")

    def _extended(self, text: str) -> str | None:
        """The HTML of the last block with ``text`` added, where that is all that differs."""
        try:
            return self._open.extended(text) if self._open is not None else None
        # As in `_parse`.
        except Exception:
            return None

    def _show_last(self, html: str) -> tuple[int, ...]:
        last = len(self._blocks) - 1
        if last < 0 or self._blocks[last] == html:
            return ()
        self._blocks[last] = html
        return (last,)

    def _parse(self) -> tuple[int, ...]:
        """Parses the tail anew, and settles what has become settled."""
        source = "".join(self._tail)
        shown = source + ("\ufffd" if self._half else "")
        definitions = _Definitions(self._definitions.settled)
        try:
            groups = _top_level(parser().parse(shown, {"references": definitions}))
            blocks = [_rendered(group) for group in groups]
        # As in `render_markdown`: the caller's stack may be too long already.
        except Exception:
            groups, blocks, definitions = [], [plain_block(shown)], self._definitions
        changed = self._redefine(definitions)
        first = self._settled
        changed += [first + at for at, html in enumerate(blocks) if self._blocks[first + at : first + at + 1] != [html]]
        self._blocks[first:] = blocks
        lines = shown.split("\n")
        self._tail = [source]
        self._open = None if self._half or not groups else _open_end(groups[-1], blocks[-1], lines, definitions)
        self._settle(groups, lines)
        return tuple(changed)

    def _redefine(self, definitions: _Definitions) -> list[int]:
        """Parses the settled blocks again that asked for a label whose definition is another now."""
        labels = definitions.differing(self._definitions)
        self._definitions = definitions
        changed = []
        for block in self._awaiting.asking(labels):
            html = self._awaiting.render(block, definitions)
            if html != self._blocks[block]:
                self._blocks[block] = html
                changed.append(block)
        return changed

    def _settle(self, groups: list[list[Token]], lines: list[str]) -> None:
        """Moves the boundary to the last block whose start is certain."""
        at = _last_certain(groups, lines)
        if at == 0:
            return
        line = _first_line(groups[at])
        for number, group in enumerate(groups[:at], self._settled):
            self._awaiting.watch(number, group, self._definitions)
        self._settled += at
        self._awaiting.forget(self._definitions.settle_before(line))
        source = "".join(self._tail)
        self._tail = [source[sum(len(text) + 1 for text in lines[:line]) :]]


def _top_level(tokens: Iterable[Token]) -> list[list[Token]]:
    """The tokens of each top-level block."""
    groups: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            groups.append([])
        groups[-1].append(token)
        depth += token.nesting
    return groups


def _rendered(tokens: Sequence[Token]) -> str:
    md = parser()
    return str(md.renderer.render(tokens, md.options, {}))


def _inline_again(tokens: list[Token], definitions: _Definitions) -> None:
    """Parses the inline content of block tokens anew, through the same rules as in a whole parse."""
    for token in tokens:
        if token.type == "inline":
            token.children = []
    md = parser()
    # With no source, the rules for blocks have nothing to add to the tokens that are there.
    md.core.process(StateCore("", md, {"references": definitions}, tokens))


def _first_line(group: list[Token]) -> int:
    return (group[0].map or [0])[0]


def _last_certain(groups: list[list[Token]], lines: list[str]) -> int:
    """The last block that starts behind a blank line and whose first line is whole; 0 where none is."""
    for at in range(len(groups) - 1, 0, -1):
        line = _first_line(groups[at])
        if line + 1 < len(lines) and not lines[line - 1].strip(" \t"):
            return at
    return 0


class _Definitions(dict[str, Any]):
    """The link definitions that the parser sees: those of the tail, behind those that are settled.

    It takes the place of ``env["references"]``, which the parser fills and asks with ``in`` and ``get`` alone.
    """

    def __init__(self, settled: dict[str, Any]) -> None:
        super().__init__()
        self.settled = settled
        self.asked: set[str] | None = None  # where a set, the labels that are not settled are noted in it

    def __contains__(self, label: object) -> bool:
        return label in self.settled or super().__contains__(label)

    def get(self, label: str, default: Any = None) -> Any:
        """The definition of ``label``: the first one counts."""
        if label in self.settled:
            return self.settled[label]
        if self.asked is not None:
            self.asked.add(label)
        return super().get(label, default)

    def differing(self, before: _Definitions) -> list[str]:
        """The labels of the tail that are defined otherwise than ``before``."""
        return [label for label in {**self, **before} if self._target(label) != before._target(label)]

    def _target(self, label: str) -> object:
        found = super().get(label)
        return found and (found["href"], found["title"])

    def settle_before(self, line: int) -> list[str]:
        """Settles what is defined before ``line`` of the tail; returns the labels."""
        labels = [label for label, found in self.items() if found["map"][0] < line]
        for label in labels:
            self.settled[label] = self.pop(label)
        return labels


class _Awaiting:
    """The settled blocks that asked for labels that are not settled, with their tokens, and who asked for which."""

    def __init__(self) -> None:
        self._tokens: dict[int, list[Token]] = {}
        self._labels: dict[int, set[str]] = {}
        self._blocks: dict[str, set[int]] = {}

    def watch(self, block: int, tokens: list[Token], definitions: _Definitions) -> None:
        """Remembers the block if it depends on labels that are not settled."""
        if any(token.type == "inline" and "[" in token.content for token in tokens):
            self._tokens[block] = tokens
            self.render(block, definitions)

    def asking(self, labels: list[str]) -> list[int]:
        """The blocks that asked for one of the labels, in their order."""
        return sorted({block for label in labels for block in self._blocks.get(label, ())})

    def render(self, block: int, definitions: _Definitions) -> str:
        """The block's HTML under ``definitions``. It may ask for other labels than before."""
        tokens = self._tokens[block]
        definitions.asked = set()
        try:
            _inline_again(tokens, definitions)
            self._note(block, definitions.asked)
        finally:
            definitions.asked = None
        return _rendered(tokens)

    def _note(self, block: int, labels: set[str]) -> None:
        for label in self._labels.pop(block, set()) - labels:
            self._drop(label, block)
        for label in labels:
            self._blocks.setdefault(label, set()).add(block)
        if labels:
            self._labels[block] = labels
        else:
            del self._tokens[block]

    def _drop(self, label: str, block: int) -> None:
        self._blocks[label].discard(block)
        if not self._blocks[label]:
            del self._blocks[label]

    def forget(self, labels: Iterable[str]) -> None:
        """These labels are settled: nobody waits for them any more."""
        for label in labels:
            for block in self._blocks.pop(label, ()):
                self._labels[block].discard(label)
                if not self._labels[block]:
                    del self._labels[block], self._tokens[block]


def _open_end(
    group: list[Token], html: str, lines: list[str], definitions: _Definitions
) -> _OpenText | _OpenFence | _OpenGap | None:
    """What the text ends in, if more of it can be taken up without a parse."""
    leaf = len(group) - 1
    while leaf and group[leaf].nesting < 0:
        leaf -= 1
    token = group[leaf]
    if token.type == "fence" and leaf == 0:
        return _OpenFence.of(token, html, lines)
    if token.type != "inline":
        return None
    if len(lines) > 2 and not lines[-1].strip(" \t") and not lines[-2].strip(" \t"):
        return _OpenGap(html)
    return _OpenText.of(group, leaf, html, lines, definitions)


class _OpenGap:
    """A blank line behind text: more blank space adds nothing. (Behind code it may be part of the code.)"""

    def __init__(self, html: str) -> None:
        self._html = html

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where only a parse can tell."""
        return None if text.strip(" \t\n") else self._html


class _OpenText:
    """A paragraph or heading that the text ends in, at any depth of lists and quotes.

    Its last line starts as text, so nothing on that line changes the structure, save that a formula's closer at its
    end may end a block of lines, and a quote or bracket a definition of several lines, which until then was text.

    Characters that are inert to the inline parser go to the HTML as they are, once they follow a word: before, they
    may decide over a delimiter. Other characters have the paragraph's inline content parsed, and nothing else.
    """

    def __init__(self, head: str, inline: str, closers: str, content: str, definitions: _Definitions) -> None:
        self._head = head
        self._inline = inline  # HTML of the content, without the blanks at its end
        self._closers = closers
        self._content = content
        self._definitions = definitions
        self._blanks = ""
        self._inert = _inert_behind(content)

    @classmethod
    def of(
        cls, group: list[Token], leaf: int, html: str, lines: list[str], definitions: _Definitions
    ) -> _OpenText | None:
        """The open text, if the content of the token at ``leaf`` goes on where the last line ends."""
        token = group[leaf]
        line = token.content.rpartition("\n")[2]
        is_last = (token.map or [0, 0])[1] == len(lines) and lines[-1].endswith(line)
        is_text = group[leaf - 1].type in ("paragraph_open", "heading_open") and _TEXT_LINE.match(line)
        if not is_last or not is_text or _may_define(lines):
            return None
        inline, closers = _rendered([token]), _rendered(group[leaf + 1 :])
        return cls(html[: len(html) - len(inline) - len(closers)], inline, closers, token.content, definitions)

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where only a parse can tell."""
        content = self._content + text
        if self._inert is not None and self._inert.fullmatch(text):
            self._append(self._blanks + text)
        # A heading gives up the hashes at its end, a formula's closer may make a block of this line and those before.
        elif "\n" in text or self._closers.startswith("</h") or content.rstrip().endswith(("$$", "\\]")):
            return None
        else:
            self._parse(content)
        self._content = content
        return self._head + self._inline + self._closers

    def _append(self, text: str) -> None:
        """Takes up inert text; blanks at the end show only when something follows."""
        shown = text.rstrip(" ")
        self._inline += escapeHtml(shown)
        self._blanks = text[len(shown) :]

    def _parse(self, content: str) -> None:
        token = Token("inline", "", 0, content=mdTrim(content))
        _inline_again([token], self._definitions)
        self._inline = _rendered([token])
        self._blanks = ""
        self._inert = _inert_behind(content)


def _may_define(lines: list[str]) -> bool:
    """Whether the last line may come to belong to a link definition: one that began behind the last blank line.

    A definition's label or title may run over lines that are a heading as long as it is open. A list marker at the
    start of a line ends it.
    """
    for line in reversed(lines):
        if not line.strip(" \t"):
            return False
        containers = _CONTAINERS.match(line)
        if containers and line.startswith("[", containers.end()) and not _BRACKETS.match(line, containers.end()):
            return True
        if _MARKER.match(line):
            return False
    return False


def _inert_behind(content: str) -> re.Pattern[str] | None:
    """What is inert behind ``content``: nothing, where it does not end in a word."""
    if not _WORD_END.search(content):
        return None
    return _INERT if "[" in content else _INERT_WITHOUT_BRACKETS


class _OpenFence:
    """A top-level fence, not indented, that the text ends in: its lines are shown as they are until one closes it.

    The parser leaves out a last line of blanks that no line end follows, so these wait for what follows.
    """

    def __init__(self, head: str, markup: str, line: str) -> None:
        self._head = head
        self._markup = markup
        self._line = line  # so far
        self._blanks = "" if line.strip(" \t") else line

    @classmethod
    def of(cls, token: Token, html: str, lines: list[str]) -> _OpenFence | None:
        """The open fence, if its first line is whole, and it is neither closed nor takes blanks from its lines."""
        start = (token.map or [0])[0]
        if start + 1 >= len(lines) or not lines[start].startswith(token.markup) or is_closed(token):
            return None
        if "|" in token.info:  # the next line may make it the head of a table
            return None
        return cls(html.removesuffix(_FENCE_END), token.markup, lines[-1])

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where a line may close the fence."""
        *lines, last = (self._line + text).split("\n")
        if any(self._may_close(line) for line in (*lines, last)):
            return None
        shown = self._blanks + text
        self._line = last
        self._blanks = "" if last.strip(" \t") else last
        self._head += escapeHtml(shown[: len(shown) - len(self._blanks)])
        return self._head + _FENCE_END

    def _may_close(self, line: str) -> bool:
        line = line.strip(" \t")
        return line.startswith(self._markup) and not line.strip(self._markup[0])
