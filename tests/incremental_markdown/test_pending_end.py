"""The end of a text that is withheld while it is written: what is shown only ever grows."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb.incremental_markdown.flavor import render_markdown
from toolcall_nb.incremental_markdown.incremental import IncrementalMarkdown
from toolcall_nb.incremental_markdown.pending_end import pending_length

ANSWERS = [
    "It is **very warm** in Lisbon, *not* cold, and ***dry***: see `forecast(city)` and ``a ` b``.",
    "A [link](https://example.org/a_(b)?c=1), a ![picture](https://example.org/p.png), a note[^1], and [a][b] too.",
    "- **One**: first\n- *Two*: second\n- [ ] to do\n- [x] done\n  1. inner `code`\n  2. more",
    "| City | High |\n| --- | ---: |\n| **Lisbon** | 24 |\n| `Porto` | 22 |\n\nAfter it.",
    "Costs $5 and snake_case * 3, ~5 < 6, a~b, 2*3, AT&T &amp; more, a \\* star, <https://example.org> too.",
    "Text:\n\n```python\nx = a ** b  # [not] a `link`\n```\n\nThe ~~old~~ formula $a^2$ and \\(b\\) end.",
    "> A **quote** with `code`\n\n# A *heading*\n\n---\n\nEnd.",
]


def words(markdown: str) -> str:
    """Returns the words that a reader sees of Markdown, without blanks."""
    html = re.sub(r'<span class="tc-check">.*?</span>|<math.*?</math>', "", render_markdown(markdown))
    return re.sub(r"\s", "", unescape(re.sub(r"<[^>]*>", "", html)))


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_shown_of_a_text_that_is_written_is_never_taken_back(answer: str) -> None:
    shown = IncrementalMarkdown()
    fed, whole = 0, words(answer)
    for end in range(1, len(answer) + 1):
        visible = max(fed, end - pending_length(answer[:end], lambda: shown.is_verbatim))
        shown.feed(answer[fed:visible])
        fed = visible
        assert whole.startswith(words(answer[:fed]))
    assert len(answer) - fed <= 30


@given(st.text("ab *_`~[]()$\\<&|-1\n", max_size=60), st.booleans())
def test_at_most_a_few_words_are_withheld_of_any_text(text: str, is_code: bool) -> None:
    assert 0 <= pending_length(text, lambda: is_code) <= len(text)
    assert pending_length(f"{text} {'word ' * 200}", lambda: is_code) == 0
