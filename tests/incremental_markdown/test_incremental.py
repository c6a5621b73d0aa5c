"""Incremental Markdown equals Markdown rendered at once: after every piece, at every cut, with any text behind it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it.utils import read_fixture_file

from tests.benchmarks.documents import GROWING, flushes, growing
from tests.support.corpora import corpus
from toolcall_nb.incremental_markdown.flavor import parser, render_markdown
from toolcall_nb.markdown import IncrementalMarkdown

FIXTURES = read_fixture_file(Path(__file__).parents[1] / "fixtures" / "flavor.md")

# What makes the text before it mean something else, or might. One line each, `\n` and the like as in Python.
TRICKY = r"""
A setext underline makes a heading of a paragraph             | a\nb\n-\n\nc\n=\n
A first line that still grows joins the list before it        | 1. a\n\n2. b\n\n* c\n\n*d*
A heading, a rule, a list: all start with one character       | a\n\n-\n\n--\n\n---\n\n- -\n\n#\n\n#b\n\n# c
A list item turns the whole list loose                        | - a\n- b\n- c\n\n- d\n\nend\n
A label that is defined again in an item makes the list loose   | [a]: /u\n\nx\n\n- h\n- z\n- [a]: /u\n\n      s\n
A label that is defined again in a quote ends its paragraph     | [a]: /u\n\n> x\n>\n> [a]: /v\n>\n> z\n
A list that is loose only until a marker is whole              | 1. a\n   1. b\n\n   1. c\n2. d
A list that is loose only while a number has no dot           | 2. a\n2. b\n   1. c\n\n   2. d\n
An item's second paragraph, and a line that is lazy           | - a\n\n  b\nc\n\n  d\n\ne
Lists in lists, with a tab and with too little indent         | - a\n\t- b\n   - c\n - d\n\n      e\n
An empty item                                                 | -\n\n  a\n\n-\n  b\n
Another marker starts another list                            | - a\n\n+ b\n\n1. c\n\n1) d\n\n2) e\n
A number behind a loose list, of its next item or of none     | 1. a\n\n2. b\n\n10. c\n\n11\n==\n\n12. d\n\n13 e\n\n14\n\n15. f
A number behind a loose list in a quote and in an item        | > 1. a\n>\n> 2. b\n>\n> 10. c\n\n- a\n\n  1. b\n\n  2. c\n\n  10. d\n\n  11\n
A number that is no marker                                    | 10\n\n10.\n\n10. a\n\n2024 b\n2024. c
Indented code goes on behind blank lines                      | a\n\n    b\n\n\n    c\n  \n    \n\td\ne\n
A fence holds blank lines, and almost closes                  | ```\na\n\n``\n\n````x\n    ```\n ``` \n\nb\n
A fence whose last line is blank so far                       | ~~~\na\n   \n \t\n  b\n  ~~~~  \nc
A fence that is a table's head                                | ```a\|b\n--\|--\nc\|d\n\n```e\|f\n--\|--
A fence, indented, and one in a list and a quote              |   ```py\n    a\n  b\n  ```\n\n- ```\n  c\n\n\n  d\n\n> ```\n> e\n\nf
A table is undone by one more character                       | a\|b\n-\|-x\n\nc\|d\n-\|-\n1\n\|2\n\n3\n
A table ends at another block and at a blank line             | \|a\|b\|\n\|-\|-\|\n\|c\n> d\n\n\|e\|\n\|-\|\n\|f\|\n\ng
A quote goes on lazily, and ends at a blank line              | > a\nb\n> c\n\n> d\n>\ne\n
A quote turns into an alert only by its whole first line      | > [!NOTE\n\n> [!NOTE]\n\n> [!NOTE]x\n\n> [!tip]\n> b
A tool callout is a quote here                                | > [!tool name=a]\n> b: c\n\nd
Emphasis, code and strikes that close late, or reopen         | *a **b `c*d` e** f*\n\n**g\n\n_h_i _j_\n\n~~k~~ ~~l
Delimiters decide by the character behind them                | a*b* c**d**e\n\n**f:**g **h:** i\n\n*"j"*k
A link that is none so far                                    | [a](b "c" )\n\n![d](e 'f\n\n[g](<h>\n\n[i\n]\n
Definitions that come after what asks for them                | [a] and [b][a] ![c][a]\n\n- [a]\n\n> [a][]\n\nx\n\n[a]: /u "t"\n\n[a]
A definition that grows into none, and one that is the second | [a]\n\ny\n\n[a]: /u v\n\n[a]: /w\n\n[a]: /z\n
A definition's title over lines, and one that breaks off      | [a]\n\n[a]: /u\n'b\nc'\n\nd\n\n[e]: /v\n'f\ng\n\n[e]
A title that swallows a heading                               | [a]: /u "\nb\n===\nc" \n\n[a]
A label over lines                                            | [a\nb]: /u\n\n[a b]\n\n[c\n\n]: /v
A definition in a list and in a quote                         | [a] [b]\n\n- x\n\n  [a]: /u\n\n> [b]: /v\n
Labels match in any case and over blanks                      | [ A  b ]\n\nx\n\n[a B]: /u\n
A link inside a link becomes possible                         | [x [a] y](z) [[a]][b]\n\nq\n\n[a]: /u\n\n[b]: /v
A definition in a table and in code is none                   | [a]\n\n    [a]: /u\n\n```\n[a]: /v\n```\n\n\|[a]: /w\|\n\|-\|\n
Carriage returns, alone and with a line feed, cut between     | a\r\nb\r\rc\r\n\r\n- d\r\n\r\n  e\r\n```\r\nf\r\n```\r
Blanks at line ends                                           | a \nb  \nc   \n\n  d\n \t \ne\\\nf\\
Entities and links in angle brackets                          | &amp &amp; &#x41 &#x41; <http://a <http://a.b>c <d@e.f>
A formula of lines that would be other blocks                 | a\n$$\n- b\n= c\n# d\n$$\ne\n\n$$\nf\n\n$$\n
A formula closes on a paragraph's line                        | $$\na\nb $$\n\n\\[\nc = d\ne \\]\n\n\\[\nf\n
An escape behind which a word follows, and a formula closes    | a \\(b c `d` e\\) f \\[g h *i* = j\\] k
Formulas in a line                                            | $a$b $c$ $5 and $6 \\(d\\) \\[e\\] \\[f=g\\] $h\ni$ $$j$$ $$k
A formula does not reach into a fence                         | $$\na\n```\n$$\n```\nb $$
A formula behind a paragraph that more text undoes             | a\n\\[b=\nc\nd \\]e\n\nf\n$$\ng\nh $$i
Backslashes                                                   | \\ \\\\ \\* a\\\n\n\\$b$ \\\\(c\\) \\
Surrogate halves, together and alone                          | a\ud83d\ude00b \ud83d c\ude00\ud83d\n\n\ud83d\ude00
NUL and other controls                                        | a\0b\n\n- \0\n\n\x0b\x0c\x85\u2028c\xa0\n\n\xa0d\n
Only blanks                                                   |  \n\t\n\n \n
Blank lines, many of them                                     | a\n\n\n\n   \n\n\n    b\n\n\n\n- c\n\n\n\n\n    d
Task lists                                                    | - [\n- [ ]\n- [ ] a\n- [x] b\n- [x]c\n\n  - [X] d [e]\n
A word behind a tab, before what has to be parsed             | b \t't'$x$ c \td*e* f \x0bg`h`
A word behind a blank, where something is still open           | *a b `c d` e* f [g h `i`](j) <k l&m n_o* p_ q\\[r `s`\\]
A literal delimiter that nothing closes, and one that may      | 2 * 3 `a` b_c `d` *e `f` g* & h `i` &am `j`; < k `l` <m `n`>
A new block behind each kind, by its first character           | a\n\nb\n\n# c\n\nd\n\n---\n\ne\n\n```\nf\n```\n\ng\n\n> h\n\ni\n\n- j\n\nk\n\n2. l
A list behind a list, by its first character                   | - a\n\n- b\n\n* c\n\n*d*\n\n1. e\n\n2 f\n\n3. g\n\n- - -\n\n--
An item by its marker and a letter, tight and loose            | - a\n- b\n-c\n- *d*\n- * *\n\n- e\n- f\n  - g\n- h\n1. i
A row by its pipe, and cells that grow, escape, are too many   | \|a\|b\|\n\|-\|-\|\n\|c d\|e `f`\|\n\|g\\\|h\|i\|j i\n\|k\n\|\|l *m*\|x\|m
A paragraph that a definition settles, with blanks at its end  | [a] b \n\n[c]: /u\n\n[a]: /v\n
Lines of a paragraph by their first characters                 | a\n2 b\n2. c\n2024-1\n[d](e) f\n(g\n<h>\n-i\n=j\n1. k\n\n\u2502 l\nm
A line that is a heading, a list or a rule while it grows      | a\nb\n-\n\nc\n- d\n\ne\n===f\n==\n\ng\n--\n\nh\n1\n1. i
Dashes below a paragraph, and what follows them on the line    | a\n--\n-- b\n==\n--\n\nc  \n-- d\n- - -\n\ne\|\n-\nf\n\n> g\n> --\n> h\n\n- i\n  --\n\n  j\n  -- k\n
A label with a definition, then an address, and with a title   | [a]: /u\n\nx [a](b) [a](c 'd') [a](e "f g" h) *[a](i j*) [a b](k 'l')\n\n[a b]: /v\n\n[a b](m 'n o')\n
Behind blank lines, text that is indented less than an item    | - a\n\n  b\n\n\n c\n\n1. d\n\n   e\n\n \n f\n
A title behind a definition that follows a heading            | # a\n[b]: /u\n"c"\n\n[b]\n
A line with a pipe behind a list: the next line says whose     | - a\n\n  --\nb \|\n    --\|-\n
A paragraph's line that heads a table                          | a\nb\|c\n-\|-\nd\n\ne\nf\|g\n-\|-x\n
Indented code with tabs, short lines and blank ends             | a\n\n    b\n      c  \n   \n     \n    d\n\te\n   f
A title that is code until it is closed                        | [a]: /u\n        't\n    v'\n\n[a]
A line that continues a quote in an item keeps its indent      | - a`\n  > b\n  c`\n  d`\n\n1. > e`\n   f`
A fence with an indentation, and one with tabs in an item      | - a\n\n    ```\n    b\n   c\n      d\n  \te\n    ```\n- f\n  ```\n  \tg\n\th
JSON in a quote and in an item is text                         | > {\n> "a": 1\n> }\n\n- {\n  "b": 2\n  }\n\nC: {\n"d": 3\n}
A table in a quote, and a row without its mark                 | > \|a\|b\|\n> \|-\|-\|\n> \|c\|d\|\n>\n> e\n\|f\|\n> g
An item whose first line heads a table that takes the marker   | - a\|b\n  -\|-\n  c\|d\n\n- e\n  f\|g\n  -\|-\n
Blocks without a blank line between them                       | # a\nb\n- c\n# d\n> e\n# f\n```\ng\n```\nh\n[i]: /u\n# j\n$$\nk\n# l\n$$
A nested list that becomes loose, and its parent after it       | - a\n  - b\n  - c\n\n  - d\n    e\n\n  f\n- g\n\nh
Items without text of their own                                | - ```\n  a\n\n  b\n  ```\n- # c\n- - d\n  - e\n\n- > f
A line of text without the mark, behind each kind in a quote  | > a\nb\n> - c\nd\n> > e\nf\n> # g\nh\n\n> \|i\|\n> \|-\|\nj\n\n> ```\nk\n\n>\nl\n
A line without the mark that heads no table, ends no formula  | > a\nb\|c\n> -\|-\n\n> $$\n> d\ne $$\n\n> f\ng\n> ===\n\n> h\n> >\ni\n
Items by tabs, a task that is a fence, and too many tabs      | - a\n\t- b\n\t\t- [ ] c\n\t\t- [ ] ```\n\t\t\t- d\n\n1. e\n\t\t- f\n\t2. g\n\t- `h\n\t\t2. i`\n
A formula that is open before a table takes its lines         | a\n$$\n\|a\|b\|\n\|-\|-\|\n\|c\|d\ne $$\nf\n
Rows by other beginnings, and what begins another block       | \|a\|b\|\n\|:-\|-:\|\n2 c\|d\n  \|e\n`f\n$$ \| g\n1\n1. h\n\n\|i\|\n\|-\|\n\tj\n    k\n
Definitions in a quote, asked for in it and before it         | [a] [b]\n\n> [a] c\n>\n> [a]: /u\n> [b]: /v\n> [c]: /w 't\n>\n> [b] [c] d\n\n[c]\n
Definitions in a quote: a second one, one with a title below  | > e\n>\n> [a]: /u\n> [a]: /v\n> [b]: /w\n> 't'\n> [c]:\n> /x\n> > [d]: /y\n> > f\n\n[a] [b] [c] [d]
Definitions that follow each other, and what may undo the last | [a]: /u\n[b]: /v\n[c]: /w\n"t\nu"\n[d]: /x y\n\n[e]: /z\n\n[f]: /z\nf [a] [b] [c] [d] [e]\n\n[g]: /h\|i\n-\|-
A footnote that is a definition until its second word         | x [^1] [^2]\n\n[^1]: One two\n[^2]: http://a\n[^3]: "b" c\n\n[^3]: <d> e\n\n[^4]: f\n'g'\nh
A picture in a link, and labels that are not defined          | [![a](b)](c) d\n[e][f] g [h] i][j] [`k`][l] *m [n][o]* [p][q\n\n[![r]: s\n\n[l]: /u\n[o]: /v
Words behind marks, over ends of lines, that mean nothing     | a **b**\nc (d)\ne.\nf!\ng - h;\ni "j"\n\u2014 k\u3002\n *l* &amp\n; &am\np; <m\nn> <http://o\n> \\\np  \nq\\\nr
A quote whose lines are indented by up to three spaces        | > a\n  > b\n   >     c\n >\n  > - d\n  >   e\n  f\n   > g\n    > h\n\n- i\n\n   > j\n  > k\n   >\tl\n
Nested deep                                                   | > - > - > 1. > a\n> - > - b\n\nc
"""  # noqa: E501

# fmt: off
ATOMS = [
    "a", "b ", "foo", "2", "10", "\u00e9", "1. ", "1) ", "- ", "* ", "+ ", "> ", "# ", "#", "\n", "\n", "\n\n",
    "\n\n", "  ", "    ", "\t", "```", "```python\n", " ```\n", "~~~", "---", "===", "-", "=", "[a]", "[b][a]",
    "[a]: /u", "[b]: <x> 'ti", "'t'", "](u)", "![", "[", "]", ":", "(", ")", "\"", "'", "*", "**", "_", "`", "~~",
    "!", "\\", "$", "$$", "\\(", "\\)", "\\[", "\\]", "$x$", "&amp;", "<", "<http://x>", ">", "> [!tip]\n",
    "[!NOTE]", "- [ ] ", "[x] ", "\n  - ", "\n   b", "\n> c", "\r", "\r\n", "\0", "\ufffd", "\ufffd", "_1", "x^2",
    "|", "a|b\n--|--\n", "\n|c|\n",
]
# Lists and tables grow by lines; from a few kinds at a time, so that some get long.
LINES = [
    "- a", "- b *c*", "- [ ] d", "- [x] e", "-", "- ", "* f", "+ g", "1. h", "2. i", "1) j", "  k", "   l", "    m",
    "  - n", "   1. o", "      - p", "", "", "", "  ", "q", "> r", "  > s", "```", "  ```", "- ```", "# t", "- # u",
    "  # v", "---", "- ---", "===", "|a|b|", "|-|-|", "|c|", "|d|e|f|", "g|h", "| |", "a|b", "-|-", "--|--|--",
    "[a]", "- [a]: /u", "[a]: /u", "- [b]", "  [b]: /v 'x", "x'", "$$", "- $$", "  $$", "y $$", "\\[", "z=1 \\]",
    "> [!NOTE]", "- > w", "text *em", "text** on `co", "de` (paren) \"q\"", "**B**: bold", "10 apples", "- a  ",
    "<b>", "- \ta", "\tq", "1. a\n\n   b", "- a\n\n- b", "| x | [a] |", "|`a\\|b`|**c**|", "0. z", "- [l](u)",
]
# fmt: on
# Containers, and lines that may continue what is in them.
NESTED = [
    "\U0001f680 go",
    "\u2502 box",
    "2024-11-03 x",
    "[l](u) x",
    "(paren",
    '"quoted"',
    "    code",
    "\tcode",
    "<div>",
    "  <p>x</p>",
    "2. two",
    "1. one",
    "- [ ] t",
    "> q",
    "> - q",
    "> ```",
    ">",
    "> ",
    ">  y",
    "   1. z",
    "   w",
    "   ```",
    "```py",
    "  - a",
    "    - b",
    "    c",
    "      d",
    "- a",
    "",
    "",
    "",
    "text",
    "more *em",
    "a|b",
    "-|-",
    "|a|b|",
    "> |a|b|",
    "> |-|-|",
    "  |a|b|",
    "  |-|-|",
    "===",
    "---",
    "# h",
    "> # h",
    "> [!NOTE]",
    "{",
    "}",
    "Data: {",
    "[ERR] x",
    "[a]: /u",
    "'t'",
    "$$",
    "\\[",
    "x \\]",
    "x $$",
    "y  ",
    "-",
    "=",
    "1",
    "10",
    "    \t",
    "  \tx",
    "> \tx",
    "- \tx",
    "a\\",
    "`c",
    "c`",
    "**b",
    "b**",
    "- ```",
    "  ```",
    "  x",
    "\tx",
    "> - a",
    ">   b",
    ">   - c",
    "> > d",
    "-a",
    "== e",
    "  > a",
    "   > - b",
    "> [a]: /u",
    "> [b]: /v",
    "> [b] [a] x",
    "> 't'",
    "[b]: /w",
    "[^1]: Word and",
]
DOCUMENTS = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=24).map("".join)
BY_LINES = st.lists(st.sampled_from(LINES), min_size=1, max_size=8).flatmap(
    lambda few: st.lists(st.sampled_from(few), min_size=2, max_size=14).map("\n".join)
)


def nested(few: list[str]) -> st.SearchStrategy[str]:
    """Documents of these lines, perhaps all of them in a container."""
    marks = st.sampled_from(
        [("", ""), ("", ""), ("> ", "> "), ("- ", "  "), ("1. ", "   "), ("> - ", ">   "), ("- > ", "  > ")]
    )
    lines = st.lists(st.sampled_from(few), min_size=4, max_size=24)
    return st.tuples(marks, lines).map(
        lambda drawn: "\n".join(drawn[0][number > 0] + line for number, line in enumerate(drawn[1]))
    )


MARKS = (
    *("word", "a_b", "x", "$5", "$", "$x$", "$$", "6$", "$y", "\\$", "`", "``", "`c`", "*", "**", "*e*", "d*", "*("),
    *("_", "__f", "_e_", "~", "~~", "[", "]", "[t]", "[t](", "[t](u)", "](", "(", ")", "u://v", '"t', "![", "![i](u)"),
    *(
        "\\[",
        "\\]",
        "\\(",
        "\\)",
        "\\",
        "\\d",
        "<",
        "<u://v>",
        "&amp;",
        "&",
        "[x][y]",
        "é",
        "🙂",
        "\n",
        "\n",
        "\f",
        "\u2003",
        "-- ",
        "{",
        "}",
    ),
)
BY_MARKS = st.lists(st.sampled_from(MARKS), min_size=2, max_size=12).flatmap(
    lambda few: st.lists(
        st.tuples(st.sampled_from(few), st.sampled_from([" ", " ", "", "  "])).map("".join), min_size=3, max_size=50
    ).map("".join)
)

BY_CONTAINERS = st.lists(st.sampled_from(NESTED), min_size=1, max_size=7).flatmap(nested)


def whole(text: str) -> str:
    return render_markdown(text)


def check(pieces: Iterable[str], every: int = 1) -> None:
    """Feeds the pieces. After each (or every so many) the HTML is that of the text so far; what differs was told."""
    stream = IncrementalMarkdown()
    text = ""
    before: list[str] = []
    for number, piece in enumerate(pieces):
        changed = stream.feed(piece)
        text += piece
        after = list(stream.blocks)
        assert changed == tuple(at for at, block in enumerate(after) if at >= len(before) or before[at] != block), (
            f"after {text!r}"
        )
        assert {at: stream.before(at) for at in changed} == {
            at: before[at] if at < len(before) else None for at in changed
        }
        before = after
        if number % every == 0:
            assert stream.html == whole(text), f"after {text!r}"
    stream.close()
    assert stream.html == whole(text)


def cut(text: str, at: Iterable[int]) -> Iterator[str]:
    places = [0, *sorted({place for place in at if 0 < place < len(text)}), len(text)]
    return (text[start:end] for start, end in pairwise(places))


def tricky() -> list[Any]:
    cases = [line.split(" | ", 1) for line in TRICKY.strip().splitlines()]
    texts = [text.replace("\\|", "|").encode("ascii").decode("unicode_escape") for _, text in cases]
    return [pytest.param(text, id=title.strip()) for (title, _), text in zip(cases, texts, strict=True)]


@pytest.mark.parametrize("text", tricky())
def test_every_prefix_of(text: str) -> None:
    check(text)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", tricky())
def test_every_prefix_where_each_block_is_packed_as_soon_as_it_can_be(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcall_nb.incremental_markdown.incremental._TOGETHER", 1)
    check(text)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", tricky())
def test_at_other_cuts(text: str) -> None:
    for size in (2, 3, 5, 7, len(text) + 1):
        for offset in range(min(size, 3)):
            check(cut(text, range(offset, len(text), size)))


@pytest.mark.parametrize(("line", "title", "text", "expected"), FIXTURES, ids=[case[1] for case in FIXTURES])
def test_every_prefix_of_the_fixture(line: int, title: str, text: str, expected: str) -> None:
    check(text)


@settings(max_examples=800)
@given(DOCUMENTS)
def test_every_prefix_of_any_document(text: str) -> None:
    check(text)


@settings(max_examples=400)
@given(BY_LINES)
def test_every_prefix_of_any_lists_and_tables(text: str) -> None:
    check(text)


@settings(max_examples=400)
@given(BY_LINES, DOCUMENTS, st.lists(st.integers(1, 400), max_size=12))
def test_any_cut_of_any_document(first: str, second: str, at: list[int]) -> None:
    text = f"{first}\n\n{second}\n\n{first}"
    check(cut(text, at))


@pytest.fixture
def small_containers() -> Iterator[None]:
    """Takes containers apart from their first characters on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolcall_nb.incremental_markdown.open_container.LEAST_CONTENTS", 0)
        patch.setattr("toolcall_nb.incremental_markdown.open_list.LEAST_CONTENTS", 0)
        yield


@pytest.mark.usefixtures("small_containers")
@pytest.mark.parametrize("text", tricky())
def test_every_prefix_where_containers_are_small(text: str) -> None:
    check(text)


@pytest.mark.usefixtures("small_containers")
@settings(max_examples=60)
@given(BY_CONTAINERS)
def test_every_prefix_of_any_small_containers(text: str) -> None:
    check(text)


@settings(max_examples=60)
@given(BY_CONTAINERS, st.integers(2, 40))
def test_any_cut_of_any_containers(text: str, size: int) -> None:
    check(cut(text, range(size, len(text), size)))


@pytest.mark.thorough
@pytest.mark.usefixtures("small_containers")
@settings(max_examples=2_000)
@given(BY_CONTAINERS, st.integers(1, 40))
def test_any_cut_of_any_small_containers(text: str, size: int) -> None:
    check(cut(text, range(size, len(text), size)))


@settings(max_examples=600)
@given(
    BY_MARKS,
    st.integers(1, 9),
    st.sampled_from([(5, 0), (20, 15), (300, 150)]),
    st.sampled_from([10, 2_000]),
    st.sampled_from([20, 5_000]),
)
def test_any_cut_of_any_marks(text: str, size: int, held: tuple[int, int], copied: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolcall_nb.incremental_markdown.open_inline._LEAST_HELD", held[0])
        patch.setattr("toolcall_nb.incremental_markdown.open_inline._LATELY", held[1])
        patch.setattr("toolcall_nb.incremental_markdown.open_inline._MOST_COPIED", copied)
        patch.setattr("toolcall_nb.incremental_markdown.open_inline._MOST_PIECES", 3)
        patch.setattr("toolcall_nb.incremental_markdown.flavor.MOST_MARKS", most)
        check(cut(text, range(size, len(text), size)))


def test_every_flush_of_a_table_with_long_cells() -> None:
    words = " ".join([*["in a long cell"] * 20, "some *text* and `code`,", "[a](https://example.org)"])
    check(flushes(f"| a | b |\n|---|:-:|\n| {words} | {words} \\| b {words}|c|\n{words}|{words}\n\n{words}", 3))


@pytest.mark.thorough
def test_a_table_that_the_parser_ends_because_of_its_many_short_rows() -> None:
    check(["|a" * 300 + "|\n" + "|-" * 300 + "|\n" + "|b\n" * 50, "|c\n" * 180])


@pytest.mark.parametrize("kind", GROWING)
def test_every_flush_of_a_growing(kind: str) -> None:
    check(flushes(growing(kind, 1_500), 3))


@settings(max_examples=100)
@given(st.text(max_size=60))
def test_every_prefix_of_any_text(text: str) -> None:
    check(text)


@pytest.mark.parametrize("name", ["commonmark_spec.json", "gfm_spec.json"])
def test_every_prefix_of_the_examples_of_the_specifications(name: str) -> None:
    path = corpus("markdown_specs") / name
    if not path.exists():
        pytest.fail(f"the corpus has no {name}")
    for number, example in enumerate(json.loads(path.read_text())):
        text = example["markdown"]
        if len(text) <= 160 and number % 2 == 0:
            check(text)
        elif len(text) <= 1000:
            check(cut(text, random.Random(number).sample(range(1001), 12)))


@pytest.mark.parametrize(("name", "key"), [("remend_cases", "input"), ("streaming_markdown_inputs", "markdown")])
def test_every_prefix_of_markdown_that_breaks_off(name: str, key: str) -> None:
    for case in json.loads((corpus("markdown_incomplete") / f"{name}.json").read_text()):
        if len(case[key]) <= 120:
            check(case[key])


def test_what_models_wrote_at_the_cuts_it_came_in() -> None:
    for line in (corpus("llm_text_deltas") / "deltas.jsonl").read_text().splitlines():
        deltas = [text for kind, text in json.loads(line)["deltas"] if kind == "text"]
        check(deltas, every=len(deltas) // 8 + 1)


# Work, counted in the characters that the parser is given --------------------------------------------------------


class Work:
    """Counts the characters that the shared parser reads, and how often it is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.characters = 0
        self.calls = 0
        for part in (parser().block, parser().inline):
            monkeypatch.setattr(part, "parse", self.counting(part.parse))

    def counting(self, parse: Callable[..., Any]) -> Callable[..., Any]:
        def counted(source: str, *rest: Any) -> Any:
            self.characters += len(source)
            self.calls += 1
            return parse(source, *rest)

        return counted


WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "the", "model", "streams")


def document(size: int) -> str:
    """A mixed document as models write them: prose, headings, lists, code, tables, quotes."""
    dice = random.Random(size)

    def prose(words: int) -> str:
        text = [dice.choice(WORDS) for _ in range(words)]
        text[words // 2] = dice.choice(["**{}**", "`{}`", "[{}](https://example.org/a)", "${}_1$", "*{}*"]).format("so")
        return " ".join(text).capitalize() + "."

    makers: list[Callable[[], str]] = [
        lambda: prose(60),
        lambda: prose(30) + "\n" + prose(20),
        lambda: "## " + prose(4),
        lambda: "\n".join(f"- **{dice.choice(WORDS)}**: {prose(12)}" for _ in range(6)),
        lambda: "\n".join(f"{number}. {prose(10)}\n   - {prose(6)}" for number in range(1, 5)),
        lambda: "```python\n" + "\n".join(f"    x{n} = f({n})  # {prose(3)}" for n in range(12)) + "\n```",
        lambda: "| a | b |\n|---|---|\n" + "\n".join(f"| {prose(3)} | {prose(4)} |" for _ in range(6)),
        lambda: "\n".join(f"> {prose(9)}" for _ in range(4)),
    ]
    blocks: list[str] = []
    while sum(map(len, blocks)) < size:
        blocks.append(dice.choice(makers)())
    return "\n\n".join(blocks)


def tokens(text: str, at_once: int) -> list[str]:
    parts = re.findall(r" ?\w{1,5}|\s+|.", text)
    return ["".join(parts[at : at + at_once]) for at in range(0, len(parts), at_once)]


def streamed(text: str, at_once: int) -> IncrementalMarkdown:
    stream = IncrementalMarkdown()
    for piece in tokens(text, at_once):
        stream.feed(piece)
    return stream


@pytest.mark.parametrize(("at_once", "times"), [pytest.param(1, 8, marks=pytest.mark.thorough), (8, 4), (25, 3)])
def test_a_streamed_document_is_read_a_few_times_and_not_once_for_each_token(
    monkeypatch: pytest.MonkeyPatch, at_once: int, times: int
) -> None:
    text = document(100_000)
    expected = whole(text)
    work = Work(monkeypatch)
    assert whole(text) == expected
    once, work.characters = work.characters, 0
    assert streamed(text, at_once).html == expected
    assert work.characters <= times * once


def test_earlier_text_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    stream = streamed(document(40_000) + "\n\n", 8)
    work.characters = 0
    later, fresh = tokens("# More\n\n" + document(5_000), 4), IncrementalMarkdown()
    for piece in later:
        stream.feed(piece)
    behind, work.characters = work.characters, 0
    for piece in later:
        fresh.feed(piece)
    # The last block before is read again until the first line of the next is whole.
    assert behind <= work.characters + 20_000


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        ("", "- Some **words** of an item\n"),
        ("", "1. Some\n\n   words `and`\n2. more\n"),
        ("|a|b|\n|-|-|\n", "| some | *words* |\n"),
        ("```python\n", "x = [1, 2]  # *some*\n"),
        ("", "some words and, then, more words "),
        ("", "some **words** and `code` in [it](http://a.b), 2 * 3 of snake_case & more, "),
    ],
    ids=["list", "loose list", "table", "fence", "paragraph", "paragraph with markup"],
)
def test_one_block_that_is_four_times_as_long_is_four_times_the_work(
    monkeypatch: pytest.MonkeyPatch, start: str, piece: str
) -> None:
    work = Work(monkeypatch)
    streamed(start + piece * 100, 1)
    short, work.characters = work.characters, 0
    stream = streamed(start + piece * 400, 1)
    assert work.characters <= 4.2 * short
    assert stream.html == whole(start + piece * 400)


@pytest.mark.parametrize("kind", GROWING)
def test_an_ordinary_block_that_is_four_times_as_long_is_four_times_the_work(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    work = Work(monkeypatch)
    read: list[int] = []
    for size in (4_000, 16_000):
        work.characters, stream = 0, IncrementalMarkdown()
        for piece in flushes(growing(kind, size), 8):
            stream.feed(piece)
        read.append(work.characters)
    # Some kinds are parsed only at their beginning.
    assert read[1] <= 5 * read[0] + 3_000


def test_prose_code_and_blank_lines_are_added_without_a_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    for start, piece in [
        ("A paragraph", " of plain words, and more"),
        ("1. a\n   - **b**: and so", " on with it"),
        ("> [!NOTE]\n> Words", " and words"),
        ("## A heading", " that goes on"),
        ("```python\nx = 1", "\n*y* = [2]  # `z`\n"),
        ("Words\n\n", "\n\n"),
    ]:
        stream = IncrementalMarkdown()
        stream.feed(start)
        work.calls = 0
        for _ in range(100):
            stream.feed(piece)
        assert work.calls == 0
        assert stream.html == whole(start + piece * 100)


def test_items_rows_and_blocks_are_parsed_without_those_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    for start, piece in [
        ("- " + "long " * 40, "\n- b"),
        ("1. a\n\n   b\n\n2. " + "long " * 40 + "\n3. c", "\n\n4. b"),
        ("| a | b |\n|---|---|\n| " + "long " * 40 + "|", "\n| b"),
        ("long " * 40, "\n\nb"),
        ("- a\n- " + "long " * 40, "\n\nb"),
        ("> " + "long " * 40, "\n\n# b"),
    ]:
        stream = IncrementalMarkdown()
        stream.feed(start)
        work.characters = 0
        stream.feed(piece)
        assert work.characters < 100, start
        assert stream.html == whole(start + piece)


def test_a_settled_block_is_parsed_again_only_if_it_refers_to_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    stream = streamed("[a] one\n\n" + document(10_000) + "\n\n[b] two\n\nend\n\n", 50)
    work.characters = 0
    changed = stream.feed("[a]: /u\n\nmore\n")
    assert changed == (0, len(stream.blocks) - 1)
    assert stream.blocks[0] == '<p><a href="/u">a</a> one</p>\n'
    assert work.characters < 100


# The rest --------------------------------------------------------------------------------------------------------


def test_settled_blocks_stay_the_same_objects() -> None:
    stream = IncrementalMarkdown()
    stream.feed("# a\n\nb\n\nc\n\n")
    first, second = stream.blocks[0], stream.blocks[1]
    stream.feed("d\n\n- e\n")
    assert stream.blocks[0] is first
    assert stream.blocks[1] is second


def test_blocks_may_get_fewer() -> None:
    stream = IncrementalMarkdown()
    assert stream.feed("- a\n\nb") == (0, 1)
    assert stream.feed("\n\n2") == (2,)
    stream = IncrementalMarkdown()
    assert stream.feed("1. a\n\n2") == (0, 1)
    assert stream.feed(". b") == (0,)
    assert len(stream.blocks) == 1


def test_text_that_shows_nothing_new_changes_no_block() -> None:
    stream = IncrementalMarkdown()
    assert stream.feed("") == ()
    assert stream.feed("\n \n") == ()
    assert stream.feed("a") == (0,)
    assert stream.feed(" ") == ()
    assert stream.feed("\n\n") == ()
    assert stream.feed("[b]: /u") == ()


def test_early_blocks_are_compressed_and_a_late_definition_still_changes_them() -> None:
    stream = IncrementalMarkdown()
    text = "".join(f"[a] {number}\n\n" for number in range(1000))
    for piece in (text[start : start + 100] for start in range(0, len(text), 100)):
        stream.feed(piece)
    assert stream.feed("[a]: /u\n") == tuple(range(1000))
    assert stream.before(3) == "<p>[a] 3</p>\n"
    assert stream.blocks[3] == '<p><a href="/u">a</a> 3</p>\n'
    assert stream.html == whole(text + "[a]: /u\n")


def test_text_is_shown_as_it_is_if_the_parser_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object) -> None:
        raise RecursionError

    stream = IncrementalMarkdown()
    stream.feed("# a\n\nb\n*c")
    with monkeypatch.context() as patch:
        patch.setattr(parser().inline, "parse", give_up)
        stream.feed("* <d>")
        assert stream.html == '<h1>a</h1>\n<pre class="tc-code"><code>b\n*c* &lt;d&gt;</code></pre>\n'
    stream.feed(" e")
    assert stream.html == whole("# a\n\nb\n*c* <d> e")
