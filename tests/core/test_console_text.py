"""What tools print: lines as a terminal would show them, however the text was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb.core.append_only import ConsoleText

TEXTS = st.text(st.sampled_from("ab \r\n"), max_size=20)


def printed(*pieces: str) -> str:
    log = ConsoleText()
    for piece in pieces:
        log = log.add(piece)
    return str(log)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ntwo", "one\ntwo"),
        ("10%\r20%\r30%", "30%"),
        ("10%\r20%\ndone\n", "20%\ndone\n"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("10%\r", "10%\r"),  # what follows decides
        ("\r10%", "10%"),
        ("", ""),
    ],
)
def test_of_each_line_the_text_after_its_last_carriage_return_is_kept(text: str, shown: str) -> None:
    assert printed(text) == shown


@given(st.lists(TEXTS))
def test_cuts_do_not_matter(pieces: list[str]) -> None:
    assert printed(*pieces) == printed("".join(pieces))


@given(TEXTS)
def test_adding_text_leaves_the_older_version_unchanged(text: str) -> None:
    assert printed(printed(text)) == printed(text)


@given(TEXTS, TEXTS)
def test_a_finished_text_can_be_continued(before: str, after: str) -> None:
    log = ConsoleText().add(printed(before)).add(after)
    assert str(log) == printed(before + after)
