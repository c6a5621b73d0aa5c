"""`speed_up` changes no token of any lexer of pygments."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import get_all_lexers, get_lexer_by_name

from toolcall_nb.incremental_markdown import fast_lexer

_USUAL = (
    *("python", "pycon", "bash", "console", "json", "yaml", "toml", "ini", "sql", "html", "xml", "css", "javascript"),
    *("typescript", "jsx", "java", "kotlin", "c", "cpp", "csharp", "go", "rust", "ruby", "php", "perl", "lua", "r"),
    *("diff", "docker", "make", "tex", "haskell", "scala", "swift", "powershell", "nix", "graphql", "vim"),
)
_OTHERS = sorted({aliases[0] for _, aliases, _, _ in get_all_lexers(plugins=False) if aliases} - {*_USUAL})

_CODE = r'''#!/usr/bin/env python
"""A docstring: {x!r:>10} %s \\n."""
import os, sys as system  # a comment
@decorate(1, key="v\\x41")
class Ünïcode(Base): pass
async def f(a: int = 0x1F, *b, **kw) -> str | None: return f"{a + 1:.2f}" if not b else r'\\d+'
<p class="a" id=b>Text &amp; <!-- no --> <br/></p> <?php echo $x->y; ?>
SELECT a.b, COUNT(*) AS n FROM t WHERE x LIKE 'a%' AND y >= 1.5e-3; -- end
fn main<'a>(x: &'a mut i32) -> Result<(), E> { let y = x?; println!("{}", y); } /* end */
$ echo "$HOME/${x:-y}" | grep -v '^#' && exit 0
- key: [1, 2.5, ~, true]  # list
+++ b/file
@@ -1,2 +1,2 @@
 É ß 中文 🙂 \t \\ ` ~ ^ | end
'''
_CASES = "\u017f K É ß"
_texts = st.text(alphabet="aB_0 1.\n\t\"'`\\/*#-+<>=(){}[]:;,@$%&|!?~^éK中🙂", max_size=60)


def _check(alias: str, *texts: str) -> None:
    usual, fast = get_lexer_by_name(alias), get_lexer_by_name(alias)
    fast_lexer.speed_up(fast)
    for text in texts:
        assert list(fast.get_tokens(text)) == list(usual.get_tokens(text))


@pytest.mark.parametrize("alias", _USUAL)
def test_the_tokens_of_a_usual_language_are_the_same(alias: str) -> None:
    _check(alias, _CODE, _CASES, *_CODE.splitlines())


@pytest.mark.thorough
@pytest.mark.parametrize("alias", _OTHERS)
def test_the_tokens_of_any_other_language_are_the_same(alias: str) -> None:
    _check(alias, _CODE, _CASES, *_CODE.splitlines())


@given(_texts)
def test_the_tokens_of_any_text_are_the_same(text: str) -> None:
    for alias in ("python", "bash", "javascript", "sql", "rust"):
        _check(alias, text)


@pytest.mark.parametrize(
    ("pattern", "flags", "first"),
    [
        ("abc", 0, "a"),
        ("abc", re.IGNORECASE, "aA"),
        (r"\s+|x", 0, " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1fx"),
        (r"(?<=a)(?:b|c?d)", 0, "bcd"),
        (r"\b[x-z]", 0, "xyz"),
        (r"(?i:q)r", 0, "qQ"),
        ("é", 0, ""),
        (r"[^\S\n]+", 0, " \t\r\x0b\x0c\x1c\x1d\x1e\x1f"),
        (r"[^\x03-\U0010ffff]", re.IGNORECASE, "\x00\x01\x02"),
    ],
)
def test_the_characters_that_a_match_may_begin_with(pattern: str, flags: int, first: str) -> None:
    assert fast_lexer._first_characters(re.compile(pattern, flags)) == {*first}


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("", 0),
        ("a*", 0),
        ("(?=a)", 0),
        ("(a?)\\1", 0),
        ("\u017f", re.IGNORECASE),
        (r"\s", re.ASCII),
        (r"[^\s]", re.ASCII),
    ],
)
def test_a_match_whose_first_characters_do_not_show_may_begin_with_any(pattern: str, flags: int) -> None:
    assert len(fast_lexer._first_characters(re.compile(pattern, flags))) == 128


@given(
    st.sampled_from(
        ["[^a]", "a", "[^a-f]", "[^Fa-f]", r"[^\s]", r"[^\Sq]", r"[^\W_]", "[^é]", "[aF]", "[^aé]", r"[^\d\S]", "."]
    ),
    st.sampled_from([0, re.IGNORECASE, re.ASCII, re.IGNORECASE | re.ASCII, re.DOTALL]),
)
def test_no_match_begins_with_another_character(pattern: str, flags: int) -> None:
    compiled = re.compile(pattern, flags)
    assert set(filter(compiled.match, map(chr, range(128)))) <= fast_lexer._first_characters(compiled)
