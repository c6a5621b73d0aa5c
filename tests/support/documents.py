"""Generates Markdown with callouts in every place where they count as callouts, and where they don't."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

__all__ = ["cuts", "documents", "in_pieces"]

_HEADERS = st.sampled_from(
    [
        "> [!tool search call_1]",
        "> [!tool name=weather id=call_2]+ A title",
        ">[!TOOL]",
        "   > [!tool 'two words' \"call 3\"]-",
        "> [!tool broken",
        "> [!toolbox a b]",
        "> [!tool a] no-title",
        "> > [!tool nested]",
        "    > [!tool code]",
        "  > [!tool two]",
        "> [!NOTE]",
        "> [!user]",
    ]
)
_BODIES = st.sampled_from(
    [
        "> input:",
        ">   query: cats",
        "> state: output-available",
        "> output: 1",
        ">",
        "> : : broken",
        "> id: call_1",
        "> - x",
    ]
)
_TEXT = st.sampled_from(
    [
        "",
        "",
        "",
        "A paragraph.",
        "After",
        "```python",
        "```",
        "~~~~",
        "- item",
        "  more of it",
        "1. one",
        "   three in",
        "> a quote",
        "lazy [!tool x]",
        "<div>",
        "</div>",
        "<!-- open",
        "-->",
        "<script>",
        "    code",
        "\tcode",
        "| a | b |",
        "| - | - |",
        "[a]: /url",
        '"title',
        "===",
        "---",
        "- ```",
        "> ```",
        "- > quoted item",
        "# Heading",
        "$$",
        "\0",
        "é😀",
    ]
)
_ENDINGS = st.sampled_from(["\n"] * 12 + ["\r\n", "\r"])


@st.composite
def documents(draw: st.DrawFn, max_lines: int = 14) -> str:
    """Generates documents line by line, with mixed line endings; the last line may have none."""
    lines = draw(st.lists(st.one_of(_HEADERS, _BODIES, _TEXT, _TEXT), max_size=max_lines))
    text = "".join(line + draw(_ENDINGS) for line in lines)
    return text[: len(text) - draw(st.integers(0, 3))] if text else text


def cuts(text: str) -> st.SearchStrategy[list[int]]:
    """Generates positions at which to cut ``text``."""
    return st.lists(st.integers(0, len(text)), max_size=8).map(sorted)


def in_pieces(text: str, places: list[int]) -> list[str]:
    """Splits ``text`` at ``places``."""
    edges = [0, *places, len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]
