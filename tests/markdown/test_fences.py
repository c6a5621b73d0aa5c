"""Lines and fences of a text that comes in pieces: what is known after each piece does not depend on the cuts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dialect_texts import detect, steps
from tests.support.documents import cuts, in_pieces
from toolcall_nb.dialects.call_detection import LINE_START, Lines
from toolcall_nb.markdown.characters import TextPosition

_STARTS = st.sampled_from(["", "", " ", "   ", "\t", "- ", "x", " " * 99, " " * 100, "\t" * 250, "\ufffd"])
_WORDS = st.sampled_from(
    ["", "text", "```", "~~~", "````", "``", "`", "```json", "~~~ JSON", "``` `", "# x", "x" * 401]
)
_ENDS = st.sampled_from(["\n", "\n", "\n", "\r", "\r\n", ""])
_TEXTS = st.lists(st.builds("{}{}{}{}".format, _STARTS, _WORDS, _STARTS, _ENDS), max_size=12).map("".join)

_STOP = re.compile(LINE_START)


def known(lines: Lines) -> tuple[object, ...]:
    return lines.fence, lines.at_start, lines.position.line, lines.position.column


def passed(pieces: list[str]) -> Lines:
    """The lines after these pieces, each taken on the short way where there is one."""
    lines = Lines()
    for piece in pieces:
        if not lines.skip_text(piece, _STOP):
            lines.extend(piece)
    return lines


@settings(max_examples=500)
@given(st.data())
def test_lines_do_not_depend_on_the_cuts(data: st.DataObject) -> None:
    text = data.draw(_TEXTS)
    whole = Lines()
    whole.extend(text)
    assert known(passed(in_pieces(text, data.draw(cuts(text))))) == known(whole)
    assert known(passed(list(text))) == known(whole)


@given(_TEXTS)
def test_text_is_skipped_only_within_a_line_of_text(text: str) -> None:
    lines = Lines()
    for end, character in enumerate(text, 1):
        if lines.skip_text(character, _STOP):
            assert not lines.at_start
            assert known(lines)[:2] == known(passed([text[:end]]))[:2]
        else:
            lines.extend(character)


@pytest.mark.parametrize(("blanks", "opens"), [(0, True), (99, True), (100, False)])
def test_a_fence_is_indented_by_99_blanks_at_most(blanks: int, opens: bool) -> None:
    text = "- item\n" + " " * blanks + "```python\n"
    for pieces in ([text], list(text), [text[:20], text[20:]]):
        assert (passed(pieces).fence is not None) is opens


@pytest.mark.parametrize("dialect", ["signature", "json"])
@pytest.mark.parametrize("blanks", [3, 99, 100, 150])
def test_a_mark_far_to_the_right_is_the_same_to_a_detector_however_it_is_cut(dialect: str, blanks: int) -> None:
    call = {"signature": '###: {"toolName": "a", "params": {}}', "json": '{"tool": "a", "params": {}}'}[dialect]
    text = f"Text\n{' ' * blanks}~~~python\n{call}\n"
    whole = steps(detect(dialect, text))
    assert any("tool" in event.type for event in whole) is (blanks > 99)
    for size in (1, 7, 64, 101):
        assert steps(detect(dialect, *(text[at : at + size] for at in range(0, len(text), size)))) == whole


@given(st.lists(st.text("a\r\n", max_size=9), max_size=9), st.booleans())
def test_a_position_is_the_end_of_the_text_so_far(pieces: list[str], asked: bool) -> None:
    place = TextPosition()
    for number, piece in enumerate(pieces, 1):
        place.advance(piece)
        if asked or number == len(pieces):
            lines = "".join(pieces[:number]).replace("\r\n", "\n").replace("\r", "\n").split("\n")
            assert (place.line, place.column) == (len(lines), len(lines[-1]) + 1)
